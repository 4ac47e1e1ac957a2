"""Attempts whose EM runs on the workers: seeds from gathered points, searches over those that stay away."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from distributed import Future

from ..algorithm.attempts import Attempts, seed
from ..algorithm.cells.neighbourhoods import Neighbourhoods
from ..algorithm.coreset.lightweight import Coreset
from ..algorithm.coreset.local_points import LocalPoints
from ..algorithm.estep import Search
from ..algorithm.search.blocked import BlockedSearch
from ..algorithm.searches import make_search, search_seed
from ..algorithm.seeding.afkmc2 import Start
from ..algorithm.snapshot import Costs, Problem
from ..parallel import Workers
from ..progress import Callback, Progress
from .blocks import assign_block
from .layout import Blocks
from .search import DistributedSearch
from .transport import hand_out, split


class DistributedAttempts(Attempts):
    """Attempts of a fit whose points are in blocks on the workers.

    Parameters
    ----------
    problem : Problem
        Its coreset's points are not touched.
    blocks : Blocks
    seeding : Coreset
        The points to seed on, gathered; let go of after the last seeding.
    costs, callbacks, progress, workers
        As for `Attempts`.
    n_threads : int or None
        Of a task on a worker.
    """

    def __init__(
        self,
        problem: Problem,
        blocks: Blocks,
        seeding: Coreset,
        costs: Costs,
        callbacks: Sequence[Callback],
        progress: Progress,
        workers: Workers,
        n_threads: int | None,
    ) -> None:
        points = LocalPoints(seeding, problem.frame, workers)
        super().__init__(problem, points, costs, callbacks, progress, workers, None)
        self.blocks = blocks
        self.seeding = seeding
        self.n_threads = n_threads
        self.labels: list[Future] = []
        self.neighbourhoods: Neighbourhoods

    def _start(self, attempt: int) -> Start:
        """Seeds, and on the workers a near cluster of every point."""
        client, starts = self.blocks.placement.client, self.blocks.starts
        problem = replace(self.problem, coreset=self.seeding)
        start = seed(self.points, problem, attempt, self.workers, self.progress)
        self.neighbourhoods = self._neighbourhoods(attempt)
        if start.movable:
            start = self._settled(start, problem, attempt)
        if attempt == problem.settings.n_init - 1:
            del self.points, self.seeding
        if len(start.labels) == len(self.blocks):  # all of the points were seeded on
            # Whole arrays of their own: a view would keep all of them in memory.
            self.labels = [hand_out(client, start.labels[low:high].copy()) for low, high in pairwise(starts)]
            return start
        means = hand_out(client, start.means)
        submit = self.blocks.placement.submit
        pairs = [
            submit(i, assign_block, block, means, self.n_threads) for i, block in enumerate(self.blocks.futures)
        ]
        halves = [split(client, pair) for pair in pairs]
        self.labels = [labels for labels, _ in halves]
        error = math.fsum(client.gather([error for _, error in halves]))
        n_evaluations = start.n_evaluations + len(self.blocks) * len(start.means)
        return Start(start.means, np.empty(0, np.int32), error, n_evaluations)

    def _settled(self, start: Start, problem: Problem, attempt: int) -> Start:
        """A start whose clusters have been moved to where more of the gathered points are."""
        search = make_search(self.points, problem, attempt, start, self.workers)
        self._settle(start, search, attempt)
        if isinstance(search, BlockedSearch):
            self.neighbourhoods = search.neighbourhoods  # they are those of the means, wherever points are
            start = Start(start.means, search.labels(), search.start_error, start.n_evaluations)
        self.points.put_back()
        return start

    def _neighbourhoods(self, attempt: int) -> Neighbourhoods:
        settings = self.problem.settings
        return Neighbourhoods(
            settings.n_components,
            settings.n_neighbors,
            max(settings.n_candidates, settings.truncation),
            settings.n_explore,
            search_seed(settings.seed, attempt),
            self.workers,
        )

    def _search(self, attempt: int, start: Start) -> Search:
        """A distributed search from the labels of the seeds."""
        settings = self.problem.settings
        labels, self.labels = self.labels, []
        futures = self.blocks.futures
        if attempt == settings.n_init - 1:
            self.blocks.futures = []  # the search keeps its own order of the points: one copy is enough
        return DistributedSearch(
            self.blocks.placement,
            futures,
            labels,
            len(self.blocks),
            self.neighbourhoods,
            settings.truncation,
            self.problem.frame.dtype,
            start.error,
            self.problem.variance_floor,
            self.n_threads,
        )
