"""Device search: points, winners and sums stay on the device; EM sees arrays that NumPy works on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

from ..algorithm.estep import State
from ..algorithm.mstep import Statistics, initial_variance
from .arrays import DeviceArray, as_tensor
from .cells import Pieces, cut, sort_by_group
from .costs import Costs
from .nearest import Posterior, distances_of, launch_search, unlisted_distances
from .neighbourhoods import DeviceNeighbourhoods
from .points import DevicePoints
from .sums import Entries, entries_of, weighted_sums
from .tiling import tiling


@dataclass(frozen=True)
class Found:
    """What a search over all points has found, beside winners and shares.

    Attributes
    ----------
    facts : (n_pieces, 4) float64 tensor
        Those of `search_tiles`.
    pieces : Pieces
    n_evaluations : int
        Distances computed, without those of winners that were not listed.
    """

    facts: torch.Tensor
    pieces: Pieces
    n_evaluations: int

    def totals(self, *others: torch.Tensor) -> Totals:
        """The facts added up, and all distances computed; the host waits for them once.

        What else the host wants to know, the sums of other tensors, comes with them.
        """
        every = [self.facts.sum(0), *(other.sum().view(1) for other in others)]
        log_sum, scatter, error, n_unlisted, *more = torch.cat(every).tolist()
        return Totals(log_sum, scatter, error, self.n_evaluations + int(n_unlisted), more)


class Totals(NamedTuple):
    """Sums over all points: those of `search_tiles`, distances computed, and of what else was asked for."""

    log_sum: float
    scatter: float
    error: float
    n_evaluations: int
    others: list[float]


@dataclass(frozen=True)
class DeviceStatistics(Statistics):
    """Those of an E-step on the device, which has taken what follows from the sums of a cluster along with them.

    Attributes
    ----------
    found_moves : (C, D) float64
    found_gain : float
    """

    found_moves: np.ndarray
    found_gain: float

    @property
    def moves(self) -> np.ndarray:
        """As of `Statistics`."""
        return self.found_moves

    @property
    def gain(self) -> float:
        """Likewise."""
        return self.found_gain


class DeviceSearch:
    """The blocked search on the device, a `Search` like the local ones.

    Points are never put in another order: a row is one long read, wherever it lies.

    Parameters
    ----------
    points : DevicePoints
    labels : (N',) int32 tensor
        A near cluster of every point.
    neighbourhoods : DeviceNeighbourhoods
    truncation : int
    start_error : float
        Weighted squared distance to `labels`.
    variance_floor : float
    """

    def __init__(
        self,
        points: DevicePoints,
        labels: torch.Tensor,
        neighbourhoods: DeviceNeighbourhoods,
        truncation: int,
        start_error: float,
        variance_floor: float,
    ) -> None:
        self.points = points
        self.total_weight = float(points.weights.double().sum())
        self.neighbourhoods = neighbourhoods
        self.truncation = truncation
        self.start_error = start_error
        self.variance_floor = variance_floor
        shape = (len(points), truncation)
        self.winners = torch.full(shape, -1, dtype=torch.int32, device=points.device)
        self.winners[:, 0] = labels
        self._spare = torch.empty_like(self.winners)
        self._posterior = Posterior.empty(shape, len(neighbourhoods.nearest), points.device)
        self._posterior.labels.copy_(labels)
        self._only_labels = True  # nothing but the nearest is known yet

    @property
    def neighbors(self) -> np.ndarray:
        """G_c, (C, G) int32."""
        return self.neighbourhoods.neighbors.cpu().numpy()

    def labels(self) -> torch.Tensor:
        """The nearest known cluster of every point, (N',) int32."""
        return self.winners[:, 0]

    def warm_up(self, means: Any) -> tuple[float, int]:
        """One E-step without responsibilities: error of the nearest winners, distances computed."""
        used = as_tensor(means, self.points.device).float()
        linked = self.neighbourhoods.update(used)
        totals = self._search(used, -1.0).totals()
        return totals.error, linked + totals.n_evaluations

    def e_step(self, means: Any, variance: float | None) -> Statistics:
        """New winners and neighbours, and the sums of the M-step."""
        if variance is None:
            variance = initial_variance(self.start_error, self.total_weight, means.shape[1], self.variance_floor)
        used = as_tensor(means, self.points.device).float()
        linked = self.neighbourhoods.update(used)
        found = self._search(used, 0.5 / variance)
        sums = weighted_sums(self.points, self.entries(), used)
        arrays: dict[str, Any] = {
            "means": DeviceArray(used.double()),
            "shifts": DeviceArray(sums.shifts),
            "masses": DeviceArray(sums.masses),
            "found_moves": DeviceArray(sums.moves),
        }
        totals = found.totals(sums.gains)
        return DeviceStatistics(
            variance=variance,
            scatter=totals.scatter,
            log_sum=totals.log_sum,
            total_weight=self.total_weight,
            n_evaluations=linked + totals.n_evaluations,
            found_gain=totals.others[0],
            **arrays,
        )

    def scatter(self, statistics: Statistics, means: Any) -> float:  # noqa: ARG002
        """Scatter of the last E-step's responsibilities about other means."""
        return self.scatter_about(as_tensor(means, self.points.device).float())

    def scatter_about(self, centres: torch.Tensor) -> float:
        """The same, of centres (C, D) float32."""
        entries = self.entries()
        distances = distances_of(self.points, entries.rows(), entries.clusters(), centres)
        return float(torch.dot(entries.parts[entries.order].double(), distances.double()))

    def state(self) -> State:
        """All that the next E-step depends on, on the host; points lie in the order in which they were given."""
        return {
            "rows": np.arange(len(self.points)),
            "winners": self.winners.cpu().numpy(),
            "misplaced": 0,
            "start_error": self.start_error,
            **self.neighbourhoods.state(),
        }

    def restore(self, state: State) -> None:
        """Go on from a state."""
        self.winners.copy_(torch.from_numpy(state["winners"]))
        self._posterior.labels.copy_(self.winners[:, 0])
        self._only_labels = bool((self.winners[:, 1:] < 0).all())
        self.start_error = state["start_error"]
        self.neighbourhoods.restore(state)

    def entries(self) -> Entries:
        """The winners of the last E-step with their responsibilities, by cluster."""
        return entries_of(self._posterior.keys, self._posterior.shares, len(self.neighbourhoods.nearest))

    def _search(self, means: torch.Tensor, precision: float, costs: Costs | None = None) -> Found:
        """New winners and shares."""
        points, near = self.points, self.neighbourhoods
        groups = sort_by_group(self._posterior.labels, len(means))
        extra = None
        if not self._only_labels:
            extra = unlisted_distances(points, near.ordered, means, self.winners, costs)
        tiles = tiling(points.n_features, len(points) / len(means), near.lists.longest, points.precision)
        pieces = cut(groups.start, tiles.points, len(points))
        posterior = self._posterior.with_facts(len(pieces))
        launch_search(
            points, groups.order, pieces, means, near.lists, means, tiles, points.precision, self._spare,
            old=None if extra is None else self.winners, extra=extra, precision=precision, posterior=posterior,
            costs=costs,
        )  # fmt: skip
        self.winners, self._spare = self._spare, self.winners
        self._only_labels = False
        return Found(posterior.facts, pieces, len(points) * near.lists.longest)
