"""The lower bound as it rose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .canvas import LINE, note, take_axes, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Beyond so many iterations their marks would run into a thick line.
MOST_MARKS = 60

AGAINST = ("iteration", "time")


def plot_bound(model: Any, ax: Axes | None = None, *, against: str = "iteration") -> Axes:
    """Draw the lower bound F against the iteration, or against the time since the fit began.

    Parameters
    ----------
    model : VCGMM
        Fitted.
    ax : matplotlib.axes.Axes, default=None
        Where to draw; None makes a new figure with `matplotlib.pyplot`.
    against : {"iteration", "time"}, default="iteration"

    Returns
    -------
    matplotlib.axes.Axes
    """
    if against not in AGAINST:
        raise ValueError(f"against={against!r} is not known: choose from 'iteration', 'time'.")
    bounds = model.lower_bounds_
    ax = take_axes(ax)
    from matplotlib.ticker import MaxNLocator

    by_iteration = against == "iteration"
    where = range(1, len(bounds) + 1) if by_iteration else model.history_["seconds"]
    marked = len(bounds) <= MOST_MARKS
    ax.plot(where, bounds, color=LINE, linewidth=1.6, marker="o" if marked else "", markersize=3.5)
    ax.margins(x=0.03)
    if by_iteration:
        ax.set_xlabel("iteration")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    else:
        ax.set_xlabel("seconds since the fit began")
        ax.set_xlim(left=0.0)  # what comes before EM takes time too
    ax.set_ylabel("lower bound F")
    end = "converged" if model.converged_ else "not converged"
    # The curve runs from the lower left to the upper right; before it there may be room or none.
    late = where[0] > 0.5 * where[-1] and len(bounds) > 1
    corner = "upper left" if late else "lower right"
    note(ax, f"{end} at {bounds[-1]:.6g}\nafter {len(bounds)} iterations", where=corner)
    tidy(ax)
    return ax
