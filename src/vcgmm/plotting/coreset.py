"""A coreset over the data it was drawn from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .canvas import MARK, take_axes
from .density import check_plane, dot_area, draw_density
from .map import MOST_VECTORS, thinned

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_coreset(coreset: Any, X: Any, ax: Axes | None = None, *, bins: int = 300) -> Axes:
    """Draw the points of a coreset in the plane, sized by weight, over the density of the data.

    Parameters
    ----------
    coreset : Coreset
        Of two features: from `lightweight_coreset`, or `coreset_` of a model.
    X : array-like of shape (N, 2), or source
        The data; of more than 200,000 rows every so many are drawn.
    ax : matplotlib.axes.Axes, default=None
        Where to draw; None makes a new figure with `matplotlib.pyplot`.
    bins : int, default=300
        Cells of the density along the longer side of the data.

    Returns
    -------
    matplotlib.axes.Axes
    """
    points = check_plane("coreset.points", coreset.points).astype(float)
    rows = check_plane("X", thinned(X)).astype(float)
    ax = take_axes(ax, 8, 8)
    # The corners belong to the picture although they are drawn as dots: an outlier is what a coreset is there for.
    draw_density(ax, np.concatenate([rows, points]), bins, cmap="Greys", face="white", pale=30.0)
    many = len(points) > MOST_VECTORS
    shares = coreset.weights / max(coreset.weights.mean(), np.finfo(float).tiny)
    ax.scatter(
        points[:, 0],
        points[:, 1],
        s=1.5 * dot_area(len(points), least=0.6) * np.clip(shares, 0.05, 10.0),
        color=MARK,
        linewidths=0.0,
        alpha=0.4 if many else 0.7,
        rasterized=many,
    )
    ax.set_title(f"{len(points):,} points of a coreset, sized by weight", fontsize="medium")
    return ax
