"""Pointwise search: exactly the paper's Algorithm 2, one search space per point."""

from __future__ import annotations

import numpy as np

from ...kernels.search.pointwise import search_points, sum_points, update_neighbors
from ...parallel import Workers
from ..cells.extent import Extent
from ..cells.natural import Natural
from ..cells.neighbourhoods import sort_by_cluster
from ..cells.thread_sums import ThreadSums
from ..estep import State, scatter_of
from ..mstep import LocalStatistics, Statistics, initial_variance
from ..random import distinct_clusters, generator, random_clusters


class PointwiseSearch:
    """E-steps over the search spaces G(n), from random winners and neighbours or given ones.

    Like the paper it keeps every evaluated distance until the neighbours are updated: O(N' C' G) memory.

    Parameters
    ----------
    points : (N', D) float32 or float64
    weights : (N',) float64
    n_clusters, truncation, n_neighbors, n_explore : int
    seed : int
    variance_floor : float
    workers : Workers
    winners : (N', C') int32, optional
    neighbors : (C, G) int32, optional
    """

    def __init__(
        self,
        points: np.ndarray,
        weights: np.ndarray,
        n_clusters: int,
        truncation: int,
        n_neighbors: int,
        n_explore: int,
        seed: int,
        variance_floor: float,
        workers: Workers,
        winners: np.ndarray | None = None,
        neighbors: np.ndarray | None = None,
    ) -> None:
        self.points = points
        self.weights = weights
        self.total_weight = float(weights.sum())
        self.n_explore = n_explore
        self.seed = seed
        self.variance_floor = variance_floor
        self.workers = workers
        self.n_searches = 0
        self._extent = Extent.of(points, weights, workers)
        if winners is None:
            winners = distinct_clusters(len(points), truncation, n_clusters, generator(seed, 0))
        self.winners = winners
        self.neighbors = self._random_neighbors(n_clusters, n_neighbors) if neighbors is None else neighbors
        self.near = np.empty((len(points), truncation), points.dtype)

    def warm_up(self, means: np.ndarray) -> tuple[float, int]:
        """One E-step without responsibilities: error of the nearest winners, distances computed."""
        n_evaluations = self._search(means.astype(self.points.dtype))
        return self._error(), n_evaluations

    def e_step(self, means: np.ndarray, variance: float | None) -> Statistics:
        """New winners and neighbours, and the sums of the M-step."""
        used = means.astype(self.points.dtype)
        n_evaluations = self._search(used)
        n_clusters, n_features = used.shape
        if variance is None:
            variance = initial_variance(self._error(), self.total_weight, n_features, self.variance_floor)
        rounding = self._extent.rounding(Natural.shared(used))
        sums = ThreadSums(self.workers, (n_clusters, n_features), (n_clusters,))
        facts = np.empty((len(self.points), 2))
        precision = 0.5 / variance

        def work(thread: int, first: int, last: int) -> None:
            shifts, masses = sums.of(thread)
            sum_points(
                first, last, self.points, self.weights, used, self.winners, self.near, precision,
                rounding.shifts, rounding.rows, rounding.masses, shifts, masses, facts,
            )  # fmt: skip

        self.workers.run(work, len(self.points))
        log_sum, scatter = facts.sum(axis=0)
        shifts, masses = sums.total()
        return LocalStatistics(
            means=used,
            variance=variance,
            shifts=shifts,
            masses=masses,
            scatter=float(scatter),
            log_sum=float(log_sum),
            total_weight=self.total_weight,
            n_evaluations=n_evaluations,
            workers=self.workers,
        )

    def _error(self) -> float:
        return float(np.dot(self.weights, self.near[:, 0].astype(np.float64)))

    def scatter(self, statistics: Statistics, means: np.ndarray) -> float:
        """Scatter of the last E-step's responsibilities about other means."""
        used, variance = statistics.means, statistics.variance
        return scatter_of(self.points, self.weights, self.winners, used, variance, means, self.workers)

    def state(self) -> State:
        """All that the next E-step depends on."""
        return {"winners": self.winners, "neighbors": self.neighbors, "n_searches": self.n_searches}

    def restore(self, state: State) -> None:
        """Go on from a state."""
        self.winners, self.neighbors = state["winners"], state["neighbors"]
        self.n_searches = state["n_searches"]

    def _search(self, means: np.ndarray) -> int:
        n_points, n_winners = self.winners.shape
        n_clusters, n_neighbors = self.neighbors.shape
        self.n_searches += 1
        rng = generator(self.seed, 2, self.n_searches)
        explored = random_clusters((n_points, self.n_explore), n_clusters, rng)
        width = min(n_clusters, n_winners * n_neighbors + self.n_explore)
        space = np.empty((n_points, width), np.int32)
        distances = np.empty((n_points, width), means.dtype)

        def search(_thread: int, first: int, last: int) -> None:
            search_points(
                first,
                last,
                self.points,
                means,
                self.neighbors,
                explored,
                self.winners,
                self.near,
                space,
                distances,
            )

        self.workers.run(search, n_points)
        order, start = sort_by_cluster(self.winners, n_clusters, self.workers)
        updated = np.empty_like(self.neighbors)

        def update(_thread: int, first: int, last: int) -> None:
            update_neighbors(first, last, order, start, space, distances, self.neighbors, updated)

        self.workers.run(update, n_clusters)
        self.neighbors = updated
        return int(np.count_nonzero(space >= 0))

    def _random_neighbors(self, n_clusters: int, n_neighbors: int) -> np.ndarray:
        """Every cluster itself, then others at random."""
        others = distinct_clusters(n_clusters, n_neighbors - 1, n_clusters - 1, generator(self.seed, 1))
        itself = np.arange(n_clusters, dtype=np.int32)[:, None]
        return np.hstack([itself, others + (others >= itself)]).astype(np.int32)
