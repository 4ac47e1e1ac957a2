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
from .blocked import BlockedSearch
from .em import Fit, variational_em
from .estep import Search, State
from .local_points import LocalPoints
from .models.em import joint_em, shared_start
from .models.search import JointSearch
from .models.start import model_of
from .mstep import initial_variance
from .nearest import k_nearest
from .pointwise import PointwiseSearch
from .random import generator
from .seeding import Start, afkmc2, assign, kmeans_plus_plus, random_points
from .snapshot import Attempt, Costs, Keep, Problem, Snapshot
from .subspace import SearchSettings, start_in_subspace
from .two_level import two_level

#: What the streams of random numbers are for.
CORESET, SEEDING, SEARCH = range(3)


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
        with self._timed("seeding"):
            self.progress.start("seeding", problem.settings.n_components)
            start = self._start(attempt)
            self.progress.finish()
        self.costs.n_evaluations["seeding"] += start.n_evaluations
        with self._timed("em"):
            search = self._search(attempt, start)
        variance = problem.settings.initial_variance
        if variance is not None:
            variance *= problem.frame.scale**2
        fit = Fit(start.means, math.nan, np.zeros(len(start.means)))
        # Without the state of the search: it would hold arrays that the search has long replaced.
        now = Snapshot(problem, self.costs, attempt, best, fit, start.means, variance, {})
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

    def _restore(self, snapshot: Snapshot) -> tuple[Snapshot, Search]:
        """The attempt in which a snapshot was taken; what stopped it then does not stop it now."""
        search = restore_search(self.points, self.problem, snapshot.attempt, snapshot.search, self.workers)
        snapshot.search.clear()  # the arrays are the search's now, and large
        return replace(snapshot, fit=replace(snapshot.fit, stopped=False)), search

    def _improve(self, now: Snapshot, search: Search) -> Fit:
        """EM, from a snapshot to its end."""
        problem, settings = self.problem, self.problem.settings
        begun, before = time.perf_counter(), self.costs.seconds["em"]

        def keep(fit: Fit, means: np.ndarray, variance: float) -> None:
            if self.keep is None:
                return
            present = time.perf_counter()
            seconds = {**self.costs.seconds, "em": before + present - begun}
            costs = Costs(seconds, self.costs.n_evaluations, present - self.begun)
            over = fit.converged or len(fit.bounds) == settings.max_iter
            last = fit.stopped or (over and now.attempt == settings.n_init - 1)
            state = search.state()
            self.keep(replace(now, costs=costs, fit=fit, means=means, variance=variance, search=state), last)

        with self._timed("em"):
            self.progress.start("em", settings.max_iter)
            fit = variational_em(
                search,
                now.means,
                now.variance,
                total_weight=float(problem.coreset.weights.sum()),
                n_warmup=settings.n_warmup,
                tol=settings.tol,
                max_iter=settings.max_iter if settings.is_shared else min(settings.n_shared, settings.max_iter),
                relaxation=settings.relaxation,
                variance_floor=problem.variance_floor,
                log_scale=problem.frame.log_scale,
                weight_unit=problem.weight_unit,
                callbacks=self.callbacks,
                progress=self.progress,
                begun=self.begun,
                fit=now.fit,
                keep=keep,
            )
            if isinstance(search, JointSearch):
                fit = self._improve_joints(fit, now.variance, search)
            self.progress.finish()
        self.costs.n_evaluations["em"] += fit.n_evaluations
        return fit

    def _improve_joints(self, fit: Fit, variance: float | None, search: JointSearch) -> Fit:
        """EM with weights and variances of the clusters' own, from where EM without them has come to."""
        problem, settings = self.problem, self.problem.settings
        model = model_of(settings, problem.variance_floor, search)
        total_weight = float(problem.coreset.weights.sum())
        if fit.bounds:
            variance = fit.variance
        elif variance is None:
            n_features = fit.means.shape[1]
            variance = initial_variance(search.start_error, total_weight, n_features, problem.variance_floor)
        fit.mixture = shared_start(fit.means, variance, model)
        fit.variance = variance
        return joint_em(
            search,
            fit.mixture,
            model,
            fit,
            total_weight=total_weight,
            tol=settings.tol,
            max_iter=settings.max_iter,
            relaxation=settings.relaxation,
            log_scale=problem.frame.log_scale,
            weight_unit=problem.weight_unit,
            callbacks=self.callbacks,
            progress=self.progress,
            begun=self.begun,
        )

    @contextmanager
    def _timed(self, step: str) -> Iterator[None]:
        """Count the time of a block as that of a step."""
        begun = time.perf_counter()
        yield
        self.costs.seconds[step] += time.perf_counter() - begun


