"""How large the clusters are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .canvas import take_axes
from .ranking import draw_ranking

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_sizes(model: Any, ax: Axes | None = None) -> Axes:
    """Draw the sizes of the clusters, sorted, on a logarithmic scale.

    A size is the weight of the data in a cluster, `counts_`: the number of rows, where they have no weights.

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
    draw_ranking(ax, model.counts_, kind="mean size", label="size", empty="empty")
    return ax
