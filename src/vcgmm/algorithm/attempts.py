"""Attempts: seeding and EM, `n_init` times on one coreset, from the first one or from a snapshot on."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from ..parallel import Workers
from ..progress import Callback, Progress
from .coreset.local_points import LocalPoints
from .em import Fit, variational_em
from .estep import Search
from .models.mixture import Mixture
from .models.own import JointSearches, OwnModel
from .models.shared import Shared, SharedModel
from .models.start import rules_of, shared_model
from .mstep import initial_variance
from .random import generator
from .row_searches import LocalRowSearches, RowSearches
from .searches import make_search, restore_search
from .seeding.afkmc2 import Start, afkmc2, assign, kmeans_plus_plus, random_points
from .seeding.relocation import Relocating
from .seeding.two_level import two_level
from .snapshot import Attempt, Costs, Keep, Problem, Snapshot
from .starts.settling import settle
from .starts.subspace import SearchSettings, start_in_subspace

#: What the streams of random numbers are for, beside those of `searches`.
CORESET, SEEDING = range(2)
RELOCATION = 18


class Attempts:
    """The attempts of one fit.

    Parameters
    ----------
    problem : Problem
    points : LocalPoints
        The coreset's.
    costs : Costs
        Of what has been done already; added to in place.
    callbacks : sequence of Callback
    progress : Progress
    workers : Workers
    keep : Keep or None
    """

    def __init__(
        self,
        problem: Problem,
        points: LocalPoints,
        costs: Costs,
        callbacks: Sequence[Callback],
        progress: Progress,
        workers: Workers,
        keep: Keep | None,
    ) -> None:
        self.problem = problem
        self.points = points
        self.costs = costs
        self.callbacks = callbacks
        self.progress = progress
        self.workers = workers
        self.keep = keep
        self.begun = 0.0

    def run(self, snapshot: Snapshot | None = None) -> Attempt:
        """Make all attempts, or those from a snapshot on, and return the best."""
        self.begun = time.perf_counter() - self.costs.elapsed
        n_init = self.problem.settings.n_init
        first = 0 if snapshot is None else snapshot.attempt
        best = [] if snapshot is None or snapshot.best is None else [snapshot.best]  # one at most
        for attempt in range(first, n_init):
            if attempt > first:  # the last search has put the points in an order of its own
                self.points.put_back()
            if snapshot is not None and attempt == first:
                now, search = self._restore(snapshot)
            else:
                now, search = self._seed(attempt, *best)
            # Where it went last matters no more, and is as large as the means.
            ended = Attempt(replace(self._improve(now, search), moves=None), search.neighbors)
            best = [max([*best, ended], key=lambda one: one.fit.bounds[-1])]
            del search  # its winners, before the next one has some
            if ended.fit.stopped:
                break
        return best[0]

    def _seed(self, attempt: int, best: Attempt | None = None) -> tuple[Snapshot, Search]:
        """A new attempt, ready for its first iteration."""
        problem = self.problem
        self.progress.start("seeding", problem.settings.n_components)
        with self._timed("seeding"):
            start = self._start(attempt)
        with self._timed("em"):
            search = self._search(attempt, start)
            start.labels, start.rows = np.empty(0, np.int32), None  # the search has them
        with self._timed("seeding"):
            if start.movable:
                self._settle(start, search, attempt)
        self.progress.finish()
        self.costs.n_evaluations["seeding"] += start.n_evaluations
        variance = problem.settings.initial_variance
        if variance is not None:
            variance *= problem.frame.scale**2
        means = self._shared(search).start_at(start.means)
        # Without the state of the search: it would hold arrays that the search has long replaced.
        now = Snapshot(problem, self.costs, attempt, best, Fit.at(means), means, variance, {})
        if self.keep is not None:
            self.costs.elapsed = time.perf_counter() - self.begun
            self.keep(replace(now, search=search.state()), True)
        return now, search

    def _start(self, attempt: int) -> Start:
        """Seeds of an attempt."""
        return seed(self.points, self.problem, attempt, self.workers, self.progress)

    def _search(self, attempt: int, start: Start) -> Search:
        """The search of an attempt."""
        return make_search(self.points, self.problem, attempt, start, self.workers)

    def _settle(self, start: Start, search: Search, attempt: int) -> None:
        """Let clusters of a start be moved to where more are needed, by searches that can."""
        if isinstance(search, Relocating):
            rng = generator(self.problem.settings.seed, RELOCATION, attempt)
            start.means, n_evaluations = settle(self._shared(search), search, start.means, rng)
            start.n_evaluations += n_evaluations

    def row_searches(self) -> RowSearches:
        """What E-steps over all rows, after those over the coreset, are made by."""
        return LocalRowSearches(self.points, self.problem.coreset.weights, self.workers)

    def _restore(self, snapshot: Snapshot) -> tuple[Snapshot, Search]:
        """The attempt in which a snapshot was taken; what stopped it then does not stop it now."""
        own = snapshot.mixture is not None
        search = restore_search(self.points, self.problem, snapshot.attempt, snapshot.search, own, self.workers)
        snapshot.search.clear()  # the arrays are the search's now, and large
        return replace(snapshot, fit=replace(snapshot.fit, stopped=False)), search

    def _improve(self, now: Snapshot, search: Search) -> Fit:
        """EM, from a snapshot to its end."""
        settings, fit = self.problem.settings, now.fit
        with self._timed("em"):
            self.progress.start("em", settings.max_iter)
            watch = Watch(self, now, search)
            if now.mixture is None:
                model = self._shared(search)
                max_iter = settings.max_iter if settings.is_shared else min(settings.n_shared, settings.max_iter)
                # Nobody but EM has what it begins with: a call with **keywords would.
                variational_em(
                    model,
                    self._begin(model, now),
                    fit,
                    tol=settings.tol,
                    max_iter=max_iter,
                    weight_unit=self.problem.weight_unit,
                    callbacks=self.callbacks,
                    progress=self.progress,
                    begun=self.begun,
                    keep=None if self.keep is None else watch.shared,
                )
            if isinstance(search, JointSearches):
                own = self._own(search)
                mixture = now.mixture
                if mixture is None:
                    mixture = own.begin(fit, self._last_variance(fit, now.variance, search))
                variational_em(
                    own,
                    mixture,
                    fit,
                    tol=settings.tol,
                    max_iter=settings.max_iter,
                    weight_unit=self.problem.weight_unit,
                    callbacks=self.callbacks,
                    progress=self.progress,
                    begun=self.begun,
                    keep=None if self.keep is None else watch.own,
                )
            self.progress.finish()
        self.costs.n_evaluations["em"] += fit.n_evaluations
        return fit

    def _begin(self, model: SharedModel, now: Snapshot) -> Shared:
        """What the first E-step uses, taken from a snapshot."""
        start = Shared(now.hand_over(), math.nan if now.variance is None else now.variance)
        return start if now.fit.bounds else model.warm_up(start, self.problem.settings.n_warmup, now.fit)

    def _shared(self, search: Search) -> SharedModel:
        """One variance and equal weights: the model of all iterations, or of the first."""
        problem = self.problem
        total_weight = float(problem.coreset.weights.sum())
        return shared_model(problem.settings, search, total_weight, problem.variance_floor, problem.frame)

    def _own(self, search: JointSearches) -> OwnModel:
        """Weights and variances of the clusters' own."""
        problem, settings = self.problem, self.problem.settings
        total_weight = float(problem.coreset.weights.sum())
        floor, dtype = problem.variance_floor, problem.frame.dtype
        return OwnModel(
            search,
            rules_of(settings, floor, search.sums, search.squares, total_weight, dtype),
            total_weight,
            len(problem.coreset),
            settings.relaxation,
            problem.frame.log_scale,
            settings.max_iter,
        )

    def _last_variance(self, fit: Fit, given: float | None, search: JointSearches) -> float:
        """The variance that all clusters have when they begin to have their own."""
        if fit.bounds:
            return fit.variance
        if given is not None:
            return given
        n_features, floor = fit.means.shape[1], self.problem.variance_floor
        return initial_variance(search.start_error, float(self.problem.coreset.weights.sum()), n_features, floor)

    @contextmanager
    def _timed(self, step: str) -> Iterator[None]:
        """Count the time of a block as that of a step."""
        begun = time.perf_counter()
        yield
        self.costs.seconds[step] += time.perf_counter() - begun


