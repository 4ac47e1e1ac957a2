"""Blocked search: the points of a cluster share one list of candidates and one matrix product."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ...kernels.cells.sorting import take_rows
from ...kernels.seeding.rivals import LOOKED_AT
from ...parallel import MOVING, Workers
from ..cells.extent import Extent
from ..cells.natural import Natural
from ..cells.neighbourhoods import Neighbourhoods, sort_by_cluster
from ..cells.sums import Sums
from ..estep import State, scatter_of
from ..mstep import LocalStatistics, Statistics, initial_variance
from ..places import count_up, in_order, look_up, narrowed, place_type
from ..seeding.narrowing import narrow, widen
from ..seeding.relocation import Relocated, errors_and_losses, relocate
from . import beside

#: Points are put physically in order once this share of them has left its place.
RESORT_SHARE = 0.6


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
        `LocalPoints.reorder`, to change the order of points and winners in place.  Without it points are left as
        they are, and the search keeps a copy in its own order.
    rows : (N',) int, optional
        The points lie in the order of these rows, by label; weights and labels are given in another.
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
        reorder: Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], None] | None = None,
        rows: np.ndarray | None = None,
    ) -> None:
        self.points = points
        self.weights = weights
        self.total_weight = float(weights.sum())
        self._weigh_alike = bool(weights.min() == weights.max())
        self.winners = np.full((len(points), truncation), -1, np.int32)
        self.winners[:, 0] = labels if rows is None else in_order(labels, rows)
        self.neighbourhoods = Neighbourhoods(
            n_clusters, n_neighbors, max(n_candidates, truncation), n_explore, seed, workers
        )
        self.start_error = start_error
        self.variance_floor = variance_floor
        self.workers = workers
        self.reorder = reorder
        if rows is not None and not self._weigh_alike:
            self.weights = in_order(weights, rows)
        self._extent = Extent.of(points, self.weights, workers)
        self._misplaced = len(points) if rows is None else 0
        # Where each point was when it was given.
        self._rows = np.arange(len(points), dtype=place_type(len(points))) if rows is None else rows

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
        sums, linked = self._search(Natural.shared(means.astype(self.points.dtype)), -1.0)
        totals = sums.totals()
        return totals.error, totals.n_evaluations + linked

    def e_step(self, means: np.ndarray, variance: float | None) -> Statistics:
        """New winners and neighbours, and the sums of the M-step."""
        if variance is None:
            variance = initial_variance(self.start_error, self.total_weight, means.shape[1], self.variance_floor)
        used = means.astype(self.points.dtype, copy=False)
        sums, linked = self._search(Natural.shared(used), 0.5 / variance)
        return LocalStatistics.of(used, variance, sums.totals(), self.total_weight, linked, workers=self.workers)

    def scatter(self, statistics: Statistics, means: np.ndarray) -> float:
        """Scatter of the last E-step's responsibilities about other means."""
        used, variance = statistics.means, statistics.variance
        return scatter_of(self.points, self.weights, self.winners, used, variance, means, self.workers)

    def relocate(self, means: np.ndarray, rng: np.random.Generator) -> Relocated:
        """Move clusters to where more are needed; their points go with them."""
        about = self.points, self.weights
        errors, losses = errors_and_losses(*about, self.winners, means, self.workers)
        pairs, room = narrow(self.winners)
        moved = relocate(*about, pairs, errors, losses, means, rng, self.workers, room)
        widen(pairs, self.winners)
        self._misplaced += moved.n_points
        self.start_error = moved.error
        n_looked_at = len(self.points) * min(self.winners.shape[1], LOOKED_AT)
        return replace(moved, n_evaluations=moved.n_evaluations + n_looked_at)

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
        self._put_in_order(narrowed(state["rows"], len(self.points)))
        self.winners = state["winners"]
        self._misplaced = state["misplaced"]
        self.start_error = state["start_error"]
        self.neighbourhoods.restore(state)

    def _search(self, natural: Natural, precision: float) -> tuple[Sums, int]:
        """New winners of all points and the sums over them, and the number of costs computed to link clusters."""
        linked = self.neighbourhoods.update(natural)
        order, start = sort_by_cluster(self.winners, len(natural.means), self.workers)
        if self._misplaced > RESORT_SHARE * len(order):
            order = self._put_in_order(order)
        sums = Sums(natural, self._extent.rounding(natural), self.workers)
        candidates = self.neighbourhoods.candidates
        beside.wait()
        sums.search(self.points, self.weights, self.winners, order, start, candidates, precision)
        self._misplaced += sums.n_moved
        return sums, linked

    def _put_in_order(self, order: np.ndarray) -> np.ndarray:
        """Reorder the points themselves: reading rows in sequence is much faster than fetching them.

        The order (N',) that is given is written over; the one that is returned is that of points in order.
        """
        if self.reorder is not None:
            self.reorder(self.points, self.winners, order, self._rows)
        else:
            self.points, self.winners = self._taken(self.points, order), self._taken(self.winners, order)
        if not self._weigh_alike:
            self.weights = in_order(self.weights, order)
        self._misplaced = 0
        look_up(self._rows, order)
        self._rows, spare = order, self._rows
        count_up(spare)
        return spare

    def _taken(self, array: np.ndarray, order: np.ndarray) -> np.ndarray:
        """Rows in another order, as an array of their own."""
        taken = np.empty_like(array)

        def work(_thread: int, first: int, last: int) -> None:
            rows = order[first:last].astype(np.int64, copy=False)  # as everywhere, or it is compiled for anew
            take_rows(0, len(rows), array, rows, taken[first:last])

        self.workers.run(work, len(order), MOVING * array.size)
        return taken
