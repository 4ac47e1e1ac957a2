"""Distributed search: means go out, sums come back, points and winners stay on the workers.

The lists of near clusters follow from the means alone, so the client makes them.  An E-step of a block is a pure
function of its points, its winners, means and lists; the new winners are the result of that task and an argument
of the next.  When a worker dies, Dask follows this chain back and computes again what is lost.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from distributed import Future

from ..algorithm.cells.extent import Extent
from ..algorithm.cells.natural import Natural
from ..algorithm.cells.neighbourhoods import Neighbourhoods
from ..algorithm.cells.sums import Totals
from ..algorithm.estep import State
from ..algorithm.mstep import Statistics, initial_variance
from ..algorithm.search.blocked import RESORT_SHARE
from .blocks import (
    Constants,
    add_all,
    extent_of,
    first_winners,
    put_in_order,
    scatter_block,
    search_block,
)
from .transport import Placement, add_up, hand_out, split


class DistributedSearch:
    """The blocked search over points on many workers, a `Search` like the local ones.

    Parameters
    ----------
    placement : Placement
    blocks : sequence of Future
        Of `Block`.
    labels : sequence of Future
        A near cluster of every point of each block, (n,) int32.
    n_points : int
        In all blocks.
    neighbourhoods : Neighbourhoods
    truncation : int
    dtype : float32 or float64
        Of the points.
    start_error : float
        Weighted squared distance to `labels`.
    variance_floor : float
    n_threads : int or None
        Of a task; None: as many as its worker has.
    """

    def __init__(
        self,
        placement: Placement,
        blocks: Sequence[Future],
        labels: Sequence[Future],
        n_points: int,
        neighbourhoods: Neighbourhoods,
        truncation: int,
        dtype: np.dtype,
        start_error: float,
        variance_floor: float,
        n_threads: int | None,
    ) -> None:
        self.client = placement.client
        self.placement = placement
        self.blocks = list(blocks)
        self.n_points = n_points
        self.neighbourhoods = neighbourhoods
        self.dtype = dtype
        self.start_error = start_error
        self.variance_floor = variance_floor
        self.n_threads = n_threads
        self.winners = [placement.submit(i, first_winners, one, truncation) for i, one in enumerate(labels)]
        extents = [placement.submit(i, extent_of, block, n_threads) for i, block in enumerate(blocks)]
        self._extent: Extent = add_up(self.client, extents, add_all).result()
        self._misplaced = n_points
        self._sent = np.empty((0, 0), np.int32)  # the candidates that are out already
        self._candidates = hand_out(self.client, self._sent)

    @property
    def neighbors(self) -> np.ndarray:
        """G_c, (C, G) int32."""
        return self.neighbourhoods.neighbors

    def warm_up(self, means: np.ndarray) -> tuple[float, int]:
        """One E-step without responsibilities: error of the nearest winners, distances computed."""
        totals, linked = self._search(means.astype(self.dtype), -1.0)
        return totals.error, totals.n_evaluations + linked

    def e_step(self, means: np.ndarray, variance: float | None) -> Statistics:
        """New winners and neighbours, and the sums of the M-step."""
        total_weight = self._extent.total_weight
        if variance is None:
            variance = initial_variance(self.start_error, total_weight, means.shape[1], self.variance_floor)
        used = means.astype(self.dtype)
        totals, linked = self._search(used, 0.5 / variance)
        return Statistics.of(used, variance, totals, total_weight, linked)

    def scatter(self, statistics: Statistics, means: np.ndarray) -> float:
        """Scatter of the last E-step's responsibilities about other means."""
        used, new = hand_out(self.client, statistics.means), hand_out(self.client, means)
        parts = [
            self.placement.submit(i, scatter_block, block, winners, used, statistics.variance, new, self.n_threads)
            for i, (block, winners) in enumerate(zip(self.blocks, self.winners, strict=True))
        ]
        return float(sum(self.client.gather(parts)))

    def state(self) -> State:
        """Not offered: it would bring all points and winners to the client, who asked for them to stay away."""
        raise NotImplementedError(
            "A distributed search cannot be kept: its points and winners are on the workers."
        )

    def restore(self, state: State) -> None:
        """Not offered, as there is no state to restore."""
        raise NotImplementedError(f"A distributed search cannot go on from a state with {sorted(state)}.")

    def _search(self, means: np.ndarray, precision: float) -> tuple[Totals, int]:
        natural = Natural.shared(means)
        linked = self.neighbourhoods.update(natural)
        self.placement.update()
        if self._misplaced > RESORT_SHARE * self.n_points:
            self._put_in_order(len(means))
        if not np.array_equal(self._sent, self.neighbourhoods.candidates):
            self._sent = self.neighbourhoods.candidates.copy()  # the next update changes them in place
            self._candidates = hand_out(self.client, self._sent)
        used = hand_out(self.client, means)
        constants = hand_out(self.client, Constants(precision, self._extent.rounding(natural)))
        pairs = [
            self.placement.submit(
                i, search_block, block, winners, used, self._candidates, constants, self.n_threads
            )
            for i, (block, winners) in enumerate(zip(self.blocks, self.winners, strict=True))
        ]
        halves = [split(self.client, pair) for pair in pairs]
        self.winners = [winners for _, winners in halves]
        totals: Totals = add_up(self.client, [one for one, _ in halves], add_all).result()
        self._misplaced += totals.n_moved
        return totals, linked

    def _put_in_order(self, n_clusters: int) -> None:
        """Reorder the points of every block by their nearest cluster."""
        for i, (block, winners) in enumerate(zip(self.blocks, self.winners, strict=True)):
            ordered = self.placement.submit(i, put_in_order, block, winners, n_clusters)
            self.blocks[i], self.winners[i] = split(self.client, ordered)
        self._misplaced = 0
