"""The two-level start where no fit follows: centres, and nothing else that a fit would ask for."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ...kernels.coreset.coordinates import mean_in_coordinates
from ...kernels.nearest.lloyd import mean_of_groups
from ...parallel import MOVING, Workers
from ..cells.neighbourhoods import sort_by_cluster
from ..coreset.lightweight import rows_at_once
from ..coreset.local_points import LocalPoints
from ..seeding.two_level import ALONE, BEFORE_A_FIT, Effort, two_level
from .directions import directions_alone, directions_for_few
from .empty_clusters import put_on_farthest
from .hard_steps import asks_for_labels, hard_steps
from .subspace import WINNERS, SearchSettings, improved_labels, lift

#: Iterations, where nobody says how many: in few dimensions, where rows are wide, and of Lloyd steps.
ITERATIONS = 5

#: Neighbours and candidates of a cluster in iterations that nothing follows.
NEIGHBOURS = 5
CANDIDATES = 32


@dataclass(frozen=True)
class Wishes:
    """What users ask for: the parameters of `vcgmm.two_level` with these names."""

    max_iter: int | None = None
    lloyd_steps: int | None = None
    hard: bool = False
    levels: int | None = None
    n_init: int = 1


@dataclass(frozen=True)
class Plan:
    """What is done for clusters.

    Attributes
    ----------
    iterations : int
        Of EM: one is a step of Lloyd's algorithm, in which clusters of all cells meet; if more follow, clusters
        are moved after the first.
    inside : int
        Lloyd steps inside cells, before that.
    hard : bool
        All iterations are steps of Lloyd's algorithm, and no clusters are moved.
    levels : int or None
        Of cells, the last of which is clusters; None: as many as it takes.
    attempts : int
        How often all that is done; the best is taken.
    """

    iterations: int
    inside: int
    hard: bool
    levels: int | None
    attempts: int

    @classmethod
    def of(cls, wishes: Wishes, is_wide: bool) -> Plan:
        """As users ask for it, and None is for them to leave open."""
        max_iter, lloyd_steps, hard = wishes.max_iter, wishes.lloyd_steps, wishes.hard
        if max_iter is None:
            max_iter = ITERATIONS if is_wide or hard else 0
        if lloyd_steps is None:
            lloyd_steps = ALONE.steps if max_iter == 0 else BEFORE_A_FIT.steps
        return cls(max_iter, lloyd_steps, hard or max_iter < 2, wishes.levels, wishes.n_init)

    @property
    def effort(self) -> Effort:
        """What two levels do: as before a fit, if clusters are moved."""
        if not self.hard:
            return replace(BEFORE_A_FIT, steps=self.inside)
        # Rows in proportion: few steps are not worth many of them, nor many steps few.
        return replace(ALONE, steps=self.inside, sample=ALONE.sample * self.inside // ALONE.steps)


def start_alone(
    points: LocalPoints,
    weights: np.ndarray,
    n_clusters: int,
    wishes: Wishes,
    rng: np.random.Generator,
    workers: Workers,
    advance: Callable[[int], None],
) -> np.ndarray:
    """Centres (C, D) float64: those of a two-level start, in a subspace where that pays, after some iterations.

    Parameters
    ----------
    points : LocalPoints
    weights : (N',) float64
    n_clusters : int
        At most the number of distinct points.
    wishes : Wishes
    rng : numpy Generator
    workers : Workers
    advance : callable
        Told how many clusters have been found since the last call.
    """
    directions, is_wide = directions_for_few(points, weights, n_clusters, rng), True
    if directions is None:
        directions, is_wide = directions_alone(points, weights, rng)
    plan = Plan.of(wishes, is_wide=is_wide and directions is not None)
    from_labels = directions is not None or not plan.hard  # else means are known, and rows can stay where they are
    if directions is not None:
        seen = points.project(directions)
    else:
        rows = None if from_labels else points.as_they_lie()
        seen = points.array if rows is None else rows
    best = _attempt(seen, weights, n_clusters, plan, from_labels, rng, workers, advance)
    for _ in range(plan.attempts - 1):
        other = _attempt(seen, weights, n_clusters, plan, from_labels, rng, workers, advance)
        best = other if other.error < best.error else best
    if not from_labels:
        return best.means
    points.put_back()  # what lies there are projections, or has changed places
    return means_of_labels(points, weights, best.labels, n_clusters, workers)


@dataclass(frozen=True)
class Found:
    """Clusters of one attempt.

    Attributes
    ----------
    means : (C, d) float64
        Of what was looked at, where they are not taken from labels in the end.
    labels : (N',) int32, or (0,) where nobody asks for any
    error : float
        Of labels, about the means of theirs in what was looked at; NaN where there is nothing to compare it with.
    """

    means: np.ndarray
    labels: np.ndarray
    error: float


def _attempt(
    seen: np.ndarray,
    weights: np.ndarray,
    n_clusters: int,
    plan: Plan,
    from_labels: bool,
    rng: np.random.Generator,
    workers: Workers,
    advance: Callable[[int], None],
) -> Found:
    """What is planned, once; `seen` (N', d) is left as it lies."""
    compared = plan.attempts > 1
    labelled = from_labels or compared
    if plan.hard and plan.iterations > 0:
        labelled = asks_for_labels(n_clusters, seen.shape[1])
    start = two_level(
        seen, weights, n_clusters, rng, workers, advance, effort=plan.effort, labelled=labelled, levels=plan.levels
    )
    if plan.iterations == 0:
        return Found(start.means, start.labels, start.error)
    means = start.means
    if plan.hard:
        means, labels = hard_steps(seen, weights, means, start.labels, plan.iterations, rng, workers)
    else:  # the first is made before clusters are moved
        neighbours, candidates = min(NEIGHBOURS, n_clusters), min(CANDIDATES, n_clusters)
        settings = SearchSettings(min(WINNERS, n_clusters), neighbours, candidates, 1e-4, plan.iterations - 1, 1.8)
        labels, _ = improved_labels(seen, weights, start, settings, rng, workers)
    return Found(
        means, labels, lift(seen, weights, labels, n_clusters, 0, workers).error if compared else math.nan
    )


def means_of_labels(
    points: LocalPoints, weights: np.ndarray, labels: np.ndarray, n_clusters: int, workers: Workers
) -> np.ndarray:
    """Weighted means (C, D) float64 of every cluster's points, which are fetched as they are needed, if at all.

    Parameters
    ----------
    points : LocalPoints
    weights : (N',) float64
    labels : (N',) int32
    n_clusters : int
    workers : Workers
    """
    order, start = sort_by_cluster(labels, n_clusters, workers)
    if not points.source.quick:
        return lift(points.array, weights, labels, n_clusters, 0, workers).means
    frame, means = points.frame, np.empty((n_clusters, points.n_features))
    sizes = np.diff(start)
    empty = np.flatnonzero(sizes == 0)
    distances = np.empty(len(labels) if len(empty) else 0, frame.dtype)  # only they ask for any
    given = points.as_given()
    if given is not None:

        def add(_thread: int, first: int, last: int) -> None:
            mean_in_coordinates(
                first, last, given, frame.origin, frame.scale, weights, order, start, means, distances
            )

        workers.run(add, n_clusters, MOVING * given.size)
    else:
        add_runs(points, weights, order, start, means, distances, workers)
    if len(empty):
        costs = weights * distances
        put_on_farthest(empty, costs, labels, sizes, lambda place: points.take(np.array([place]))[0], means)
    return means


def add_runs(
    points: LocalPoints,
    weights: np.ndarray,
    order: np.ndarray,
    start: np.ndarray,
    means: np.ndarray,
    distances: np.ndarray,
    workers: Workers,
) -> None:
    """`kernels.nearest.lloyd.mean_of_groups` of points that are fetched some groups at a time; its arrays."""
    runs = runs_of_groups(start, rows_at_once(points.n_features * points.frame.dtype.itemsize))

    def work(_thread: int, first: int, last: int) -> None:
        for a, b in zip(runs[first:last], runs[first + 1 : last + 1], strict=True):
            rows, bounds = order[start[a] : start[b]], start[a : b + 1] - start[a]
            places = np.arange(len(rows), dtype=order.dtype)
            near = np.empty(len(rows) if len(distances) else 0, distances.dtype)
            mean_of_groups(0, b - a, points.take(rows), weights[rows], places, bounds, means[a:b], near)
            if len(distances):
                distances[rows] = near

    workers.run(work, len(runs) - 1, MOVING * len(order) * points.n_features)


def runs_of_groups(start: np.ndarray, most: int) -> list[int]:
    """Where runs of groups begin, and the end of the last: each of at most so many points, or of one group.

    Parameters
    ----------
    start : (n_groups + 1,) int64
    most : int
    """
    runs = [0]
    while runs[-1] < len(start) - 1:
        group = int(np.searchsorted(start, start[runs[-1]] + most, side="right")) - 1
        runs.append(max(group, runs[-1] + 1))
    return runs
