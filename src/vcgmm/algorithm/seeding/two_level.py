"""Two-level seeding: coarse cells first, then clusters inside each cell.

About sqrt(C) cells are found by k-means on a sample and every point goes to its nearest cell.  Inside each cell
D^2 sampling draws more seeds than needed and notes how the cell's error falls with each.  The C clusters are then
shared out so that every cluster has about the same error, as at an optimum it would (Gersho 1979), and a few Lloyd
steps follow inside each cell.  No step compares all points with all clusters: the cost is O(N' sqrt(C) D).  With
more than `LARGEST_CELL`^2 clusters the cells themselves are found in two levels, and so on.  Cells of many
clusters are split once more before seeds are drawn, which would cost more than Lloyd steps; these see whole cells.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ...kernels.nearest.lloyd import ROWS, assign_rows
from ...kernels.parts.shorts import may_be_short
from ...kernels.seeding.chains import lower_distances
from ...parallel import Workers
from ..cells.neighbourhoods import sort_by_cluster
from ..places import narrowed
from .afkmc2 import Start, draw_one
from .inside_cells import CARE, Care, cluster_inside, seed_inside
from .sharing import share_by_error, share_by_potential

#: No cell is asked for more clusters than this at one level, unless levels are told.
LARGEST_CELL = 256

#: Cells that expect more clusters than this, in the mean, are split once more, and seeds are drawn in the parts.
SEEDED_TOGETHER = 64

#: Not where a cluster has fewer rows: then seeds of a cell cost no more than parts of it would.
ROWS_FOR_PARTS = 12

#: Up to so many clusters are found at one level.
ONE_LEVEL = 32

#: Rows that Lloyd steps look at for each cluster of a cell, and the steps, before the last level.
COARSE_SAMPLE = 128
COARSE_STEPS = 5

#: Where clusters are few, as many rows are looked at for their seeds as a few Lloyd steps look at.
CARE_FOR_FEW = Care(rows=COARSE_SAMPLE, trials=6)


@dataclass(frozen=True)
class Effort:
    """What the last level takes upon itself.

    Attributes
    ----------
    spare : float
        Seeds drawn for each cluster that a cell expects.  The more there are, the better they are shared out among
        cells, which is what EM can change least.
    sample : int
        Rows that Lloyd steps look at for each cluster.
    steps : int
        Lloyd steps inside a cell.
    """

    spare: float
    sample: int
    steps: int


#: Where a fit follows, which looks at all rows, and where centres are what is asked for.
BEFORE_A_FIT = Effort(spare=2.0, sample=64, steps=8)
ALONE = Effort(spare=1.5, sample=64, steps=4)


def two_level(
    points: np.ndarray,
    weights: np.ndarray,
    n_clusters: int,
    rng: np.random.Generator,
    workers: Workers,
    advance: Callable[[int], None],
    *,
    effort: Effort = BEFORE_A_FIT,
    labelled: bool = True,
    levels: int | None = None,
) -> Start:
    """Seed `n_clusters` clusters on weighted points.

    Parameters
    ----------
    points : (N', D) float32 or float64
    weights : (N',) float64
    n_clusters : int
        At most the number of distinct points.
    rng : numpy Generator
    workers : Workers
    advance : callable
        Told how many clusters have been found since the last call.
    effort : Effort
    labelled : bool
        Somebody asks for the points' labels.
    levels : int or None
        As `divide` has them, but no more than `levels_at_most`; None: as many as it takes.

    Returns
    -------
    Start
        With no labels, and an error of NaN, if nobody asks for them.
    """
    cells = Cells(points, weights, rng, workers, effort=effort, labelled=labelled)
    if levels is None:
        levels = levels_for(n_clusters, LARGEST_CELL)
    divide(cells, n_clusters, min(levels, levels_at_most(n_clusters)))
    advance(n_clusters)
    if not labelled:
        return Start(cells.centres, np.empty(0, np.int32), math.nan, cells.n_evaluations)
    return Start(cells.centres, cells.labels, float(cells.errors().sum()), cells.n_evaluations, movable=True)


class Divisible(Protocol):
    """A partition of the points that is split finer and finer, wherever they are."""

    @property
    def sizes(self) -> np.ndarray:
        """Points in each cell, (n_cells,) int64."""
        ...

    def errors(self) -> np.ndarray:
        """Weighted squared error of every cell, (n_cells,) float64."""
        ...

    def split(self, children: np.ndarray) -> np.ndarray:
        """Replace every cell by as many as told, (n_cells,) int64; returns the parent of each new cell."""
        ...

    def cluster(self, expected: np.ndarray, n_clusters: int) -> None:
        """Replace the cells by `n_clusters` clusters, about as many from each as expected, (n_cells,) int64."""
        ...

    def cluster_alone(self, n_clusters: int) -> None:
        """Replace the one cell of all points by a few clusters."""
        ...

    def top_up(self, n_clusters: int) -> None:
        """Where cells ran out of different points, draw the clusters that are missing by D^2 from all points."""
        ...


def levels_for(n_clusters: int, largest_cell: int) -> int:
    """How many levels it takes if no cell is to be asked for more than so many clusters, itself more than one."""
    n_levels = max(1, math.ceil(math.log(n_clusters) / math.log(largest_cell)))
    return max(n_levels, 2) if n_clusters > ONE_LEVEL else n_levels


def levels_at_most(n_clusters: int) -> int:
    """How many levels clusters can be found in: each divides cells by four or more, but there are two in any case.

    Shares are rounded up at every level: with smaller steps there would be more cells than clusters in the end.
    """
    return max(2, int(math.log(n_clusters) / math.log(4)))


def divide(cells: Divisible, n_clusters: int, n_levels: int) -> None:
    """Split one cell of all points level by level, into `n_clusters` clusters at the last."""
    expected = np.array([n_clusters])
    for level in range(n_levels, 1, -1):
        parents = cells.split(np.ceil(expected ** (1 / level)).astype(np.int64))
        expected = share_by_error(cells.errors(), cells.sizes, parents, expected)
    if n_levels == 1:
        cells.cluster_alone(n_clusters)
    else:
        cells.cluster(expected, n_clusters)
    cells.top_up(n_clusters)


class Cells:
    """A partition of the points that is split finer and finer.

    Parameters
    ----------
    points, weights, rng, workers, effort, labelled : as in `two_level`

    Attributes
    ----------
    centres : (n_cells, D) float64
    labels : (N',) int32
    distances : (N',) float, squared, to the centre of the point's cell
    sizes : (n_cells,) int64
    """

    def __init__(
        self,
        points: np.ndarray,
        weights: np.ndarray,
        rng: np.random.Generator,
        workers: Workers,
        *,
        effort: Effort = BEFORE_A_FIT,
        labelled: bool = True,
    ) -> None:
        self.points = points
        self.weights = weights
        self.rng = rng
        self.workers = workers
        self.effort = effort
        self.labelled = labelled
        self.n_evaluations = 0
        self.centres = np.zeros((1, points.shape[1]))
        self.labels = np.zeros(len(points), np.int32)
        self.distances = np.zeros(len(points), points.dtype)
        self.sizes = np.array([len(points)])

    def errors(self) -> np.ndarray:
        """Weighted squared error of every cell, (n_cells,) float64."""
        return np.bincount(self.labels, self.weights * self.distances, len(self.sizes))

    def split(self, children: np.ndarray) -> np.ndarray:
        """Replace every cell by as many as told, (n_cells,) int64; returns the parent of each new cell."""
        if len(self.sizes) == 1:
            self._split_alone(int(children[0]), CARE, COARSE_SAMPLE, COARSE_STEPS, label=True)
            return np.zeros(len(self.centres), np.int64)
        order, start = sort_by_cluster(self.labels, len(self.sizes), self.workers)
        seeds, _, seed_start = self._seed(order, start, np.minimum(children, self.sizes))
        parents = np.repeat(np.arange(len(children)), np.diff(seed_start))[seeds >= 0]
        centre_start = np.concatenate([[0], np.cumsum(seeds >= 0)])[seed_start]
        self._lloyd(order, start, seeds[seeds >= 0], centre_start, COARSE_SAMPLE, COARSE_STEPS, label=True)
        return parents

    def cluster_alone(self, n_clusters: int) -> None:
        """Replace the one cell of all points by a few clusters."""
        sample = max(COARSE_SAMPLE, self.effort.sample)  # few clusters can afford it
        self._split_alone(n_clusters, CARE_FOR_FEW, sample, self.effort.steps, label=self.labelled)

    def _split_alone(self, n_cells: int, care: Care, sample_per_cell: int, steps: int, *, label: bool) -> None:
        """One cell would keep one thread busy: it clusters a sample alone, then all threads assign the rest."""
        n = min(len(self.points), sample_per_cell * n_cells)
        sample = ((np.arange(n) + self.rng.random(n)) * (len(self.points) / n)).astype(np.int64)
        sample = narrowed(np.minimum(sample, len(self.points) - 1), len(self.points))
        bounds = np.array([0, n])
        seeds, _, _ = self._seed(sample, bounds, np.array([n_cells]), care)
        seeds = seeds[seeds >= 0]
        self._lloyd(sample, bounds, seeds, np.array([0, len(seeds)]), sample_per_cell, steps, label=False)
        if not label and len(seeds) == n_cells:  # else those that are missing go where labels say
            return
        centres = self.centres.astype(self.points.dtype)
        in_steps = may_be_short(centres.shape[1])

        def work(_thread: int, first: int, last: int) -> None:
            assign_rows(first, last, self.points, centres, in_steps, self.labels, self.distances)

        self.workers.run(work, -(-len(self.points) // ROWS), self.points.size * len(centres))
        self.n_evaluations += len(self.points) * len(centres)
        self.sizes = np.bincount(self.labels, minlength=len(self.centres))

    def cluster(self, expected: np.ndarray, n_clusters: int) -> None:
        """Replace the cells by `n_clusters` clusters, about as many from each as expected, (n_cells,) int64."""
        n_cells = len(self.sizes)
        parents = np.arange(n_cells)
        many_rows = len(self.points) >= ROWS_FOR_PARTS * n_clusters
        if many_rows and n_clusters > SEEDED_TOGETHER * n_cells:
            parents = self.split(np.ceil(np.sqrt(expected)).astype(np.int64))
            expected = share_by_error(self.errors(), self.sizes, parents, expected)
        order, start = sort_by_cluster(self.labels, len(self.sizes), self.workers)
        wanted = np.minimum(np.ceil(self.effort.spare * expected).astype(np.int64) + 2, self.sizes)
        seeds, potentials, seed_start = self._seed(order, start, wanted)
        lengths = np.diff(seed_start)
        cell = np.repeat(np.arange(len(lengths)), lengths)
        available = np.bincount(cell[seeds >= 0], minlength=len(lengths))
        shares = share_by_potential(potentials, seed_start, available, n_clusters)
        seeds = seeds[np.arange(len(seeds)) - seed_start[cell] < shares[cell]]
        # Parts of a cell follow each other, and so do their points and seeds: what is theirs together is a run.
        first_part = np.searchsorted(parents, np.arange(n_cells + 1))
        centre_start = np.concatenate([[0], np.cumsum(shares)])[first_part]
        enough = len(seeds) == n_clusters  # else those that are missing go where labels say that they are missed
        sample, steps = self.effort.sample, self.effort.steps
        label = self.labelled or not enough
        self._lloyd(order, start[first_part], seeds, centre_start, sample, steps, label=label)
        if label:
            self._label_rest(order, start[first_part], np.diff(centre_start) == 0)

    def _label_rest(self, order: np.ndarray, start: np.ndarray, is_left: np.ndarray) -> None:
        """The nearest of all clusters for rows of cells (n_cells,) bool that got none, if any have rows."""
        rest = order[np.repeat(is_left, np.diff(start))]
        if len(rest) == 0:
            return
        labels, distances = np.empty(len(rest), np.int32), np.empty(len(rest), self.points.dtype)
        centres = self.centres.astype(self.points.dtype)
        in_steps = may_be_short(centres.shape[1])
        assign_rows(0, -(-len(rest) // ROWS), self.points[rest], centres, in_steps, labels, distances)
        self.labels[rest], self.distances[rest] = labels, distances
        self.sizes = np.bincount(self.labels, minlength=len(self.centres))

    def top_up(self, n_clusters: int) -> None:
        """Where cells ran out of different points, draw the clusters that are missing by D^2 from all points."""
        extra: list[np.ndarray] = []
        for label in range(len(self.centres), n_clusters):
            masses = self.weights * self.distances
            pick = draw_one(masses if masses.any() else self.weights, self.rng.random())
            before = self.distances.copy()
            lower_distances(0, len(before), self.points, pick, self.distances)
            self.labels[self.distances < before] = label
            extra.append(self.points[pick].astype(np.float64))
            self.n_evaluations += len(before)
        if extra:
            self.centres = np.vstack([self.centres, *extra])

    def _seed(
        self, order: np.ndarray, start: np.ndarray, wanted: np.ndarray, care: Care = CARE
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        about = (self.points, self.weights, order, start)
        seeds, potentials, seed_start, n_evaluations = seed_inside(*about, wanted, self.rng, self.workers, care)
        self.n_evaluations += n_evaluations
        return seeds, potentials, seed_start

    def _lloyd(
        self,
        order: np.ndarray,
        start: np.ndarray,
        seeds: np.ndarray,
        centre_start: np.ndarray,
        sample: int,
        steps: int,
        *,
        label: bool,
    ) -> None:
        self.centres, n_evaluations = cluster_inside(
            self.points, self.weights, order, start, seeds, centre_start, sample, steps, self.labels,
            self.distances, self.workers, label=label,
        )  # fmt: skip
        self.n_evaluations += n_evaluations
        if label:
            self.sizes = np.bincount(self.labels, minlength=len(self.centres))
