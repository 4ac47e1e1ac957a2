"""The cluster with about the largest joint of every point, at a cost that does not grow with their number."""

from __future__ import annotations

import numpy as np

from ...parallel import Workers
from ..cells.extent import Extent
from ..cells.neighbourhoods import Neighbourhoods, sort_by_cluster
from ..cells.sums import Sums
from ..passes.routing import FROM_CLUSTER, MOST_STEPS, N_LINKS, Routing
from .mixture import Mixture


class JointRouting:
    """From the nearest mean, which `Routing` finds, to clusters with larger and larger joints.

    Parameters
    ----------
    mixture : Mixture
    dtype : float32 or float64
        Type to compute in.
    neighbors : (C, G) int32
        G_c, as a fit has left them.
    workers : Workers
    """

    def __init__(self, mixture: Mixture, dtype: np.dtype, neighbors: np.ndarray, workers: Workers) -> None:
        self.natural = mixture.natural(dtype)
        self.nearest = Routing(mixture.means, dtype, neighbors, workers)
        n_clusters = len(mixture.means)
        width = min(FROM_CLUSTER, n_clusters)
        around = Neighbourhoods(n_clusters, min(neighbors.shape[1], width), width, 0, 0, workers)
        around.nearest[:, : neighbors.shape[1]] = neighbors[:, :width]  # known already, and so never lost
        for _ in range(N_LINKS):
            around.update(self.natural)
        self.around = around.candidates

    @property
    def means(self) -> np.ndarray:
        """(C, D), of the type computed in."""
        return self.nearest.means

    def labels_of(self, points: np.ndarray, workers: Workers) -> tuple[np.ndarray, int]:
        """A cluster with a large joint for every point (n, D), (n,) int32, and the number of costs computed."""
        labels, n_evaluations = self.nearest.labels_of(points, workers)
        rows = np.arange(len(points))
        n_features = points.shape[1]
        any_extent = Extent(1.0, np.ones(n_features), np.ones(n_features))  # the sums are not asked for
        rounding = any_extent.rounding(self.natural)
        for _ in range(MOST_STEPS):
            winners = labels[rows, None]
            order, start = sort_by_cluster(winners, len(self.around))
            step = Sums(self.natural, rounding, workers)
            step.search(points[rows], np.zeros(len(rows)), winners, order, start, self.around)
            n_evaluations += step.totals().n_evaluations
            moved = winners[:, 0] != labels[rows]
            labels[rows] = winners[:, 0]
            rows = rows[moved]
            if not len(rows):
                break
        return labels, n_evaluations
