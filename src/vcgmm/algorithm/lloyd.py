"""Lloyd's algorithm: k-means, the yardstick of the paper, with its stopping criterion.

k-means is variational EM with one winner for each point, found among all clusters (Lücke and Forster 2019): its
bound is F of a single-winner posterior.  It is not needed for an iteration, so it is computed outside the clock.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from ..kernels.nearest.lloyd import mean_of_groups
from ..parallel import MOVING, Workers
from .bound import bound_of
from .cells.neighbourhoods import sort_by_cluster
from .em import relative_change
from .mstep import initial_variance
from .nearest import nearest


@dataclass
class Lloyd:
    """Where Lloyd's algorithm has come to.

    Attributes
    ----------
    means : (C, D) float64
    bounds : list of float
        F after each assignment, with the means and the variance before it.
    converged : bool
    n_evaluations : int
        Distances computed in assignments: N' C each.
    seconds : float
        Time of assignments and means, without the bound.
    """

    means: np.ndarray
    bounds: list[float] = field(default_factory=list)
    converged: bool = False
    n_evaluations: int = 0
    seconds: float = 0.0


def lloyd(
    points: np.ndarray,
    weights: np.ndarray,
    means: np.ndarray,
    *,
    tol: float,
    max_iter: int,
    variance_floor: float,
    log_scale: float,
    workers: Workers,
) -> Lloyd:
    """Assign every point to its nearest mean and move the means, until the bound converges.

    Parameters
    ----------
    points : (N', D) float32 or float64
    weights : (N',) float64
    means : (C, D) float64
        What the first assignment uses.
    tol : float
        Converged when the bound's relative change falls below it, as in `em.variational_em`.
    max_iter : int
    variance_floor : float
    log_scale : float
        Of the local coordinates, so that the bound is told in data coordinates.
    workers : Workers
    """
    n_clusters, n_features = means.shape
    total_weight = float(weights.sum())
    now = Lloyd(means)
    variance: float | None = None
    while len(now.bounds) < max_iter and not now.converged:
        begun = time.perf_counter()
        labels, distances = nearest(points, now.means, workers)
        now.means, moved = means_of(points, weights, labels, now.means, workers)
        now.seconds += time.perf_counter() - begun
        now.n_evaluations += len(points) * n_clusters

        error = float(np.dot(weights, distances.astype(np.float64)))
        if variance is None:
            variance = initial_variance(error, total_weight, n_features, variance_floor)
        log_sum = -0.5 * error / variance
        now.bounds.append(bound_of(log_sum, total_weight, variance, n_clusters, n_features, log_scale))
        now.converged = relative_change(now.bounds) < tol
        variance = initial_variance(float(np.dot(weights, moved)), total_weight, n_features, variance_floor)
    return now


def means_of(
    points: np.ndarray, weights: np.ndarray, labels: np.ndarray, before: np.ndarray, workers: Workers
) -> tuple[np.ndarray, np.ndarray]:
    """Weighted mean of every cluster's points; one without any stays where it was.

    Parameters
    ----------
    points : (N', D) float32 or float64
    weights : (N',) float64
    labels : (N',) int32
    before : (C, D) float64
    workers : Workers

    Returns
    -------
    means : (C, D) float64
    distances : (N',) float64
        Squared, of every point to the new mean of its cluster.
    """
    n_clusters = len(before)
    order, start = sort_by_cluster(labels, n_clusters, workers)
    means, distances = np.empty_like(before), np.empty(len(points))

    def work(_thread: int, first: int, last: int) -> None:
        mean_of_groups(first, last, points, weights, order, start, means, distances)

    workers.run(work, n_clusters, MOVING * points.size)
    empty = np.diff(start) == 0
    means[empty] = before[empty]
    return means, distances