class Watch:
    """Tells `keep` of every iteration of an attempt, with all that it depends on from there.

    Parameters
    ----------
    attempts : Attempts
    now : Snapshot
        Where the attempt began, or went on.
    search : Search
    """

    def __init__(self, attempts: Attempts, now: Snapshot, search: Search) -> None:
        self.attempts = attempts
        self.now = now
        self.search = search
        self.begun = time.perf_counter()
        self.before = attempts.costs.seconds["em"]

    def shared(self, fit: Fit, parameters: Shared) -> None:
        """After an iteration with one variance and equal weights."""
        is_last_phase = self.attempts.problem.settings.is_shared
        now = replace(self.now, means=parameters.means, variance=parameters.variance)
        self._tell(now, fit, fit.converged and is_last_phase)

    def own(self, fit: Fit, parameters: Mixture) -> None:
        """After an iteration with weights and variances of the clusters' own."""
        now = replace(self.now, means=parameters.means, variance=fit.variance, mixture=parameters)
        self._tell(now, fit, fit.converged)

    def _tell(self, now: Snapshot, fit: Fit, converged: bool) -> None:
        attempts, settings = self.attempts, self.attempts.problem.settings
        if attempts.keep is None:
            return
        present = time.perf_counter()
        seconds = {**attempts.costs.seconds, "em": self.before + present - self.begun}
        costs = Costs(seconds, attempts.costs.n_evaluations, present - attempts.begun)
        over = converged or len(fit.bounds) == settings.max_iter
        last = fit.stopped or (over and now.attempt == settings.n_init - 1)
        attempts.keep(replace(now, costs=costs, fit=fit, search=self.search.state()), last)


