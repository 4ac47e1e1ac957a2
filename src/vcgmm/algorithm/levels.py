"""A near cluster of any point without a look at all of them: coarse centres, finer ones, then the means.

The means are grouped around fewer centres, those again around fewer, until few are left.  A point is compared with
all of the few, then at every level with those near to the centre it is at.  What that costs grows with the
logarithm of the number of clusters.  The cluster found is near, not always the nearest: a search among the
candidates of that cluster follows.
"""

from __future__ import annotations

import math

import numpy as np

from ..kernels.descent import descend
from ..kernels.nearest import POINTS
from ..parallel import Workers
from .cells import cut_into_tasks, sort_by_cluster
from .nearest import Centres, k_nearest, nearest

#: Up to so many centres a point is compared with all of them.
TOP = 2048

#: Centres around each one of the level above, on average.  Large groups lead outliers astray (docs/log.md).
GROUP_SIZE = 4

#: Centres that a point is compared with on its way down a level.
LISTED = 512

#: Steps of k-means that make a level; it need not be a good one.
STEPS = 3


class Levels:
    """Coarse-to-fine centres over means.

    Parameters
    ----------
    means : (C, D) float32 or float64
    n_points : int
        How many points will be looked up: for fewer than there are means, levels cost more than they save.
    rng : numpy Generator
    workers : Workers
    """

    def __init__(self, means: np.ndarray, n_points: int, rng: np.random.Generator, workers: Workers) -> None:
        self.workers = workers
        self.n_evaluations = 0
        self._below: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []  # parents, their lists, centres
        centres = np.ascontiguousarray(means)
        while len(centres) > TOP and n_points > len(means):
            parents = self._group(centres, math.ceil(len(centres) / GROUP_SIZE), rng)
            lists = k_nearest(parents, centres, min(LISTED, len(centres)), workers)
            self.n_evaluations += len(parents) * len(centres)
            self._below.insert(0, (parents, lists, centres))
            centres = parents
        self._top = Centres(centres, centres.dtype)

    def near(self, points: np.ndarray) -> tuple[np.ndarray, int]:
        """A near cluster of every point.

        Parameters
        ----------
        points : (n, D), of the means' dtype

        Returns
        -------
        labels : (n,) int32
        n_evaluations : int
            Distances computed.
        """
        labels = np.empty(len(points), np.int32)
        distances = np.empty(len(points), points.dtype)

        def look(_thread: int, first: int, last: int) -> None:
            rows = slice(
                first * POINTS, last * POINTS
            )  # whole blocks: the same products for any number of threads
            self._top.nearest_of(points[rows], labels[rows], distances[rows])

        self.workers.run(look, -(-len(points) // POINTS))
        per_point = len(self._top.centres)
        for parents, lists, centres in self._below:
            labels = self._step_down(points, labels, parents, lists, centres)
            per_point += lists.shape[1]
        return labels, len(points) * per_point

    def _step_down(
        self, points: np.ndarray, labels: np.ndarray, parents: np.ndarray, lists: np.ndarray, centres: np.ndarray
    ) -> np.ndarray:
        order, start = sort_by_cluster(labels, len(parents))
        task_cell, task_start = cut_into_tasks(start)
        found = np.empty_like(labels)

        def work(_thread: int, first: int, last: int) -> None:
            descend(first, last, task_cell, task_start, points, order, parents, lists, centres, found)

        self.workers.run(work, len(task_cell))
        return found

    def _group(self, centres: np.ndarray, n_groups: int, rng: np.random.Generator) -> np.ndarray:
        """A few steps of k-means over centres (n, D), from some of themselves."""
        parents = centres[np.sort(rng.permutation(len(centres))[:n_groups])]
        for _ in range(STEPS):
            labels, _ = nearest(centres, parents, self.workers)
            self.n_evaluations += len(centres) * n_groups
            order, start = sort_by_cluster(labels, n_groups)
            sizes = np.diff(start)
            held = sizes > 0  # the others stay where they are
            sums = np.add.reduceat(centres[order], start[:-1][held], axis=0, dtype=np.float64)
            parents = parents.copy()
            parents[held] = sums / sizes[held, None]
        return parents
