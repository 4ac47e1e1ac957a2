"""Blocked search: the points of a cluster share one list of candidates and one matrix product."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..kernels.blocked import search_tasks
from ..kernels.selection import key_indices, key_type
from ..kernels.sorting import take_rows
from ..parallel import Workers
from .cells import Neighbourhoods, cut_into_tasks, sort_by_cluster
from .estep import Quanta, State, scatter_of
from .mstep import Statistics, initial_variance

#: Points are put physically in order once this share of them has left its place.
RESORT_SHARE = 0.2


class BlockedSearch:
    """E-steps over cells, with the sums of the M-step in the same pass.

    Parameters
    ----------
    points : (N', D) float32 or float64
    weights : (N',) float64
    labels : (N',) int32
        A near cluster of every point.
    n_clusters, truncation, n_neighbors, n_candidates, n_explore : int
    seed : int
    start_error : float
        Weighted squared distance to `labels`: where no variance is known, it begins from this.
    variance_floor : float
    workers : Workers
    reorder : callable, optional
        `LocalPoints.reorder`, to change the order of `points` in place.  Without it they are left as they are, and
        the search keeps a copy in its own order.
    """

    def __init__(
        self,
        points: np.ndarray,
        weights: np.ndarray,
        labels: np.ndarray,
        n_clusters: int,
        truncation: int,
        n_neighbors: int,
        n_candidates: int,
        n_explore: int,
        seed: int,
        start_error: float,
        variance_floor: float,
        workers: Workers,
        reorder: Callable[[np.ndarray, np.ndarray, np.ndarray], None] | None = None,
    ) -> None:
        self.points = points
        self.weights = weights
        self.total_weight = float(weights.sum())
        self.winners = np.full((len(points), truncation), -1, np.int32)
        self.winners[:, 0] = labels
        self.neighbourhoods = Neighbourhoods(
            n_clusters, n_neighbors, max(n_candidates, truncation), n_explore, seed, workers
        )
        self.start_error = start_error
        self.variance_floor = variance_floor
        self.workers = workers
        self.reorder = reorder
        self._quanta = Quanta(points, weights, workers)
        self._misplaced = len(points)
        self._rows = np.arange(
            len(points), dtype=np.int32 if len(points) < 1 << 31 else np.int64
        )  # where each point was when it was given

    @property
    def neighbors(self) -> np.ndarray:
        """G_c, (C, G) int32."""
        return self.neighbourhoods.neighbors

    def labels(self) -> np.ndarray:
        """The nearest known cluster of every point, (N',) int32, in the order in which the points were given."""
        labels = np.empty(len(self._rows), np.int32)
        labels[self._rows] = self.winners[:, 0]
        return labels

    def warm_up(self, means: np.ndarray) -> tuple[float, int]:
        """One E-step without responsibilities: error of the nearest winners, distances computed."""
        facts, _, _, linked = self._search(means.astype(self.points.dtype), -1.0)
        return float(facts[2]), int(facts[4]) + linked

    def e_step(self, means: np.ndarray, variance: float | None) -> Statistics:
        """New winners and neighbours, and the sums of the M-step."""
        if variance is None:
            variance = initial_variance(self.start_error, self.total_weight, means.shape[1], self.variance_floor)
        used = means.astype(self.points.dtype)
        facts, shifts, masses, linked = self._search(used, 0.5 / variance)
        return Statistics(
            means=used.astype(np.float64),
            variance=variance,
            shifts=shifts,
            masses=masses,
            scatter=float(facts[1]),
            log_sum=float(facts[0]),
            total_weight=self.total_weight,
            n_evaluations=int(facts[4]) + linked,
        )

    def scatter(self, statistics: Statistics, means: np.ndarray) -> float:
        """Scatter of the last E-step's responsibilities about other means."""
        used, variance = statistics.means, statistics.variance
        return scatter_of(self.points, self.weights, self.winners, used, variance, means, self.workers)

    def state(self) -> State:
        """All that the next E-step depends on; winners are in the order in which the points lie."""
        return {
            "rows": self._rows.astype(np.int64),
            "winners": self.winners,
            "misplaced": self._misplaced,
            "start_error": self.start_error,
            **self.neighbourhoods.state(),
        }

    def restore(self, state: State) -> None:
        """Go on from a state; the points must still lie as they were given."""
        self._put_in_order(state["rows"])
        self.winners = state["winners"]
        self._misplaced = state["misplaced"]
        self.start_error = state["start_error"]
        self.neighbourhoods.restore(state)

    def _search(self, means: np.ndarray, precision: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        linked = self.neighbourhoods.update(means)
        order, start = sort_by_cluster(self.winners[:, 0], len(means))
        if self._misplaced > RESORT_SHARE * len(order):
            order = self._put_in_order(order)
        facts, shifts, masses = search_cells(
            self.points, self.weights, self.winners, order, start, self.neighbourhoods.candidates, means,
            precision, self._quanta.magic_numbers(means), self.workers,
        )  # fmt: skip
        self._misplaced += int(facts[3])
        return facts, shifts, masses, linked

    def _put_in_order(self, order: np.ndarray) -> np.ndarray:
        """Reorder the points themselves: reading rows in sequence is much faster than fetching them."""
        winners = np.empty_like(self.winners)
        self._rows = self._rows[order]
        points = self.points if self.reorder is not None else np.empty_like(self.points)

        def work(_thread: int, first: int, last: int) -> None:
            take_rows(first, last, self.winners, order, winners)
            if self.reorder is None:
                take_rows(first, last, self.points, order, points)

        self.workers.run(work, len(order))
        if self.reorder is not None:
            self.reorder(points, order, self._rows)
        self.points, self.winners = points, winners
        self.weights = self.weights[order]
        self._misplaced = 0
        return np.arange(len(order))


def search_cells(
    points: np.ndarray,
    weights: np.ndarray,
    winners: np.ndarray,
    order: np.ndarray,
    start: np.ndarray,
    candidates: np.ndarray,
    means: np.ndarray,
    precision: float,
    magic: tuple[np.ndarray, np.ndarray, float],
    workers: Workers,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One search over points that know nothing of any others: their sums may be added to those of other points.

    Parameters
    ----------
    points : (n, D) float
    weights : (n,) float64
    winners : (n, C') int32
        Changed in place.
    order, start
        From `sort_by_cluster`.
    candidates : (C, L) int32
    means : (C, D) float
        Of the points' type.
    precision : float
        1 / (2 sigma^2); negative: the nearest takes all.
    magic
        From `Quanta.magic_numbers`, over all points whose sums will be added up.
    workers : Workers

    Returns
    -------
    facts : (5,) float64
        Those of `search_tasks`, summed.
    shifts : (C, D) float64
    masses : (C,) float64
    """
    task_cell, task_start = cut_into_tasks(start)
    n_candidates = candidates.shape[1]
    indices = key_indices(n_candidates, key_type(points.dtype, n_candidates))
    shift_magic, magic_row, mass_magic = magic
    shifts = [np.zeros(means.shape) for _ in range(workers.n_threads)]
    masses = [np.zeros(len(means)) for _ in range(workers.n_threads)]
    facts = np.zeros((len(task_cell), 5))

    def work(thread: int, first: int, last: int) -> None:
        search_tasks(
            first, last, task_cell, task_start, points, weights, order, candidates, means, winners, precision,
            indices, shift_magic, magic_row, mass_magic, shifts[thread], masses[thread], facts,
        )  # fmt: skip

    workers.run(work, len(task_cell))
    for thread in range(1, workers.n_threads):
        shifts[0] += shifts[thread]
        masses[0] += masses[thread]
    return facts.sum(axis=0), shifts[0], masses[0]
