"""A grid of round clusters in the plane."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .arguments import check_length, check_size, random_generator

if TYPE_CHECKING:
    from numpy.typing import NDArray


def make_grid(
    n_samples: int = 1_000_000,
    n_side: int = 25,
    *,
    spread: float = 0.15,
    jitter: float = 0.2,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[NDArray[np.float32], NDArray[np.int32], NDArray[np.float32]]:
    """Make a grid of round clusters in the plane, as in the BIRCH benchmark.

    Neighbouring nodes of the grid are at distance 1, and a centre lies a little off its node. The clusters
    are of equal size (to within one point) and the points come in random order.

    Parameters
    ----------
    n_samples : int, default=1_000_000
        Number of points, N.
    n_side : int, default=25
        Clusters along one side of the grid: there are C = n_side² clusters.
    spread : float, default=0.15
        Standard deviation of a cluster in each direction (BIRCH: 0.18, with a jitter of 0).
    jitter : float, default=0.2
        A centre lies up to this far from its grid node, in each direction.
    random_state : int, RandomState or None, default=None
        Seed; the same seed gives the same data.

    Returns
    -------
    X : ndarray of shape (n_samples, 2), float32
        The points.
    labels : ndarray of shape (n_samples,), int32
        The cluster each point was drawn from.
    centers : ndarray of shape (n_side**2, 2), float32
        The centres of the clusters, row by row of the grid.

    Raises
    ------
    ValueError
        If a size is not a positive integer, or `spread` or `jitter` is negative or not finite.

    Examples
    --------
    >>> from vcgmm.datasets import make_grid
    >>> X, labels, centers = make_grid(1000, n_side=5, random_state=0)
    >>> X.shape, centers.shape
    ((1000, 2), (25, 2))
    """
    check_size("n_samples", n_samples)
    check_size("n_side", n_side)
    check_length("spread", spread)
    check_length("jitter", jitter)

    rng = random_generator(random_state)
    n_clusters = n_side * n_side
    rows, columns = np.divmod(np.arange(n_clusters), n_side)
    nodes = np.column_stack([columns, rows])
    centers = (nodes + rng.uniform(-jitter, jitter, size=nodes.shape)).astype(np.float32)

    labels = (np.arange(n_samples) % n_clusters).astype(np.int32)
    rng.shuffle(labels)
    X = rng.standard_normal((n_samples, 2), dtype=np.float32)
    X *= np.float32(spread)
    X += centers[labels]
    return X, labels, centers
