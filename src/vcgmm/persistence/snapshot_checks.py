"""Snapshots that no fit can have been in are refused: kernels trust the ids of clusters and rows they get."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain

import numpy as np

from ..algorithm.em import Fit
from ..algorithm.models.families import FAMILIES
from ..algorithm.snapshot import Snapshot
from ..data import ArrayRows
from ..mixture_parameters import METRICS, MIXINGS


def check_snapshot(path: object, snapshot: Snapshot) -> None:
    """Refuse numbers that would make nonsense, or worse, of the fit that goes on with them.

    Parameters
    ----------
    path : object
        What messages call the file.
    snapshot : Snapshot
        Its arrays have the right types, and shapes that agree with one another.

    Raises
    ------
    ValueError
    """
    # In turn: what comes later relies on what was checked before it.
    checks = (_settings, _numbers, _mixtures, _search)
    for wrong, good in chain.from_iterable(check(snapshot) for check in checks):
        if not good:
            raise ValueError(f"{path} is not what vcgmm wrote: {wrong}. Get a new copy of it.")
    points = ArrayRows(snapshot.problem.coreset.points, f"{path}, coreset.points,")
    for block in range(points.n_blocks):
        points.refuse_nonfinite(block)


Checks = Iterator[tuple[str, object]]


def _settings(snapshot: Snapshot) -> Checks:
    """Settings that agree with the arrays and with one another."""
    settings, search = snapshot.problem.settings, snapshot.search
    n_clusters = len(snapshot.means)
    yield "n_components is not the number of means", settings.n_components == n_clusters > 0
    yield "there are fewer points than clusters", len(snapshot.problem.coreset) >= n_clusters
    yield "truncation is not the width of the winners", settings.truncation == search["winners"].shape[1] > 0
    yield "n_neighbors is not the width of neighbors", settings.n_neighbors == search["neighbors"].shape[1] > 0
    yield "n_explore is out of range", 0 <= settings.n_explore <= n_clusters
    widest = max(settings.truncation, settings.n_neighbors)
    yield "n_candidates is out of range", widest <= settings.n_candidates <= n_clusters
    yield "dtype is not that of the frame", settings.dtype == snapshot.problem.frame.dtype
    yield "relaxation is out of range", 0 < settings.relaxation < 2
    counts = (settings.n_init, settings.max_iter, settings.chain_length)
    yield "n_init, max_iter or chain_length is not positive", min(counts) >= 1
    yield "the seed, n_warmup or refine is negative", min(settings.seed, settings.n_warmup, settings.refine) >= 0
    kind = (settings.covariance_type, settings.mixing, settings.metric)
    known = settings.covariance_type in FAMILIES and settings.mixing in MIXINGS and settings.metric in METRICS
    yield f"{kind} is no known mixture", known and (settings.is_shared or settings.metric == "euclidean")
    yield "clusters of their own need the blocked search", settings.is_shared or settings.search == "blocked"
    yield "n_shared or reg_covar is negative", settings.n_shared >= 0 and 0 <= settings.reg_covar < math.inf
    yield "the attempt is none of n_init", 0 <= snapshot.attempt < settings.n_init


def _numbers(snapshot: Snapshot) -> Checks:
    """Finite means and positive variances, as many bounds as iterations are allowed."""
    problem, best = snapshot.problem, snapshot.best
    yield "the means are not finite", _finite(snapshot.means) and _finite(problem.frame.origin)
    yield "the variance is not positive", snapshot.variance is None or 0 < snapshot.variance < math.inf
    yield "the variance is not known", snapshot.variance is not None or not snapshot.fit.bounds
    weights = problem.coreset.weights
    yield "a weight is not valid", _finite(weights) and (weights >= 0).all() and weights.any()
    yield "an index is negative", (problem.coreset.indices >= 0).all()
    yield "the unit of weights is not positive", 0 < problem.weight_unit < math.inf
    yield "the smallest variance is not positive", 0 < problem.variance_floor < math.inf
    yield "the first attempt has one before it", (best is not None) == (snapshot.attempt > 0)
    for fit in (snapshot.fit, *([] if best is None else [best.fit])):
        yield from _fit(fit, fit is snapshot.fit, problem.settings.max_iter)


def _fit(fit: Fit, running: bool, max_iter: int) -> Checks:
    yield "an attempt has more iterations than max_iter", len(fit.bounds) <= max_iter
    yield "an attempt has means or masses that are not finite", _finite(fit.means) and _finite(fit.masses)
    begun = len(fit.bounds) > 0
    yield "an attempt ended before it began", begun or running
    yield "an attempt has no variance", 0 < fit.variance < math.inf or not begun
    yield "a step is not positive", 0 < fit.step < math.inf
    if running:
        known = fit.moves is not None and _finite(fit.moves)
        yield "the last moves are not known", known or not begun


def _mixtures(snapshot: Snapshot) -> Checks:
    """Weights and variances of the clusters' own where they belong, and such that joints can be computed."""
    settings, fit, best = snapshot.problem.settings, snapshot.fit, snapshot.best
    own = snapshot.mixture is not None
    together = (fit.mixture is not None, fit.n_shared is not None, fit.sown is not None)
    yield "a part of the mixture is missing", all(there == own for there in together)
    yield "one variance and equal weights are all that is asked for", not (own and settings.is_shared)
    yield "n_shared is none of the iterations", not own or 0 <= (fit.n_shared or 0) <= len(fit.bounds)
    if best is not None:
        yield "the best attempt has another model", (best.fit.mixture is None) == settings.is_shared
    mixtures = [snapshot.mixture, fit.mixture, None if best is None else best.fit.mixture]
    n_squares = FAMILIES[settings.covariance_type].n_squares(snapshot.means.shape[1])
    for mixture in mixtures:
        if mixture is None:
            continue
        variances, weights = mixture.variances, mixture.weights
        yield "a cluster has too few or many variances", variances.shape[1] == n_squares
        yield "a variance is not positive", _finite(variances) and (variances > 0).all()
        yield "a weight of a cluster is not valid", _finite(weights) and (weights >= 0).all() and weights.any()


