"""Attempts on the device: seeds and searches where the points are, results on the host."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch

from ..algorithm.attempts import SEEDING, Attempts
from ..algorithm.em import Fit
from ..algorithm.estep import Search
from ..algorithm.models.families import FAMILIES
from ..algorithm.models.shared import SharedModel
from ..algorithm.models.start import shared_model
from ..algorithm.random import generator
from ..algorithm.row_searches import RowSearches
from ..algorithm.searches import search_seed
from ..algorithm.seeding.afkmc2 import Start
from ..algorithm.snapshot import Costs, Keep, Problem, Snapshot
from ..algorithm.starts.subspace import SearchSettings
from ..parallel import Workers
from ..progress import Callback, Progress
from .cells.neighbourhoods import DeviceNeighbourhoods
from .coreset.points import DevicePoints
from .passes.row_search import DeviceRowSearches
from .preparing import Begun
from .search.blocked import DeviceSearch
from .search.joints import DeviceJointSearch
from .seeding.afkmc2 import assign, seeded
from .snapshots import on_device, snapshot_on_host
from .start import start_in_subspace

#: Up to so many points, the one E-step that nobody asks for costs less than to wait for the host in all others.
FEW = 1 << 20


class DeviceAttempts(Attempts):
    """Attempts of a fit whose points are on a device.

    Parameters
    ----------
    problem : Problem
        Of its coreset only the weights are touched.
    points : DevicePoints
    costs, callbacks, progress, workers, keep
        As for `Attempts`.
    begun : Begun, optional
        The first start, where it has begun already.
    """

    def __init__(
        self,
        problem: Problem,
        points: DevicePoints,
        costs: Costs,
        callbacks: Sequence[Callback],
        progress: Progress,
        workers: Workers,
        keep: Keep | None,
        begun: Begun | None = None,
    ) -> None:
        local: Any = points  # as much of `LocalPoints` as attempts ask for
        super().__init__(problem, local, costs, callbacks, progress, workers, keep and _from_the_device(keep))
        self.on_device = points
        self._begun = begun

    def _start(self, attempt: int) -> Start:
        """Seeds of an attempt, and a near cluster of every point."""
        settings, points = self.problem.settings, self.on_device
        begun, self._begun = self._begun or Begun(generator(settings.seed, SEEDING, attempt), None), None
        n_clusters, init, rng = settings.n_components, settings.init, begun.rng
        if isinstance(init, str) and init == "two_level":
            weights, few = self.problem.coreset.weights, SearchSettings.of(settings)
            start = start_in_subspace(points, weights, n_clusters, few, rng, begun.scatter)
            if not self._runs_ahead:  # else the host will have time for them
                points.end_chores()
            self.progress.advance(n_clusters)
            return start
        points.end_chores()
        if isinstance(init, str):
            return seeded(points, init, n_clusters, settings.chain_length, rng, self.progress.advance)
        means = self.problem.frame.enter(init, np.dtype(np.float64))
        self.progress.advance(n_clusters)
        return assign(points, torch.from_numpy(means).to(points.device))

    def _search(self, attempt: int, start: Start) -> Search:
        """A search on the device from the labels of the seeds."""
        labels: Any = start.labels
        return self._make_search(attempt, labels, start.error)

    def _improve(self, now: Snapshot, search: Search) -> Fit:
        """As of `Attempts`; on few points E-steps begin before they are asked for, unless others look at them."""
        settings = self.problem.settings
        if self._runs_ahead and isinstance(search, DeviceSearch):
            search.run_ahead(settings.relaxation, settings.max_iter - len(now.fit.bounds))
        fit = super()._improve(now, search)
        self.on_device.end_chores()
        return fit

    @property
    def _runs_ahead(self) -> bool:
        settings = self.problem.settings
        plain = settings.is_shared and settings.metric == "euclidean" and self.keep is None
        return plain and len(self.on_device) <= FEW

    def _make_search(self, attempt: int, labels: torch.Tensor, error: float) -> DeviceSearch:
        settings, points = self.problem.settings, self.on_device
        near = DeviceNeighbourhoods(
            settings.n_components,
            settings.n_neighbors,
            max(settings.n_candidates, settings.truncation),
            settings.n_explore,
            partial(search_seed, settings.seed, attempt),
            points.device,
        )
        about = (points, labels, near, settings.truncation, error, self.problem.variance_floor)
        search = (
            DeviceSearch(*about)
            if settings.is_shared
            else DeviceJointSearch(*about, FAMILIES[settings.covariance_type])
        )
        # On the sphere means are changed once more, and who keeps a state has to have one from before.
        search.links_ahead = settings.metric == "euclidean" and self.keep is None
        return search

    def _restore(self, snapshot: Snapshot) -> tuple[Snapshot, Search]:
        """The attempt in which a snapshot was taken, with its means where the points are."""
        device = self.on_device.device
        nowhere = torch.zeros(len(self.on_device), dtype=torch.int32, device=device)
        search = self._make_search(snapshot.attempt, nowhere, math.nan)
        if snapshot.mixture is not None and isinstance(search, DeviceJointSearch):
            search.compare_joints()
        search.restore(snapshot.search)
        return on_device(replace(snapshot, fit=replace(snapshot.fit, stopped=False)), device), search

    def _shared(self, search: Search) -> SharedModel:
        """As of `Attempts`, without adding up weights on the host."""
        problem, total_weight = self.problem, self.on_device.total_weight
        return shared_model(problem.settings, search, total_weight, problem.variance_floor, problem.frame)

    def row_searches(self) -> RowSearches:
        """What E-steps over all rows are made by."""
        return DeviceRowSearches(self.on_device, self.workers)


def _from_the_device(keep: Keep) -> Keep:
    """Told of snapshots on the device, it keeps them from the host."""
    return lambda snapshot, now: keep(snapshot_on_host(snapshot), now)
