"""Points in the plane as a density, with the centres found among them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .canvas import CENTRE, NIGHT, take_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike, NDArray


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
    points = check_plane("X", X)
    middles = check_plane("centers", centers)
    if bins < 1:
        raise ValueError(f"bins={bins!r} is not a positive number: give 1 or more.")
    ax = take_axes(ax, 8, 8)
    draw_density(ax, points, bins)
    ax.scatter(
        middles[:, 0],
        middles[:, 1],
        s=dot_area(len(middles)),
        color=CENTRE,
        edgecolors=NIGHT,
        linewidths=0.6,
        label=f"{len(middles):,} centres",
    )
    return ax


def check_plane(name: str, values: ArrayLike) -> NDArray[np.floating]:
    """Points in the plane as an array; refuses anything else."""
    array = np.asarray(values)
    if array.ndim != 2 or array.shape[1] != 2 or array.shape[0] == 0:
        raise ValueError(f"{name} has shape {array.shape}: a picture needs (n, 2) with n of 1 or more.")
    return array


def draw_density(
    ax: Axes,
    points: NDArray[np.floating],
    bins: int,
    *,
    cmap: str = "inferno",
    face: str = NIGHT,
    pale: float = 1.0,
) -> None:
    """Draw points (n, 2) as counts in square cells, on a logarithmic scale over a plain ground.

    The densest cell gets the map's last shade, or with `pale` above 1 the one that so many times more would be
    needed to exceed.
    """
    from matplotlib.colors import LogNorm

    counts, x_edges, y_edges = histogram(points, bins)
    ax.set_facecolor(face)
    ax.imshow(
        # Rows of an image run along y, those of a histogram along x; empty cells show the background.
        np.ma.masked_equal(counts.T, 0),
        extent=(x_edges[0], x_edges[-1], y_edges[0], y_edges[-1]),
        origin="lower",
        aspect="equal",
        cmap=cmap,
        # Leave out the map's first shades: a single point must stand out from the background.
        norm=LogNorm(vmin=0.3, vmax=pale * max(counts.max(), 1.0)),
        interpolation="antialiased",
    )


def histogram(
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


def dot_area(n: int, *, least: float = 4.0) -> float:
    """Area of a dot in points²: the more there are, the smaller, so that they do not hide the density."""
    return float(np.clip(8000 / n, least, 60.0))