def seed(points: LocalPoints, problem: Problem, attempt: int, workers: Workers, progress: Progress) -> Start:
    """Initial means, and with the blocked search a near cluster of every point."""
    settings, weights = problem.settings, problem.coreset.weights
    rng = generator(settings.seed, SEEDING, attempt)
    n_clusters, init = settings.n_components, settings.init
    if isinstance(init, str) and init == "two_level":
        if settings.search == "pointwise":
            return two_level(points.array, weights, n_clusters, rng, workers, progress.advance)
        few = SearchSettings(
            settings.truncation,
            settings.n_neighbors,
            settings.n_candidates,
            settings.tol,
            settings.max_iter,
            settings.relaxation,
        )
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


def make_search(points: LocalPoints, problem: Problem, attempt: int, start: Start, workers: Workers) -> Search:
    """The search of an attempt's E-steps, at its start."""
    settings = problem.settings
    if settings.search == "blocked":
        return _blocked(points, problem, attempt, start.labels, start.error, workers)
    winners = neighbors = None
    if settings.initial_variance is not None:  # from good means, random winners would throw the fit back
        winners = k_nearest(points.array, start.means, settings.truncation, workers)
        neighbors = k_nearest(start.means, start.means, settings.n_neighbors, workers)
        neighbors[:, 0] = np.arange(settings.n_components)
    return _pointwise(points, problem, attempt, winners, neighbors, workers)


def restore_search(points: LocalPoints, problem: Problem, attempt: int, state: State, workers: Workers) -> Search:
    """The search of an attempt's E-steps, as it was when its state was taken."""
    search: Search
    if problem.settings.search == "blocked":
        nowhere = np.zeros(len(points), np.int32)  # the state has more than a label of every point
        search = _blocked(points, problem, attempt, nowhere, math.nan, workers)
    else:
        search = _pointwise(points, problem, attempt, state["winners"], state["neighbors"], workers)
    search.restore(state)
    return search


def _blocked(
    points: LocalPoints, problem: Problem, attempt: int, labels: np.ndarray, error: float, workers: Workers
) -> BlockedSearch:
    settings = problem.settings
    kind = BlockedSearch if settings.is_shared else JointSearch
    return kind(
        points.array,
        problem.coreset.weights,
        labels,
        settings.n_components,
        settings.truncation,
        settings.n_neighbors,
        settings.n_candidates,
        settings.n_explore,
        search_seed(settings.seed, attempt),
        error,
        problem.variance_floor,
        workers,
        points.reorder,
    )


def _pointwise(
    points: LocalPoints,
    problem: Problem,
    attempt: int,
    winners: np.ndarray | None,
    neighbors: np.ndarray | None,
    workers: Workers,
) -> PointwiseSearch:
    settings = problem.settings
    return PointwiseSearch(
        points.array,
        problem.coreset.weights,
        settings.n_components,
        settings.truncation,
        settings.n_neighbors,
        settings.n_explore,
        search_seed(settings.seed, attempt),
        problem.variance_floor,
        workers,
        winners,
        neighbors,
    )


def search_seed(seed: int, attempt: int) -> int:
    """The seed of a search's own random numbers."""
    return int(generator(seed, SEARCH, attempt).integers(1 << 62))
