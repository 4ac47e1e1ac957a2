"""A near cluster of every point at a cost that does not grow with the number of clusters.

Every cluster knows the clusters around it.  A point is first compared with at most `MOST_LANDMARKS` landmarks,
then with the clusters around the nearest of them, then with those around the nearest cluster found, and so on
until none is nearer: O((landmarks + steps x candidates) D) a point.  Points at the same cluster take a step
together: what is around it is made ready once for all of them.
"""

from __future__ import annotations

import math

import numpy as np

from ...kernels.nearest.routing import step_to_nearest
from ...kernels.parts.shorts import FEATURES, may_be_short
from ...parallel import Workers
from ..cells.natural import Natural
from ..cells.neighbourhoods import Neighbourhoods, cut_into_tasks, sort_by_cluster
from ..nearest import k_nearest, nearest
from ..random import generator
from ..seeding.two_level import Cells

#: Up to so many clusters, comparing a row with all of them takes no longer than finding its way; up to twice as
#: many where rows are wide enough for `kernels.parts.shorts`.
ALL_COMPARED = 2048

#: Clusters for each landmark, and most landmarks.
PER_LANDMARK = 32
MOST_LANDMARKS = 1024

#: Clusters around a landmark, and around a cluster, that a point is compared with.
FROM_LANDMARK = 384
FROM_CLUSTER = 256

#: Most steps from cluster to cluster.
MOST_STEPS = 8

#: Rounds in which the clusters around each cluster are searched.
N_LINKS = 8


def finds_its_way(n_clusters: int, n_features: int) -> bool:
    """Whether a row finds its way among so many clusters sooner than it is compared with all of them."""
    return n_clusters > (ALL_COMPARED if n_features < FEATURES else 2 * ALL_COMPARED)


class Routing:
    """Landmarks, and the clusters around each of them and around each cluster.

    Parameters
    ----------
    means : (C, D) float
    dtype : float32 or float64
        Type to compute in.
    neighbors : (C, G) int32
        G_c, as a fit has left them.
    workers : Workers

    Attributes
    ----------
    n_evaluations : int
        Distances computed to make it.
    """

    def __init__(self, means: np.ndarray, dtype: np.dtype, neighbors: np.ndarray, workers: Workers) -> None:
        self.means = np.ascontiguousarray(means, dtype=dtype)
        n_clusters = len(means)
        cells = Cells(self.means, np.ones(n_clusters), generator(0), workers)
        cells.split(np.array([max(1, min(math.ceil(n_clusters / PER_LANDMARK), MOST_LANDMARKS))]))
        self.landmarks = cells.centres.astype(dtype)
        self.entries = k_nearest(self.landmarks, self.means, min(FROM_LANDMARK, n_clusters), workers)
        width = min(FROM_CLUSTER, n_clusters)
        around = Neighbourhoods(n_clusters, min(neighbors.shape[1], width), width, 0, 0, workers)
        around.nearest[:, : neighbors.shape[1]] = neighbors[:, :width]  # known already, and so never lost
        self.n_evaluations = cells.n_evaluations + len(self.landmarks) * n_clusters
        natural = Natural.shared(self.means)
        for _ in range(N_LINKS):
            self.n_evaluations += around.update(natural)
        self.around = around.candidates

    def labels_of(self, points: np.ndarray, workers: Workers) -> tuple[np.ndarray, int]:
        """A near cluster of every point.

        Parameters
        ----------
        points : (n, D) of the structure's dtype
            The more there are, the more of them share a product.
        workers : Workers

        Returns
        -------
        labels : (n,) int32
        n_evaluations : int
            Distances computed.
        """
        rows = np.arange(len(points))
        labels = np.zeros(len(points), np.int32)
        near = np.full(len(points), np.inf, points.dtype)
        at, _ = nearest(points, self.landmarks, workers)
        self._step(points, rows, at, self.entries, labels, near, workers)
        n_evaluations = len(points) * (len(self.landmarks) + self.entries.shape[1])
        for _ in range(MOST_STEPS):
            at = labels[rows]
            self._step(points, rows, at, self.around, labels, near, workers)
            n_evaluations += len(rows) * self.around.shape[1]
            rows = rows[labels[rows] != at]
            if not len(rows):
                break
        return labels, n_evaluations

    def _step(
        self,
        points: np.ndarray,
        rows: np.ndarray,
        at: np.ndarray,
        candidates: np.ndarray,
        labels: np.ndarray,
        near: np.ndarray,
        workers: Workers,
    ) -> None:
        """Move each of these rows to the nearest candidate of where it is `at`, if that is nearer than before."""
        order, start = sort_by_cluster(at, len(candidates), workers)
        task_cell, task_start = cut_into_tasks(start)
        order = rows[order]
        in_steps = may_be_short(points.shape[1])

        def work(_thread: int, first: int, last: int) -> None:
            step_to_nearest(
                first, last, task_cell, task_start, order, points, candidates, self.means, in_steps, labels, near
            )

        workers.run(work, len(task_cell))
