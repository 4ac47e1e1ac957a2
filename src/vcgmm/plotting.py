"""Pictures of clusterings; needs matplotlib, the extra `plot`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike, NDArray

# The darkest shade of the density's colour map: empty cells and the margin look alike.
_NIGHT = "#000004"
_CENTRE = "#5ef2e3"


def plot_density(X: ArrayLike, centers: ArrayLike, ax: Axes | None = None, bins: int = 600) -> Axes:
    """Draw the density of points in the plane, on a logarithmic scale, and the centres found on top.

    Parameters
    ----------
    X : array-like of shape (n_samples, 2)
        The points.
    centers : array-like of shape (n_components, 2)
        The centres, for example `means_` of a fitted model.
    ax : matplotlib.axes.Axes, default=None
        Where to draw; None makes a new figure with `matplotlib.pyplot`.
    bins : int, default=600
        Cells of the density along the longer side of the data; they are square.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError
        If the points or the centres are not two-dimensional, or there are none.
    """
    points = _check_plane("X", X)
    middles = _check_plane("centers", centers)
    if bins < 1:
        raise ValueError(f"bins={bins!r} is not a positive number: give 1 or more.")
    try:
        from matplotlib.colors import LogNorm
    except ImportError as error:
        raise ImportError("Pictures need matplotlib, which is not installed: pip install vcgmm[plot]") from error
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.figure(figsize=(8, 8), layout="constrained").add_subplot()

    counts, x_edges, y_edges = _histogram(points, bins)
    ax.set_facecolor(_NIGHT)
    ax.imshow(
        # Rows of an image run along y, those of a histogram along x; empty cells show the background.
        np.ma.masked_equal(counts.T, 0),
        extent=(x_edges[0], x_edges[-1], y_edges[0], y_edges[-1]),
        origin="lower",
        aspect="equal",
        cmap="inferno",
        # Leave out the map's darkest shades: a single point must stand out from the background.
        norm=LogNorm(vmin=0.3, vmax=max(counts.max(), 1.0)),
        interpolation="antialiased",
    )
    ax.scatter(
        middles[:, 0],
        middles[:, 1],
        s=_dot_area(len(middles)),
        color=_CENTRE,
        edgecolors=_NIGHT,
        linewidths=0.6,
        label=f"{len(middles):,} centres",
    )
    return ax


def _check_plane(name: str, values: ArrayLike) -> NDArray[np.floating]:
    array = np.asarray(values)
    if array.ndim != 2 or array.shape[1] != 2 or array.shape[0] == 0:
        raise ValueError(f"{name} has shape {array.shape}: a picture needs (n, 2) with n of 1 or more.")
    return array


def _histogram(
    X: NDArray[np.floating], bins: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Count points in square cells; counts (bins_x, bins_y) and the edges of both directions."""
    low, high = X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
    # Equal points have no extent: give them a cell of some size around them.
    cell = (high - low).max() / bins or max(abs(low).max(), 1.0) * 1e-3
    shape = np.maximum(np.ceil((high - low) / cell), 1).astype(int)
    middle = (low + high) / 2
    sides = [(m - n * cell / 2, m + n * cell / 2) for m, n in zip(middle, shape, strict=True)]
    counts, x_edges, y_edges = np.histogram2d(X[:, 0], X[:, 1], bins=(shape[0], shape[1]), range=sides)
    return counts, x_edges, y_edges


def _dot_area(n: int) -> float:
    """Area of a dot in points²: the more centres, the smaller, so that they do not hide the density."""
    return float(np.clip(8000 / n, 4.0, 60.0))
