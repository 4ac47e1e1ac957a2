"""Steps of Lloyd's algorithm in which clusters of all cells meet: every point goes to the nearest alone.

Few clusters are compared with every point, by products that are nearly as fast as products can be; of more, some
about the point's last one are.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ...kernels.nearest.all_centres import product_slack, squared_norms
from ...kernels.nearest.hard_step import assign_and_add
from ...kernels.nearest.lloyd import ROWS, STEP_LENGTH, assign_rows
from ...kernels.nearest.nearest_tiles import HEIGHT
from ...kernels.parts.exact_sums import rounding_constant
from ...kernels.parts.selection import LANES
from ...kernels.parts.shorts import FAR_ENOUGH, FEATURES, LARGEST, NOTHING, PRODUCTS, SHARE, may_be_short
from ...parallel import MOVING, Workers
from ..cells.extent import Extent
from ..cells.natural import Natural
from ..cells.neighbourhoods import Neighbourhoods, sort_by_cluster
from ..cells.sums import Sums
from ..cells.thread_sums import ThreadSums
from ..nearest import nearest
from .subspace import lift

#: Up to so many clusters are all compared with every point; a third more where rows are wide enough for `shorts`.
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

    All steps but the last go farther than to the mean (`STEP_LENGTH` of `kernels.nearest.lloyd`), unless no point
    has changed its cluster; where it has not from there either, that is the end.  A cluster without points is put
    on one of those that lie farthest from their mean (`subspace.lift`).

    Parameters
    ----------
    points : (N', D) float
        Left as they lie.
    weights : (N',) float64
    means : (C, D) float64
    labels : (N',) int32, or (0,) where `asks_for_labels` says that nobody needs any
        A near cluster of every point.  Changed in place.
    n_steps : int
        At most, and at least 1.
    rng : numpy Generator
    workers : Workers
    """
    if asks_for_labels(*means.shape):
        step: Step = Listed(points, weights, labels, len(means), n_steps, rng, workers)
    elif (scale := scale_of_products(points, weights, means, rng, workers)) is not None:
        step = Compared(points, weights, len(means), scale, workers)
    else:
        labels = nearest(points, means, workers)[0]
        step = Listed(points, weights, labels, len(means), n_steps, rng, workers)
    length = 0.0
    for left in range(n_steps - 1, -1, -1):
        ways, masses, n_moved = step.take(means)
        stays = n_moved == 0 and length > 0.0  # labels that were given are no step's
        closer = stays and step.look_closer()
        if stays and length == 1.0 and not closer:
            break  # these means are of these labels already
        length = 1.0 if left == 0 or stays else STEP_LENGTH
        if (masses > 0).all():
            means = means + length * ways
        else:
            lifted = lift(points, weights, step.labels.copy(), len(means), 0, workers)
            step.relabel(lifted.labels)
            means, length = lifted.means, 1.0
    return means, step.labels


