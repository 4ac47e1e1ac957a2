"""E-steps over all rows on the device, a chunk at a time: the twins of `RowSearch` and `JointRowSearch`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ...algorithm.models.families import FAMILIES
from ...algorithm.models.mixture import Mixture
from ...algorithm.models.mstep import JointStatistics
from ...algorithm.mstep import Statistics, initial_variance
from ...algorithm.passes.row_search import REMEMBERED, ROW_SEARCH
from ...algorithm.random import generator
from ...algorithm.row_searches import About
from ...parallel import Workers
from ..cells.costs import Costs
from ..cells.nearest import N_FACTS, nearest_of_all
from ..cells.neighbourhoods import DeviceNeighbourhoods
from ..cells.sums import sums_of_pieces, weighted_sums
from ..coreset.points import DevicePoints
from ..coreset.reading import local_blocks, points_in
from ..device.arrays import DeviceArray, as_tensor
from ..device.downloads import to_host
from ..device.tiling import aligned
from ..search.blocked import DeviceSearch
from ..search.joints import JointNeighbourhoods, joint_statistics
from .routing import DeviceRouting

#: Values of rows in a chunk: the more meet in a cell, the less its candidates cost each.
CHUNK_VALUES = 1 << 28

#: Up to so many clusters, all of them are compared with a row of which nothing is known.
ALL_COMPARED = 8192


class DeviceRowSearches:
    """What E-steps over all rows are made by, on a device.

    Parameters
    ----------
    points : DevicePoints
        The coreset's.
    workers : Workers
    """

    def __init__(self, points: DevicePoints, workers: Workers) -> None:
        self.points = points
        self.workers = workers

    def shared(self, about: About) -> DeviceRowSearch:
        """For clusters that share one variance, and have equal weights."""
        return DeviceRowSearch(about, self.points.device, self.points.precision, self.workers)

    def joint(self, about: About) -> DeviceJointRowSearch:
        """For clusters with weights or variances of their own."""
        return DeviceJointRowSearch(about, self.points.device, self.points.precision, self.workers)

    def feature_sums(self) -> tuple[np.ndarray, np.ndarray]:
        """sum_n gamma y_d and sum_n gamma y_d^2 over the coreset, (D,) float64 each."""
        return self.points.feature_sums()


@dataclass(frozen=True)
class Chunk:
    """Some rows that follow one another.

    Attributes
    ----------
    first : int
        The row that it begins with.
    points : DevicePoints
    """

    first: int
    points: DevicePoints


class DeviceRowSearch:
    """E-steps over rows that are read anew in each of them.

    In the first pass a near cluster of every row is found by `DeviceRouting`, later it is the nearest of the pass
    before.

    Parameters
    ----------
    about : About
    device : torch.device
    precision : str
    workers : Workers
    """

    def __init__(self, about: About, device: torch.device, precision: str, workers: Workers) -> None:
        self.about = about
        self.device = device
        self.precision = precision
        self.workers = workers
        settings = about.problem.settings
        self.truncation = settings.truncation
        seed = int(generator(settings.seed, ROW_SEARCH).integers(1 << 62))
        n_candidates = max(settings.n_candidates, settings.truncation)
        self.neighbourhoods = self._kind()(
            settings.n_components, settings.n_neighbors, n_candidates, settings.n_explore, seed, device
        )
        self._routing: DeviceRouting | None = None
        self._means: torch.Tensor | None = None
        self._labels: torch.Tensor | None = None

    def _kind(self) -> type[DeviceNeighbourhoods]:
        return DeviceNeighbourhoods

    @property
    def neighbors(self) -> np.ndarray:
        """G_c, (C, G) int32."""
        return to_host(self.neighbourhoods.neighbors).numpy()

    def warm_up(self, means: Any) -> tuple[float, int]:
        """A pass without responsibilities: error of the nearest winners, distances computed."""
        used = aligned(as_tensor(means, self.device))
        n_evaluations = self.neighbourhoods.update(used) + self._prepare(used)
        error = 0.0
        for chunk, search, found_first in self._searches():
            totals = search.search(used, -1.0).totals()
            error += totals.error
            n_evaluations += totals.n_evaluations + found_first
            self._remember(chunk, search)
        return error, n_evaluations

    def e_step(self, means: Any, variance: float | None) -> Statistics:
        """A pass over all rows, for the sums of the M-step."""
        about = self.about
        if variance is None:
            error, _ = self.warm_up(means)
            floor = about.problem.variance_floor
            variance = initial_variance(error, about.total_weight, means.shape[1], floor)
        used = aligned(as_tensor(means, self.device))
        n_evaluations = self.neighbourhoods.update(used) + self._prepare(used)
        shifts = torch.zeros(used.shape, dtype=torch.float64, device=self.device)
        masses = torch.zeros(len(used), dtype=torch.float64, device=self.device)
        log_sum = scatter = 0.0
        for chunk, search, found_first in self._searches():
            found = search.search(used, 0.5 / variance)
            sums = weighted_sums(chunk.points, search.entries(), used)
            shifts += sums.shifts
            masses += sums.masses
            totals = found.totals()
            log_sum, scatter = log_sum + totals.log_sum, scatter + totals.scatter
            n_evaluations += totals.n_evaluations + found_first
            self._remember(chunk, search)
        return Statistics(
            means=DeviceArray(used.double()),  # type: ignore[arg-type]
            variance=variance,
            shifts=DeviceArray(shifts),  # type: ignore[arg-type]
            masses=DeviceArray(masses),  # type: ignore[arg-type]
            scatter=scatter,
            log_sum=log_sum,
            total_weight=about.total_weight,
            n_evaluations=n_evaluations,
        )

    def scatter(self, statistics: Statistics, means: Any) -> float:
        """Scatter about other means, by one more pass in which rows search from the cluster they are at now."""
        used, centres = (aligned(as_tensor(x, self.device)) for x in (statistics.means, means))
        total = 0.0
        for _, search, _ in self._searches():
            search.search(used, 0.5 / statistics.variance)
            total += search.scatter_about(centres)
        return total

    def _searches(self) -> Iterator[tuple[Chunk, DeviceSearch, int]]:
        """Every chunk with a search from a near cluster of every row, and what it took to find those."""
        for chunk in self._chunks():
            labels, n_evaluations = self._start(chunk)
            near, floor = self.neighbourhoods, self.about.problem.variance_floor
            yield chunk, DeviceSearch(chunk.points, labels, near, self.truncation, math.nan, floor), n_evaluations

    def _prepare(self, means: torch.Tensor) -> int:
        """Make ready for rows of which nothing is known, once; returns the number of distances computed."""
        if self._means is not None:
            return 0
        self._means = means
        n_rows = self.about.rows.n_samples
        if n_rows <= REMEMBERED:
            self._next = torch.empty(n_rows, dtype=torch.int32, device=self.device)
        if ALL_COMPARED < len(means) < n_rows:
            self._routing = DeviceRouting(means)
        return self._link_again(means)

    def _link_again(self, means: torch.Tensor) -> int:
        """One look at clusters from random groups is not enough to know the nearest of each."""
        return self.neighbourhoods.update(means)

    def _start(self, chunk: Chunk) -> tuple[torch.Tensor, int]:
        """A near cluster of every row of a chunk, (n,) int32, and the number of distances computed, if known."""
        if self._labels is not None:
            return self._labels[chunk.first : chunk.first + len(chunk.points)], 0
        if self._routing is not None:
            return self._routing.labels_of(chunk.points), 0
        if self._means is None:
            raise RuntimeError("rows are searched before the means are known.")
        ids, _ = nearest_of_all(chunk.points, self._means, mode=self.precision)
        return ids[:, 0], len(ids) * len(self._means)

    def _remember(self, chunk: Chunk, search: DeviceSearch) -> None:
        """Keep the nearest clusters of a chunk for the next pass, and tell how far this one is."""
        n_rows = self.about.rows.n_samples
        if n_rows <= REMEMBERED:
            last = chunk.first + len(chunk.points)
            self._next[chunk.first : last] = search.labels()
            if last == n_rows:
                self._labels = self._next
        self.about.advance(len(chunk.points))

    def _chunks(self) -> Iterator[Chunk]:
        """All rows in their order; where chunks begin depends on the shapes alone."""
        about, frame = self.about, self.about.problem.frame
        most = max(1, CHUNK_VALUES // about.rows.n_features)
        gathered: list[torch.Tensor] = []
        masses: list[np.ndarray] = []
        first = n = 0
        with closing(local_blocks(about.rows, frame, self.device, self.workers)) as blocks:
            for part, local in blocks:
                mass = part.weights(about.weights)
                gathered.append(local)
                masses.append(np.ones(len(part)) if mass is None else mass)
                n += len(part)
                if n >= most or first + n == about.rows.n_samples:
                    weights = torch.from_numpy(np.concatenate(masses).astype(np.float32)).to(self.device)
                    yield Chunk(first, points_in(frame, torch.cat(gathered), weights, self.precision))
                    first, n = first + n, 0
                    gathered, masses = [], []


class DeviceJointRowSearch(DeviceRowSearch):
    """E-steps over all rows with clusters of their own weights and variances.

    A near cluster of every row is found by distance; from there rows search by joints.
    """

    neighbourhoods: JointNeighbourhoods

    def __init__(self, about: About, device: torch.device, precision: str, workers: Workers) -> None:
        super().__init__(about, device, precision, workers)
        self.family = FAMILIES[about.problem.settings.covariance_type]

    def _kind(self) -> type[DeviceNeighbourhoods]:
        return JointNeighbourhoods

    def joint_e_step(self, mixture: Mixture) -> JointStatistics:
        """A pass over all rows, for the sums of the M-step."""
        natural = mixture.natural(np.dtype(np.float32))
        means = aligned(as_tensor(natural.means, self.device))
        costs = Costs.of(natural, self.family, self.device)
        n_evaluations = self.neighbourhoods.update_to(means, costs) + self._prepare(means)
        sums = torch.zeros((2, *means.shape), dtype=torch.float64, device=self.device)
        masses = torch.zeros(len(means), dtype=torch.float64, device=self.device)
        cells = torch.zeros((len(means), N_FACTS), dtype=torch.float64, device=self.device)
        log_sum = 0.0
        for chunk, search, found_first in self._searches():
            found = search.search(means, 1.0, costs)
            here = weighted_sums(chunk.points, search.entries(), means, squares=True)
            sums[0] += here.shifts
            sums[1] += here.squares
            masses += here.masses
            cells += sums_of_pieces(found.facts, found.pieces)
            totals = found.totals()
            log_sum, n_evaluations = log_sum + totals.log_sum, n_evaluations + totals.n_evaluations + found_first
            self._remember(chunk, search)
        log_sum -= self.about.total_weight * natural.constant
        return joint_statistics(
            means, sums[0], sums[1], masses, cells, log_sum, natural, self.family, n_evaluations
        )

    def link_anew(self) -> None:
        """Let the next E-step find all neighbours anew: clusters have come or gone."""
        self.neighbourhoods.link_anew()
