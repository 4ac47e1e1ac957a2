"""Which clusters the quantization error comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .canvas import take_axes
from .ranking import draw_ranking

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Errors below this share of the largest are rounding: those of clusters of one point, or of equal ones.
ROUNDING = 1e-14


def plot_errors(model: Any, X: Any, ax: Axes | None = None) -> Axes:
    """Draw the quantization error of every cluster, sorted, on a logarithmic scale.

    At an optimal quantizer all clusters have the same error, so a level line is good, and a steep one says where
    clusters are missing.

    Parameters
    ----------
    model : VCGMM
        Fitted.
    X : array-like of shape (N, D)
        The data; all rows are assigned to their nearest mean.
    ax : matplotlib.axes.Axes, default=None
        Where to draw; None makes a new figure with `matplotlib.pyplot`.

    Returns
    -------
    matplotlib.axes.Axes
    """
    distances, ids = model.nearest(X)
    errors = np.bincount(ids[:, 0], weights=distances[:, 0] ** 2, minlength=len(model.means_))
    errors[errors < ROUNDING * errors.max()] = 0.0
    ax = take_axes(ax)
    draw_ranking(ax, errors, kind="mean error", label="quantization error", empty="without error")
    return ax
