"""Device search: points, winners and sums stay on the device; EM sees arrays that NumPy works on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ..algorithm.estep import State
from ..algorithm.mstep import Statistics, initial_variance
from .arrays import DeviceArray, as_tensor
from .cells import Pieces, cut, sort_by_group
from .costs import Costs
from .nearest import distances_of, launch_search, unlisted_distances
from .neighbourhoods import DeviceNeighbourhoods
from .points import DevicePoints
from .sums import Entries, entries_of, weighted_sums
from .tiling import tiling


@dataclass(frozen=True)
class Found:
    """What a search over all points has found, beside winners and shares.

    Attributes
    ----------
    facts : (n_pieces, 3) float64 tensor
        Those of `search_tiles`, 0 for pieces without points.
    pieces : Pieces
    unlisted : (k,) int32 tensor
        They add up to the number of distances of winners that were not listed.
    n_evaluations : int
        Distances computed, without those.
    """

    facts: torch.Tensor
    pieces: Pieces
    unlisted: torch.Tensor
    n_evaluations: int

    def totals(self) -> tuple[float, float, float, int]:
        """The facts added up, and all distances computed; the host waits for them once."""
        unlisted = self.unlisted.sum().double().view(1)
        log_sum, scatter, error, n_unlisted = torch.cat([self.facts.sum(0), unlisted]).tolist()
        return log_sum, scatter, error, self.n_evaluations + int(n_unlisted)


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
        self._shares = torch.empty(shape, dtype=torch.float32, device=points.device)
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
        _, _, error, n_evaluations = self._search(used, -1.0).totals()
        return error, linked + n_evaluations

    def e_step(self, means: Any, variance: float | None) -> Statistics:
        """New winners and neighbours, and the sums of the M-step."""
        if variance is None:
            variance = initial_variance(self.start_error, self.total_weight, means.shape[1], self.variance_floor)
        used = as_tensor(means, self.points.device).float()
        linked = self.neighbourhoods.update(used)
        found = self._search(used, 0.5 / variance)
        shifts, masses = weighted_sums(self.points, self._entries(len(used)), used)
        log_sum, scatter, _, n_evaluations = found.totals()
        return Statistics(
            means=DeviceArray(used.double()),  # type: ignore[arg-type]
            variance=variance,
            shifts=DeviceArray(shifts),  # type: ignore[arg-type]
            masses=DeviceArray(masses),  # type: ignore[arg-type]
            scatter=scatter,
            log_sum=log_sum,
            total_weight=self.total_weight,
            n_evaluations=linked + n_evaluations,
        )

    def scatter(self, statistics: Statistics, means: Any) -> float:
        """Scatter of the last E-step's responsibilities about other means."""
        entries = self._entries(len(statistics.means))
        centres = as_tensor(means, self.points.device).float()
        distances = distances_of(self.points, entries.rows, entries.clusters(), centres)
        return float(torch.dot(entries.parts.double(), distances.double()))

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
        self._only_labels = bool((self.winners[:, 1:] < 0).all())
        self.start_error = state["start_error"]
        self.neighbourhoods.restore(state)

    def _entries(self, n_clusters: int) -> Entries:
        return entries_of(self.winners, self._shares, n_clusters)

    def _search(self, means: torch.Tensor, precision: float, costs: Costs | None = None) -> Found:
        """New winners and shares."""
        points, near = self.points, self.neighbourhoods
        groups = sort_by_group(self.winners[:, 0], len(means))
        extra, unlisted = None, self.winners.new_zeros(1)
        if not self._only_labels:
            extra, unlisted = unlisted_distances(points, near.ordered, means, self.winners, costs)
        tiles = tiling(points.n_features, len(points) / len(means), near.lists.longest, points.precision)
        pieces = cut(groups.start, tiles.points, len(points))
        facts = torch.zeros((len(pieces), 3), dtype=torch.float64, device=points.device)
        launch_search(
            points, groups.order, pieces, means, near.lists, means, tiles, points.precision, self._spare,
            old=None if extra is None else self.winners, extra=extra, precision=precision, shares=self._shares,
            facts=facts, costs=costs,
        )  # fmt: skip
        self.winners, self._spare = self._spare, self.winners
        self._only_labels = False
        return Found(facts, pieces, unlisted, len(points) * near.lists.longest)
