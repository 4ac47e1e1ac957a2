"""The two-level start where no fit follows: centres, and nothing else that a fit would ask for."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ..kernels.lloyd import mean_of_groups
from ..parallel import MOVING, Workers
from .cells import Neighbourhoods, sort_by_cluster
from .coreset import rows_at_once
from .directions import leading_directions
from .extent import Extent
from .local_points import LocalPoints
from .mstep import LocalStatistics
from .natural import Natural
from .seeding import Start
from .subspace import SearchSettings, improved_labels, lift
from .sums import Sums
from .two_level import ALONE, BEFORE_A_FIT, Effort, two_level

#: EM iterations in few dimensions, where rows are wide and nobody says how many.
ITERATIONS_IF_WIDE = 5

#: Neighbours and candidates of a cluster in iterations that nothing follows.
NEIGHBOURS = 5
CANDIDATES = 32

#: Instead of a precision: no responsibilities but those of the nearest.
FIRST_TAKES_ALL = -1.0


def start_alone(
    points: LocalPoints,
    weights: np.ndarray,
    n_clusters: int,
    max_iter: int | None,
    lloyd_steps: int | None,
    rng: np.random.Generator,
    workers: Workers,
    advance: Callable[[int], None],
) -> np.ndarray:
    """Centres (C, D) float64: those of a two-level start, in a subspace where that pays, after some EM iterations.

    Parameters
    ----------
    points : LocalPoints
    weights : (N',) float64
    n_clusters : int
        At most the number of distinct points.
    max_iter : int or None
        EM iterations: one is a step of Lloyd's algorithm, in which clusters of all cells meet; if more follow,
        clusters are moved after the first.  None: some where rows are wide, else none.
    lloyd_steps : int or None
        Inside cells, before that.  None: as `effort_for` says.
    rng : numpy Generator
    workers : Workers
    advance : callable
        Told how many clusters have been found since the last call.
    """
    directions = leading_directions(points, weights, rng)
    if max_iter is None:
        max_iter = 0 if directions is None else ITERATIONS_IF_WIDE
    effort = effort_for(max_iter, lloyd_steps)
    if directions is None and max_iter < 2:
        return _of_narrow(points, weights, n_clusters, max_iter == 1, effort, rng, workers, advance)
    seen = points.array if directions is None else points.project(directions)
    start = two_level(seen, weights, n_clusters, rng, workers, advance, effort=effort)
    if max_iter == 0:
        labels = start.labels
    elif max_iter == 1:
        _, labels = one_step(seen, weights, start, rng, workers)
    else:  # the first is made before clusters are moved
        neighbours, candidates = min(NEIGHBOURS, n_clusters), min(CANDIDATES, n_clusters)
        settings = SearchSettings(min(5, n_clusters), neighbours, candidates, 1e-4, max_iter - 1, 1.8)
        labels, _ = improved_labels(seen, weights, start, settings, rng, workers)
    points.put_back()  # what lies there are projections, or has changed places
    return means_of_labels(points, weights, labels, n_clusters, workers)


def effort_for(max_iter: int, lloyd_steps: int | None) -> Effort:
    """What two levels do before so many iterations: as before a fit, if clusters are moved after the first."""
    if lloyd_steps is None:
        lloyd_steps = ALONE.steps if max_iter == 0 else BEFORE_A_FIT.steps
    if max_iter > 1:
        return replace(BEFORE_A_FIT, steps=lloyd_steps)
    # Rows in proportion: few steps are not worth many of them, nor many steps few.
    return replace(ALONE, steps=lloyd_steps, sample=ALONE.sample * lloyd_steps // ALONE.steps)


def _of_narrow(
    points: LocalPoints,
    weights: np.ndarray,
    n_clusters: int,
    step: bool,
    effort: Effort,
    rng: np.random.Generator,
    workers: Workers,
    advance: Callable[[int], None],
) -> np.ndarray:
    """As `start_alone`, for rows that are not projected and one iteration or none: they stay where they are."""
    rows = points.as_they_lie()
    seen = points.array if rows is None else rows
    start = two_level(seen, weights, n_clusters, rng, workers, advance, effort=effort, labelled=step)
    return one_step(seen, weights, start, rng, workers)[0] if step else start.means


def one_step(
    points: np.ndarray, weights: np.ndarray, start: Start, rng: np.random.Generator, workers: Workers
) -> tuple[np.ndarray, np.ndarray]:
    """Every point to the nearest of some clusters about its own: means (C, d) float64, and labels (N',) int32.

    Parameters
    ----------
    points : (N', d) float
        Left as they lie: putting them in order takes longer than one step.
    weights : (N',) float64
    start : Start
        Its labels are changed in place.
    rng : numpy Generator
    workers : Workers
    """
    n_clusters = len(start.means)
    near = Neighbourhoods(
        n_clusters,
        min(NEIGHBOURS, n_clusters),
        min(CANDIDATES, n_clusters),
        0,
        int(rng.integers(1 << 62)),
        workers,
    )
    natural = Natural.shared(start.means.astype(points.dtype))
    near.update(natural)
    order, bounds = sort_by_cluster(start.labels, n_clusters)
    sums = Sums(natural, Extent.of(points, weights, workers).rounding(natural), workers)
    sums.search(points, weights, start.labels[:, None], order, bounds, near.candidates, FIRST_TAKES_ALL)
    total = float(weights.sum())
    statistics = LocalStatistics.of(natural.means, math.nan, sums.totals(), total, 0, workers=workers)
    return statistics.moved(1.0), start.labels


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
    order, start = sort_by_cluster(labels, n_clusters)
    if not points.source.quick or not np.diff(start).all():
        return lift(points.array, weights, labels, n_clusters, 0, workers).means
    means, nowhere = np.empty((n_clusters, points.n_features)), np.empty(0, points.frame.dtype)
    there = points.as_they_lie()
    if there is not None:
        workers.run(
            lambda _thread, first, last: mean_of_groups(first, last, there, weights, order, start, means, nowhere),
            n_clusters,
            MOVING * there.size,
        )
        return means
    runs = runs_of_groups(start, rows_at_once(points.n_features * points.frame.dtype.itemsize))

    def work(_thread: int, first: int, last: int) -> None:
        for a, b in zip(runs[first:last], runs[first + 1 : last + 1], strict=True):
            rows, bounds = order[start[a] : start[b]], start[a : b + 1] - start[a]
            places = np.arange(len(rows), dtype=order.dtype)
            mean_of_groups(0, b - a, points.take(rows), weights[rows], places, bounds, means[a:b], nowhere)

    workers.run(work, len(runs) - 1, MOVING * len(order) * points.n_features)
    return means


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