def _search(snapshot: Snapshot) -> Checks:
    """Winners, neighbours and candidates that are clusters, and rows that are a permutation of the points."""
    state, settings = snapshot.search, snapshot.problem.settings
    n_points, n_clusters = len(snapshot.problem.coreset), settings.n_components
    winners = state["winners"]
    yield "neighbors names clusters that are not there", _within(state["neighbors"], 0, n_clusters)
    if snapshot.best is not None:
        yield "best.neighbors names clusters that are not there", _within(snapshot.best.neighbors, 0, n_clusters)
    if settings.search == "pointwise":
        yield "winners names clusters that are not there", _within(winners, 0, n_clusters)
        yield "n_searches is negative", state["n_searches"] >= 0
        return
    known = _within(winners[:, 0], 0, n_clusters) and _within(winners, -1, n_clusters)
    yield "winners names clusters that are not there", known
    nearest, candidates, n_updates = state["nearest"], state["candidates"], state["n_updates"]
    width = min(n_clusters, settings.n_candidates + settings.n_explore)
    yield "nearest is not as wide as n_candidates", nearest.shape[1] == settings.n_candidates
    yield "candidates is not as wide as n_candidates", candidates.shape[1] == width
    yield "nearest names clusters that are not there", _within(nearest, -1 if n_updates == 0 else 0, n_clusters)
    yield "candidates names clusters that are not there", _within(candidates, 0, n_clusters)
    yield "n_updates is negative", n_updates >= 0
    yield "misplaced is out of range", state["misplaced"] >= 0
    yield "rows is no permutation", _permutation(state["rows"], n_points)


def _finite(array: np.ndarray) -> bool:
    return bool(np.isfinite(array).all())


def _within(array: np.ndarray, low: int, high: int) -> bool:
    return bool(array.min(initial=low) >= low and array.max(initial=low) < high)


def _permutation(rows: np.ndarray, n: int) -> bool:
    if not _within(rows, 0, n):
        return False
    seen = np.zeros(n, bool)
    seen[rows] = True
    return bool(seen.all())
