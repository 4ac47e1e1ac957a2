"""Where the time of a fit went."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .canvas import FILL, LINE, take_axes, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAMES = {"em": "EM"}


def plot_steps(model: Any, ax: Axes | None = None) -> Axes:
    """Draw the seconds that each step of the fit took, as bars.

    Parameters
    ----------
    model : VCGMM
        Fitted.
    ax : matplotlib.axes.Axes, default=None
        Where to draw; None makes a new figure with `matplotlib.pyplot`.

    Returns
    -------
    matplotlib.axes.Axes
    """
    ax = take_axes(ax)
    timings = model.timings_
    total = sum(timings.values()) or 1.0
    bars = ax.barh(
        [NAMES.get(step, step) for step in timings],
        list(timings.values()),
        height=0.6,
        color=FILL,
        edgecolor=LINE,
        linewidth=0.8,
    )
    labels = [f"{seconds:.2f} s, {seconds / total:.0%}" for seconds in timings.values()]
    ax.bar_label(bars, labels, padding=4, fontsize="small")
    ax.invert_yaxis()  # the first step at the top
    ax.set_xlim(0.0, 1.3 * max(timings.values()) or 1.0)
    ax.set_xlabel("seconds")
    tidy(ax)
    return ax