def seed(points: LocalPoints, problem: Problem, attempt: int, workers: Workers, progress: Progress) -> Start:
    """Initial means, and with the blocked search a near cluster of every point."""
    settings, weights = problem.settings, problem.coreset.weights
    rng = generator(settings.seed, SEEDING, attempt)
    n_clusters, init = settings.n_components, settings.init
    if isinstance(init, str) and init == "two_level":
        if settings.search == "pointwise":
            return two_level(points.array, weights, n_clusters, rng, workers, progress.advance)
        few = SearchSettings.of(settings)
        return start_in_subspace(points, weights, n_clusters, few, rng, workers, progress.advance)
    if not isinstance(init, str):
        means, n_evaluations = problem.frame.enter(init, np.dtype(np.float64)), 0
        progress.advance(n_clusters)
    else:
        if init == "afkmc2":
            seeds = afkmc2(
                points.array, weights, n_clusters, settings.chain_length, rng, workers, progress.advance
            )
        elif init == "k-means++":
            seeds = kmeans_plus_plus(points.array, weights, n_clusters, rng, workers, progress.advance)
        else:
            seeds = random_points(points.array, weights, n_clusters, rng)
            progress.advance(n_clusters)
        means, n_evaluations = points.array[seeds.indices].astype(np.float64), seeds.n_evaluations
    if settings.search == "pointwise":  # finds its winners from a random start, as the paper does
        return Start(means, np.empty(0, np.int32), np.nan, n_evaluations)
    start = assign(points.array, weights, means, workers)
    start.n_evaluations += n_evaluations
    return start
