"""Steps of Lloyd's algorithm in which clusters of all cells meet: every point goes to the nearest alone.

Few clusters are compared with every point, by products that are nearly as fast as products can be; of more, some
about the point's last one are.
"""

from __future__ import annotations

import math

import numpy as np

from ..kernels.exact_sums import rounding_constant
from ..kernels.hard_step import assign_and_add
from ..kernels.lloyd import ROWS, STEP_LENGTH, assign_rows
from ..kernels.nearest import product_slack, squared_norms
from ..kernels.nearest_tiles import HEIGHT
from ..kernels.selection import LANES
from ..parallel import Workers
from .cells import Neighbourhoods, sort_by_cluster
from .extent import Extent
from .mstep import LocalStatistics
from .natural import Natural
from .nearest import nearest
from .sums import Sums

#: Up to so many clusters are all compared with every point.
FEW = 384

#: Neighbours of a cluster where there are more, and candidates: if one step is all, and if others follow.
NEIGHBOURS = 5
CANDIDATES_ONCE, CANDIDATES = 32, 64

#: Instead of a precision: no responsibilities but those of the nearest.
FIRST_TAKES_ALL = -1.0

#: Points by which it is told whether products are exact enough, and what share of the error they may be off by.
LOOKED_AT = 512
MAY_BE_OFF = 0.01


def hard_steps(
    points: np.ndarray,
    weights: np.ndarray,
    means: np.ndarray,
    labels: np.ndarray,
    n_steps: int,
    rng: np.random.Generator,
    workers: Workers,
) -> tuple[np.ndarray, np.ndarray]:
    """Means (C, D) float64 after some steps, and labels (N',) int32, which the last step found.

    All steps but the last go farther than to the mean (`kernels.lloyd.STEP_LENGTH`).  A cluster without points
    stays where it is.

    Parameters
    ----------
    points : (N', D) float
        Left as they lie.
    weights : (N',) float64
    means : (C, D) float64
    labels : (N',) int32, or (0,) where `asks_for_labels` says that nobody needs any
        A near cluster of every point.  Changed in place.
    n_steps : int
        At least 1.
    rng : numpy Generator
    workers : Workers
    """
    if asks_for_labels(len(means)):
        return _by_lists(points, weights, means, labels, n_steps, rng, workers)
    if products_tell(points, means, rng):
        return _by_products(points, weights, means, n_steps, workers)
    labels = nearest(points, means, workers)[0]
    return _by_lists(points, weights, means, labels, n_steps, rng, workers)


def asks_for_labels(n_clusters: int) -> bool:
    """Whether steps begin from labels, or compare so few clusters with all points anyway."""
    return n_clusters > FEW


def products_tell(points: np.ndarray, means: np.ndarray, rng: np.random.Generator) -> bool:
    """Whether ||y||^2 - 2 y mu + ||mu||^2 tells the nearest in the coordinates as they are, by some of the points.

    It is off by a share of the squares: too much where clusters are far smaller than the data are wide.
    """
    some = points[rng.integers(0, len(points), LOOKED_AT)]
    distances = np.empty(len(some), points.dtype)
    assign_rows(
        0, -(-len(some) // ROWS), some, means.astype(points.dtype), np.empty(len(some), np.int32), distances
    )
    squares = np.einsum("nd,nd->", some, some, dtype=np.float64)
    off = 2 * product_slack(points.dtype, points.shape[1]) * squares
    return bool(off <= MAY_BE_OFF * distances.sum(dtype=np.float64))


def _by_products(
    points: np.ndarray, weights: np.ndarray, means: np.ndarray, n_steps: int, workers: Workers
) -> tuple[np.ndarray, np.ndarray]:
    n_clusters, n_features = means.shape
    labels = np.empty(len(points), np.int32)
    extent = Extent.of(points, weights, workers)
    magic = rounding_constant(extent.absolute)
    mass_magic = float(rounding_constant(np.array(extent.total_weight)))
    centres = np.zeros((-(-n_clusters // HEIGHT) * HEIGHT, n_features), points.dtype)
    squares = np.full(len(centres), np.inf, points.dtype)
    # One of each for every thread: they are exact, so how they are shared does not matter.
    totals = np.empty((workers.n_threads, n_clusters, n_features))
    masses = np.empty((workers.n_threads, n_clusters))

    def work(thread: int, first: int, last: int) -> None:
        sums = totals[thread], masses[thread]
        assign_and_add(first, last, points, weights, centres, squares, magic, mass_magic, labels, *sums)

    for length in _lengths(n_steps):
        centres[:n_clusters] = means
        squared_norms(centres[:n_clusters], squares[:n_clusters])
        totals[:], masses[:] = 0.0, 0.0
        workers.run(work, -(-len(points) // LANES), points.size * n_clusters)
        mass = masses.sum(axis=0)[:, None]
        ways = totals.sum(axis=0) / np.where(mass > 0, mass, 1.0) - means
        means = means + length * np.where(mass > 0, ways, 0.0)
    return means, labels


def _by_lists(
    points: np.ndarray,
    weights: np.ndarray,
    means: np.ndarray,
    labels: np.ndarray,
    n_steps: int,
    rng: np.random.Generator,
    workers: Workers,
) -> tuple[np.ndarray, np.ndarray]:
    n_clusters = len(means)
    near = Neighbourhoods(
        n_clusters,
        min(NEIGHBOURS, n_clusters),
        min(CANDIDATES_ONCE if n_steps == 1 else CANDIDATES, n_clusters),
        0,
        int(rng.integers(1 << 62)),
        workers,
    )
    extent = Extent.of(points, weights, workers)
    total = float(weights.sum())
    for length in _lengths(n_steps):
        natural = Natural.shared(means.astype(points.dtype))
        near.update(natural)
        order, bounds = sort_by_cluster(labels, n_clusters)
        sums = Sums(natural, extent.rounding(natural), workers)
        sums.search(points, weights, labels[:, None], order, bounds, near.candidates, FIRST_TAKES_ALL)
        means = LocalStatistics.of(natural.means, math.nan, sums.totals(), total, 0, workers=workers).moved(length)
    return means, labels


def _lengths(n_steps: int) -> list[float]:
    return [STEP_LENGTH] * (n_steps - 1) + [1.0]