def asks_for_labels(n_clusters: int, n_features: int) -> bool:
    """Whether steps begin from labels, or compare so few clusters with all points anyway."""
    return n_clusters > (FEW if n_features < FEATURES else FEW + FEW // 3)


def scale_of_products(
    points: np.ndarray, weights: np.ndarray, means: np.ndarray, rng: np.random.Generator, workers: Workers
) -> float | None:
    """In how many steps a unit of the coordinates may be told (`kernels.parts.shorts`), by some of the points.

    0 where rows are compared as floats, and None where ||y||^2 - 2 y mu + ||mu||^2 does not tell the nearest in
    the coordinates as they are: it is off by a share of the squares, which is too much where clusters are far
    smaller than the data are wide.
    """
    running = np.cumsum(weights)
    picks = np.searchsorted(running, running[-1] * rng.random(LOOKED_AT), side="right")  # each as it weighs
    some = points[np.minimum(picks, len(points) - 1)]
    distances = np.empty(len(some), points.dtype)
    some_labels, in_steps = np.empty(len(some), np.int32), may_be_short(points.shape[1])
    assign_rows(0, -(-len(some) // ROWS), some, means.astype(points.dtype), in_steps, some_labels, distances)
    squares = np.einsum("nd,nd->", some, some, dtype=np.float64)
    off = 2 * product_slack(points.dtype, points.shape[1]) * squares
    if not off <= MAY_BE_OFF * distances.sum(dtype=np.float64):
        return None
    if points.shape[1] < FEATURES or len(means) < PRODUCTS:
        return 0.0
    largest = largest_norm(points, workers)
    steps = LARGEST / largest if largest**2 > NOTHING else 0.0
    apart = np.minimum(steps * np.sqrt(distances, dtype=np.float64), FAR_ENOUGH)
    return steps if apart.mean() >= SHARE * FAR_ENOUGH else 0.0


def largest_norm(points: np.ndarray, workers: Workers) -> float:
    """The norm of the longest of the points (N', D) float."""
    largest = np.zeros(workers.n_threads)

    def work(thread: int, first: int, last: int) -> None:
        low, high = first * ROWS, min(last * ROWS, len(points))
        squares = np.empty(high - low, points.dtype)
        squared_norms(points[low:high], squares)
        largest[thread] = max(largest[thread], squares.max())

    workers.run(work, -(-len(points) // ROWS), MOVING * points.size)
    return float(np.sqrt(largest.max()))


class Step(Protocol):
    """Steps from the labels of the last one."""

    labels: np.ndarray

    def take(self, means: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
        """Every point to the nearest of means (C, D) float64.

        Returns the ways (C, D) float64 to the weighted means, masses (C,) float64, and how many labels changed.
        """
        ...

    def relabel(self, labels: np.ndarray) -> None:
        """Go on from other labels (N',) int32, few of which differ."""
        ...

    def look_closer(self) -> bool:
        """Compare as exactly as can be from now on; whether that is another way than before."""
        ...


class Compared:
    """Steps in which every point is compared with all clusters.

    Parameters
    ----------
    points, weights, workers : as in `hard_steps`
    n_clusters : int
    steps : float
        From `scale_of_products`.
    """

    def __init__(
        self, points: np.ndarray, weights: np.ndarray, n_clusters: int, steps: float, workers: Workers
    ) -> None:
        self.points = points
        self.weights = weights
        self._steps = steps
        self.workers = workers
        self.labels = np.full(len(points), -1, np.int32)
        n_features = points.shape[1]
        extent = Extent.of(points, weights, workers)
        self._magic = rounding_constant(extent.absolute)
        self._mass_magic = float(rounding_constant(np.array(extent.total_weight)))
        self._centres = np.zeros((-(-n_clusters // HEIGHT) * HEIGHT, n_features), points.dtype)
        self._squares = np.full(len(self._centres), np.inf, points.dtype)
        # Sums over the points of every cluster.  They are exact, like what changes in them from step to step: it
        # does not matter that rows have been added and taken away again.
        self._sums, self._mass = np.zeros((n_clusters, n_features)), np.zeros(n_clusters)

    def take(self, means: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
        """As `Step` says."""
        centres, squares, n_clusters = self._centres, self._squares, len(means)
        centres[:n_clusters] = means
        squared_norms(centres[:n_clusters], squares[:n_clusters])
        changes = ThreadSums(self.workers, self._sums.shape, self._mass.shape)
        n_moved = [0] * self.workers.n_threads

        def work(thread: int, first: int, last: int) -> None:
            totals, masses = changes.of(thread)
            n_moved[thread] += assign_and_add(
                first, last, self.points, self.weights, centres, squares, self._steps, self._magic,
                self._mass_magic, self.labels, totals, masses,
            )  # fmt: skip

        self.workers.run(work, -(-len(self.points) // LANES), self.points.size * n_clusters)
        totals, masses = changes.total()
        self._sums += totals
        self._mass += masses
        return self._sums / np.where(self._mass > 0, self._mass, 1.0)[:, None] - means, self._mass, sum(n_moved)

    def relabel(self, labels: np.ndarray) -> None:
        """As `Step` says; sums change as by `kernels.nearest.hard_step.move_rows`, for which these are too few."""
        moved = np.flatnonzero(labels != self.labels)
        weights = self.weights[moved]
        terms = (weights[:, None] * self.points[moved].astype(np.float64) + self._magic) - self._magic
        masses = (weights + self._mass_magic) - self._mass_magic
        for old, new, term, mass in zip(self.labels[moved], labels[moved], terms, masses, strict=True):
            self._sums[old] -= term
            self._sums[new] += term
            self._mass[old] -= mass
            self._mass[new] += mass
        self.labels[moved] = labels[moved]

    def look_closer(self) -> bool:
        """As floats, no longer in whole steps."""
        before, self._steps = self._steps, 0.0
        return before > 0.0


class Listed:
    """Steps in which every point is compared with some clusters about its own.

    Parameters
    ----------
    points, weights, labels, n_steps, rng, workers : as in `hard_steps`
    n_clusters : int
    """

    def __init__(
        self,
        points: np.ndarray,
        weights: np.ndarray,
        labels: np.ndarray,
        n_clusters: int,
        n_steps: int,
        rng: np.random.Generator,
        workers: Workers,
    ) -> None:
        self.points = points
        self.weights = weights
        self.labels = labels
        self.workers = workers
        self._near = Neighbourhoods(
            n_clusters,
            min(NEIGHBOURS, n_clusters),
            min(CANDIDATES_ONCE if n_steps == 1 else CANDIDATES, n_clusters),
            0,
            int(rng.integers(1 << 62)),
            workers,
        )
        self._extent = Extent.of(points, weights, workers)

    def take(self, means: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
        """As `Step` says."""
        natural = Natural.shared(means.astype(self.points.dtype))
        self._near.update(natural)
        order, start = sort_by_cluster(self.labels, len(means), self.workers)
        sums = Sums(natural, self._extent.rounding(natural), self.workers)
        sums.search(
            self.points, self.weights, self.labels[:, None], order, start, self._near.candidates, FIRST_TAKES_ALL
        )
        totals = sums.totals()
        ways = totals.shifts / np.where(totals.masses > 0, totals.masses, 1.0)[:, None]
        ways += natural.means - means  # which have been rounded
        return ways, totals.masses, totals.n_moved

    def relabel(self, labels: np.ndarray) -> None:
        """As `Step` says."""
        self.labels[:] = labels

    def look_closer(self) -> bool:
        """They do already."""
        return False
