"""The whole of the paper's Algorithm 1: coreset, seeding, variational EM."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..data import ArrayRows
from ..parallel import Workers
from ..progress import Callback, Progress
from .blocked import BlockedSearch
from .coreset import Coreset, all_rows, count_distinct, lightweight_coreset
from .em import Fit, variational_em
from .estep import Search
from .frame import Frame, Moments, moments
from .nearest import k_nearest
from .pointwise import PointwiseSearch
from .random import generator
from .seeding import Start, afkmc2, assign, kmeans_plus_plus, random_points
from .subspace import SearchSettings, start_in_subspace
from .two_level import two_level

#: What the streams of random numbers are for.
CORESET, SEEDING, SEARCH = range(3)

#: The variance never falls below this, in local coordinates, however equal the points are.
SMALLEST_VARIANCE = 1e-150


@dataclass(frozen=True)
class Settings:
    """All that steers a fit, validated and clipped to the problem; names as in the estimator."""

    n_components: int
    coreset_size: int | None
    truncation: int
    n_neighbors: int
    n_explore: int
    search: str
    n_candidates: int
    init: str | np.ndarray
    chain_length: int
    n_warmup: int
    tol: float
    max_iter: int
    relaxation: float
    n_init: int
    reg_covar: float
    initial_variance: float | None
    seed: int
    dtype: np.dtype[Any]


@dataclass
class Result:
    """A finished fit, in data coordinates.

    Attributes
    ----------
    means : (C, D) float64
    variance : float
    masses : (C,) float64
    bounds : list of float
    converged, stopped : bool
    neighbors : (C, G) int32
    coreset : Coreset
    frame : Frame
    timings, n_evaluations : dict
        Seconds and distances of "coreset", "seeding" and "em".
    """

    means: np.ndarray
    variance: float
    masses: np.ndarray
    bounds: list[float]
    converged: bool
    stopped: bool
    neighbors: np.ndarray
    coreset: Coreset
    frame: Frame
    timings: dict[str, float]
    n_evaluations: dict[str, int]


def run(
    rows: ArrayRows,
    weights: np.ndarray | None,
    settings: Settings,
    callbacks: Sequence[Callback],
    progress: Progress,
    workers: Workers,
) -> Result:
    """Fit.

    Parameters
    ----------
    rows : ArrayRows
    weights : (N,) float64 or None
    settings : Settings
    callbacks : sequence of Callback
    progress : Progress
    workers : Workers
    """
    begun = time.perf_counter()
    progress.start("coreset", 2 * rows.n_samples)
    weights, unit = in_units(weights)
    facts = moments(rows, weights, workers, progress.advance)
    coreset = make_coreset(rows, weights, facts, settings)
    check_distinct(coreset, "n_components", settings.n_components, rows.n_samples)
    frame = facts.frame(settings.dtype)
    points = to_local(coreset, frame, workers)
    progress.finish()
    timings = {"coreset": time.perf_counter() - begun, "seeding": 0.0, "em": 0.0}
    n_evaluations = {"coreset": rows.n_samples, "seeding": 0, "em": 0}

    floor = variance_floor(facts, frame, settings.reg_covar)
    tries: list[tuple[Fit, np.ndarray]] = []
    for attempt in range(settings.n_init):
        mark = time.perf_counter()
        progress.start("seeding", settings.n_components)
        start = seed(points, coreset.weights, frame, settings, attempt, workers, progress)
        progress.finish()
        timings["seeding"] += time.perf_counter() - mark
        n_evaluations["seeding"] += start.n_evaluations

        mark = time.perf_counter()
        progress.start("em", settings.max_iter)
        search, variance = make_search(points, coreset.weights, frame, start, settings, floor, attempt, workers)
        if attempt == settings.n_init - 1:
            del points  # the search keeps its own order of them: one copy is enough
        fit = variational_em(
            search,
            start.means,
            variance,
            total_weight=float(coreset.weights.sum()),
            n_warmup=settings.n_warmup,
            tol=settings.tol,
            max_iter=settings.max_iter,
            relaxation=settings.relaxation,
            variance_floor=floor,
            log_scale=frame.log_scale,
            weight_unit=unit,
            callbacks=callbacks,
            progress=progress,
            begun=begun,
        )
        progress.finish()
        timings["em"] += time.perf_counter() - mark
        n_evaluations["em"] += fit.n_evaluations
        tries = [max([*tries, (fit, search.neighbors)], key=lambda one: one[0].bounds[-1])]
        if fit.stopped:
            break

    fit, neighbors = tries[0]
    return Result(
        means=frame.leave(fit.means),
        variance=fit.variance / frame.scale**2,
        masses=fit.masses * unit,
        bounds=fit.bounds,
        converged=fit.converged,
        stopped=fit.stopped,
        neighbors=neighbors,
        coreset=replace(coreset, weights=coreset.weights * unit),
        frame=frame,
        timings=timings,
        n_evaluations=n_evaluations,
    )


def in_units(weights: np.ndarray | None) -> tuple[np.ndarray | None, float]:
    """Weights of about 1, and the power of two that they are multiples of: their scale must not cost digits."""
    if weights is None:
        return None, 1.0
    exponent = int(np.frexp(weights.max())[1]) - 1  # the largest weight is then in [1, 2)
    return np.ldexp(weights, -exponent), math.ldexp(1.0, exponent)


def make_coreset(rows: ArrayRows, weights: np.ndarray | None, facts: Moments, settings: Settings) -> Coreset:
    """Draw N' rows, or take all of them where N' is not smaller."""
    n_usable = rows.n_samples if weights is None else int(np.count_nonzero(weights))
    if settings.coreset_size is None or settings.coreset_size >= n_usable:
        return all_rows(rows, weights)
    rng = generator(settings.seed, CORESET)
    return lightweight_coreset(rows, facts, weights, settings.coreset_size, rng, settings.n_components)


def check_distinct(coreset: Coreset, name: str, n_clusters: int, n_samples: int) -> None:
    """Refuse to look for more clusters than there are different points; `name` is the argument to blame."""
    n_distinct = len(coreset)
    if 1 < n_clusters <= n_distinct:
        n_distinct = count_distinct(coreset.points, n_clusters)
    if n_distinct < n_clusters:
        raise ValueError(
            f"X has {n_distinct} distinct point(s) of positive weight (n_samples={n_samples}), fewer than "
            f"{name}={n_clusters}. Ask for at most {n_distinct}, or give more data."
        )


def to_local(coreset: Coreset, frame: Frame, workers: Workers) -> np.ndarray:
    """The coreset's points in local coordinates, (N', D), converted block by block."""
    source = ArrayRows(coreset.points)
    points = np.empty(coreset.points.shape, frame.dtype)

    def convert(_thread: int, first: int, last: int) -> None:
        for i in range(first, last):
            a, b = source.bounds(i)
            points[a:b] = frame.enter(source.block(i))

    workers.run(convert, source.n_blocks)
    return points


def variance_floor(facts: Moments, frame: Frame, reg_covar: float) -> float:
    """Smallest variance allowed, in local coordinates: never 0, however equal the points are."""
    variance = facts.total_variance * frame.scale**2 / len(facts.mean)
    return max(reg_covar * variance, SMALLEST_VARIANCE)


def seed(
    points: np.ndarray,
    weights: np.ndarray,
    frame: Frame,
    settings: Settings,
    attempt: int,
    workers: Workers,
    progress: Progress,
) -> Start:
    """Initial means, and with the blocked search a near cluster of every point."""
    rng = generator(settings.seed, SEEDING, attempt)
    n_clusters, init = settings.n_components, settings.init
    if isinstance(init, str) and init == "two_level":
        if settings.search == "pointwise":
            return two_level(points, weights, n_clusters, rng, workers, progress.advance)
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
        means, n_evaluations = frame.enter(init, np.dtype(np.float64)), 0
        progress.advance(n_clusters)
    else:
        if init == "afkmc2":
            seeds = afkmc2(points, weights, n_clusters, settings.chain_length, rng, workers, progress.advance)
        elif init == "k-means++":
            seeds = kmeans_plus_plus(points, weights, n_clusters, rng, workers, progress.advance)
        else:
            seeds = random_points(points, weights, n_clusters, rng)
            progress.advance(n_clusters)
        means, n_evaluations = points[seeds.indices].astype(np.float64), seeds.n_evaluations
    if settings.search == "pointwise":  # finds its winners from a random start, as the paper does
        return Start(means, np.empty(0, np.int32), np.nan, n_evaluations)
    start = assign(points, weights, means, workers)
    start.n_evaluations += n_evaluations
    return start


def make_search(
    points: np.ndarray,
    weights: np.ndarray,
    frame: Frame,
    start: Start,
    settings: Settings,
    floor: float,
    attempt: int,
    workers: Workers,
) -> tuple[Search, float | None]:
    """The search of the E-steps, and the variance it begins with (None: from its first winners)."""
    search_seed = int(generator(settings.seed, SEARCH, attempt).integers(1 << 62))
    variance = settings.initial_variance
    if variance is not None:
        variance *= frame.scale**2
    if settings.search == "blocked":
        return BlockedSearch(
            points,
            weights,
            start.labels,
            settings.n_components,
            settings.truncation,
            settings.n_neighbors,
            settings.n_candidates,
            settings.n_explore,
            search_seed,
            start.error,
            floor,
            workers,
        ), variance
    winners = neighbors = None
    if variance is not None:  # a fit that goes on knows its winners: random ones would throw it back
        winners = k_nearest(points, start.means, settings.truncation, workers)
        neighbors = k_nearest(start.means, start.means, settings.n_neighbors, workers)
        neighbors[:, 0] = np.arange(settings.n_components)
    return PointwiseSearch(
        points,
        weights,
        settings.n_components,
        settings.truncation,
        settings.n_neighbors,
        settings.n_explore,
        search_seed,
        floor,
        workers,
        winners,
        neighbors,
    ), variance
