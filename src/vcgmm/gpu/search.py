"""Device search: points, winners and sums stay on the device; EM sees arrays that NumPy works on."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
import torch

from ..algorithm.estep import State
from ..algorithm.mstep import Statistics, initial_variance
from .arrays import DeviceArray
from .cells import cut, sort_by_group
from .nearest import distances_of, launch_search, lists_of, unlisted_distances
from .neighbourhoods import DeviceNeighbourhoods
from .points import DevicePoints
from .sums import Entries, entries_of, weighted_sums
from .tiling import tiling


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
        facts, n_evaluations = self._search(_tensor(means, self.points).float(), -1.0)
        return float(facts[2]), n_evaluations

    def e_step(self, means: Any, variance: float | None) -> Statistics:
        """New winners and neighbours, and the sums of the M-step."""
        if variance is None:
            variance = initial_variance(self.start_error, self.total_weight, means.shape[1], self.variance_floor)
        used = _tensor(means, self.points).float()
        facts, n_evaluations = self._search(used, 0.5 / variance)
        shifts, masses = weighted_sums(self.points, self._entries(len(used)), used)
        log_sum, scatter, _ = facts.tolist()
        return Statistics(
            means=DeviceArray(used.double()),  # type: ignore[arg-type]
            variance=variance,
            shifts=DeviceArray(shifts),  # type: ignore[arg-type]
            masses=DeviceArray(masses),  # type: ignore[arg-type]
            scatter=scatter,
            log_sum=log_sum,
            total_weight=self.total_weight,
            n_evaluations=n_evaluations,
        )

    def scatter(self, statistics: Statistics, means: Any) -> float:
        """Scatter of the last E-step's responsibilities about other means."""
        entries = self._entries(len(statistics.means))
        centres = _tensor(means, self.points).float()
        distances = distances_of(self.points, entries.rows, entries.clusters(), centres)
        return float(torch.dot(entries.parts.double(), distances.double()))

    def state(self) -> NoReturn:
        """Checkpoints of a fit on a GPU are not offered yet."""
        raise NotImplementedError("A fit on a GPU has no checkpoints yet: use checkpoint=None, or device='cpu'.")

    def restore(self, state: State) -> NoReturn:  # noqa: ARG002
        """Likewise."""
        self.state()

    def _entries(self, n_clusters: int) -> Entries:
        return entries_of(self.winners, self._shares, n_clusters)

    def _search(self, means: torch.Tensor, precision: float) -> tuple[torch.Tensor, int]:
        """New winners and shares; sums of `search_tiles`' facts (3,) float64, distances computed."""
        points = self.points
        n_evaluations = self.neighbourhoods.update(means)
        lists = lists_of(self.neighbourhoods.candidates)
        groups = sort_by_group(self.winners[:, 0].contiguous(), len(means))
        extra, n_extra = None, 0
        if not self._only_labels:
            extra, n_extra = unlisted_distances(points, self.neighbourhoods.ordered, means, self.winners)
        tiles = tiling(points.n_features, len(points) / len(means), lists.longest, points.precision)
        pieces = cut(groups.start, tiles.points)
        facts = torch.empty((len(pieces), 3), dtype=torch.float64, device=points.device)
        launch_search(
            points, groups.order, pieces, means, lists, means, tiles, points.precision, self._spare,
            old=None if extra is None else self.winners, extra=extra, precision=precision, shares=self._shares,
            facts=facts,
        )  # fmt: skip
        self.winners, self._spare = self._spare, self.winners
        self._only_labels = False
        return facts.sum(0), n_evaluations + n_extra + len(points) * lists.longest


def _tensor(means: Any, points: DevicePoints) -> torch.Tensor:
    """Means (C, D) as a tensor, wherever they are."""
    if isinstance(means, DeviceArray):
        return means.tensor
    return torch.from_numpy(np.asarray(means)).to(points.device)
