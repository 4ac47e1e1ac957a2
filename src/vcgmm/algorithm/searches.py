"""The searches of an attempt's E-steps: made at its start, or from where a snapshot was taken."""

from __future__ import annotations

import math

import numpy as np

from ..parallel import Workers
from .coreset.local_points import LocalPoints
from .estep import Search, State
from .models.search import JointSearch
from .nearest import k_nearest
from .random import generator
from .search.blocked import BlockedSearch
from .search.pointwise import PointwiseSearch
from .seeding.afkmc2 import Start
from .snapshot import Problem

#: What the random numbers of searches are for, beside those of `attempts`.
SEARCH = 2


def make_search(points: LocalPoints, problem: Problem, attempt: int, start: Start, workers: Workers) -> Search:
    """The search of an attempt's E-steps, at its start."""
    settings = problem.settings
    if settings.search == "blocked":
        return _blocked(points, problem, attempt, start.labels, start.error, workers, start.rows)
    winners = neighbors = None
    if settings.initial_variance is not None:  # from good means, random winners would throw the fit back
        winners = k_nearest(points.array, start.means, settings.truncation, workers)
        neighbors = k_nearest(start.means, start.means, settings.n_neighbors, workers)
        neighbors[:, 0] = np.arange(settings.n_components)
    return _pointwise(points, problem, attempt, winners, neighbors, workers)


def restore_search(
    points: LocalPoints, problem: Problem, attempt: int, state: State, own: bool, workers: Workers
) -> Search:
    """The search of an attempt's E-steps, as it was when its state was taken; by joints if it was so already."""
    search: Search
    if problem.settings.search == "blocked":
        nowhere = np.zeros(len(points), np.int32)  # the state has more than a label of every point
        search = _blocked(points, problem, attempt, nowhere, math.nan, workers)
        if own and isinstance(search, JointSearch):
            search.compare_joints()
    else:
        search = _pointwise(points, problem, attempt, state["winners"], state["neighbors"], workers)
    search.restore(state)
    return search


def _blocked(
    points: LocalPoints,
    problem: Problem,
    attempt: int,
    labels: np.ndarray,
    error: float,
    workers: Workers,
    rows: np.ndarray | None = None,
) -> BlockedSearch:
    settings = problem.settings
    kind = BlockedSearch if settings.is_shared else JointSearch
    if rows is not None and not settings.is_shared:
        rows = None  # sums that it begins with would differ in their last bits when a fit is resumed
        points.put_back()
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
        rows,
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
