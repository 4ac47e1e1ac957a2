"""What all pictures share: axes to draw on, and colours."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: The darkest shade of the densities' colour map: empty cells and the margin look alike.
NIGHT = "#000004"
#: Centres on the night.
CENTRE = "#5ef2e3"
#: Lines and bars on white, what is compared with them, and what is said beside them.
LINE = "#1f6f8b"
FILL = "#b9dbe5"
MARK = "#c8553d"
TEXT = "#444444"


def need_matplotlib() -> None:
    """Raise an ImportError that says how to get matplotlib, if it is not installed."""
    try:
        import matplotlib.colors  # noqa: F401
    except ImportError as error:
        raise ImportError("Pictures need matplotlib, which is not installed: pip install vcgmm[plot]") from error


def new_figure(width: float, height: float) -> Figure:
    """A figure that no window shows and that nobody has to close."""
    need_matplotlib()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def take_axes(ax: Axes | None, width: float = 6.4, height: float = 4.8) -> Axes:
    """The axes given, or those of a new figure of `matplotlib.pyplot`."""
    need_matplotlib()
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.figure(figsize=(width, height), layout="constrained").add_subplot()


def tidy(ax: Axes) -> None:
    """Take away the lines that carry nothing."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(colors=TEXT)


def note(ax: Axes, text: str, *, where: str = "upper right") -> None:
    """A remark in a corner of the axes."""
    vertical, horizontal = where.split()
    ax.text(
        0.98 if horizontal == "right" else 0.02,
        0.97 if vertical == "upper" else 0.03,
        text,
        transform=ax.transAxes,
        ha=horizontal,
        va="top" if vertical == "upper" else "bottom",
        fontsize="small",
        color=TEXT,
    )
