"""Attempts on the device: seeds and searches where the points are, results on the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ..algorithm.attempts import SEEDING, Attempts
from ..algorithm.em import Fit
from ..algorithm.estep import Search
from ..algorithm.random import generator
from ..algorithm.searches import search_seed
from ..algorithm.seeding import Start
from ..algorithm.snapshot import Costs, Problem, Snapshot
from ..algorithm.subspace import SearchSettings
from ..parallel import Workers
from ..progress import Callback, Progress
from .arrays import on_host
from .neighbourhoods import DeviceNeighbourhoods
from .points import DevicePoints
from .search import DeviceSearch
from .seeding import assign, seeded
from .start import start_in_subspace


class DeviceAttempts(Attempts):
    """Attempts of a fit whose points are on a device.

    Parameters
    ----------
    problem : Problem
        Of its coreset only the weights are touched.
    points : DevicePoints
    costs, callbacks, progress, workers
        As for `Attempts`.
    """

    def __init__(
        self,
        problem: Problem,
        points: DevicePoints,
        costs: Costs,
        callbacks: Sequence[Callback],
        progress: Progress,
        workers: Workers,
    ) -> None:
        local: Any = points  # as much of `LocalPoints` as attempts ask for
        super().__init__(problem, local, costs, callbacks, progress, workers, None)
        self.on_device = points

    def _start(self, attempt: int) -> Start:
        """Seeds of an attempt, and a near cluster of every point."""
        settings, points = self.problem.settings, self.on_device
        rng = generator(settings.seed, SEEDING, attempt)
        n_clusters, init = settings.n_components, settings.init
        if isinstance(init, str) and init == "two_level":
            few = SearchSettings(
                settings.truncation,
                settings.n_neighbors,
                settings.n_candidates,
                settings.tol,
                settings.max_iter,
                settings.relaxation,
            )
            start = start_in_subspace(points, self.problem.coreset.weights, n_clusters, few, rng, self.workers)
            self.progress.advance(n_clusters)
            return start
        if isinstance(init, str):
            return seeded(points, init, n_clusters, settings.chain_length, rng, self.progress.advance)
        means = self.problem.frame.enter(init, np.dtype(np.float64))
        self.progress.advance(n_clusters)
        return assign(points, torch.from_numpy(means).to(points.device))

    def _search(self, attempt: int, start: Start) -> Search:
        """A search on the device from the labels of the seeds."""
        settings, points = self.problem.settings, self.on_device
        near = DeviceNeighbourhoods(
            settings.n_components,
            settings.n_neighbors,
            max(settings.n_candidates, settings.truncation),
            settings.n_explore,
            search_seed(settings.seed, attempt),
            points.device,
        )
        labels: Any = start.labels
        floor = self.problem.variance_floor
        return DeviceSearch(points, labels, near, settings.truncation, start.error, floor)

    def _improve(self, now: Snapshot, search: Search) -> Fit:
        """EM, from a snapshot to its end, and its result on the host."""
        fit = super()._improve(now, search)
        fit.means, fit.masses = on_host(fit.means), on_host(fit.masses)
        return fit
