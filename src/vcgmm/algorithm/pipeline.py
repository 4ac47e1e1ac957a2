"""The whole of the paper's Algorithm 1: coreset, seeding, variational EM."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..data import ArrayRows, Rows
from ..parallel import Workers
from ..progress import Callback, Progress
from .attempts import CORESET, Attempts
from .coreset.drawing import Deviations
from .coreset.frame import Frame, Moments, moments
from .coreset.lightweight import Coreset, all_rows, count_distinct, in_memory, lightweight_coreset
from .coreset.local_points import LocalPoints
from .models.mixture import Mixture
from .random import generator
from .refine import refine
from .search import beside
from .settings import Settings
from .snapshot import STEPS, Attempt, Costs, Keep, Problem, Snapshot

#: The variance never falls below this, in local coordinates, however equal the points are.
SMALLEST_VARIANCE = 1e-150


#: What somebody who watches a first fit should know.
COMPILING = "Kernels are compiled first, for ten to twenty seconds: once for each installation and type of data."


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
        Seconds and distances of "coreset", "seeding" and "em", and of "refine" where it was asked for.
    refine_bounds : list of float
        F of all rows in every pass of refinement.
    mixture : Mixture or None
        All parameters, where clusters have weights or variances of their own; `variance` is then their mean.
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
    refine_bounds: list[float] = field(default_factory=list)
    mixture: Mixture | None = None


def run(
    rows: Rows,
    weights: np.ndarray | None,
    settings: Settings,
    callbacks: Sequence[Callback],
    progress: Progress,
    workers: Workers,
    keep: Keep | None = None,
) -> Result:
    """Fit.

    Parameters
    ----------
    rows : Rows
    weights : (N,) float64 or None
        None: those that the rows come with, if any.
    settings : Settings
    callbacks : sequence of Callback
    progress : Progress
    workers : Workers
    keep : Keep, optional
    """
    begun = time.perf_counter()
    sizes = rows.n_features, settings.n_components, settings.truncation
    if settings.search == "blocked" and beside.begin(settings.dtype, *sizes, workers.n_threads):
        progress.note(COMPILING)
    n_passes = 1 if settings.coreset_size is None or settings.coreset_size >= rows.n_samples else 2
    progress.start("coreset", n_passes * rows.n_samples)
    weights, unit = (None, rows.weight_unit) if weights is None else in_units(weights)
    facts = moments(rows, weights, workers, progress.advance)
    coreset = make_coreset(rows, weights, facts, settings, workers, progress.advance)
    if keep is not None:  # what is written again and again is better at hand
        coreset = in_memory(coreset, workers)
    check_distinct(coreset, "n_components", settings.n_components, rows.n_samples)
    frame = facts.frame(settings.dtype)
    problem = Problem(settings, coreset, unit, frame, variance_floor(facts, frame, settings.reg_covar))
    costs = Costs(dict.fromkeys(STEPS, 0.0), {**dict.fromkeys(STEPS, 0), "coreset": rows.n_samples}, 0.0)
    attempts = Attempts(problem, LocalPoints(coreset, frame, workers), costs, callbacks, progress, workers, keep)
    progress.finish()
    costs.elapsed = costs.seconds["coreset"] = time.perf_counter() - begun
    attempt = attempts.run()
    return finish(rows, weights, facts.total_weight, attempt, attempts, callbacks, progress, workers)


def finish(
    rows: Rows | None,
    weights: np.ndarray | None,
    total_weight: float,
    attempt: Attempt,
    attempts: Attempts,
    callbacks: Sequence[Callback],
    progress: Progress,
    workers: Workers,
) -> Result:
    """Refine the best attempt, where that is asked for and all rows (or None) are at hand."""
    problem, costs = attempts.problem, attempts.costs
    bounds: list[float] = []
    if problem.settings.refine > 0 and rows is not None and not attempt.fit.stopped:
        if len(problem.coreset) == rows.n_samples:  # added up as when a fit is resumed, to the last bit
            total_weight = float(problem.coreset.weights.sum())
        attempt, bounds = refine(
            rows, weights, total_weight, problem, attempts.row_searches(), attempt, costs, callbacks, progress,
            attempts.begun,
        )  # fmt: skip
    attempts.points.forget()  # before the coreset's rows are copied, where they have not been yet
    result = in_data_coordinates(attempt, problem, costs)
    result.coreset = in_memory(result.coreset, workers)
    result.refine_bounds = [problem.weight_unit * bound for bound in bounds]
    return result


def resume(
    snapshot: Snapshot,
    callbacks: Sequence[Callback],
    progress: Progress,
    workers: Workers,
    keep: Keep | None = None,
    *,
    complete: bool,
) -> Result:
    """Go on with a fit to the same end, bit by bit, that it would have come to.

    Parameters
    ----------
    snapshot : Snapshot
        Its arrays are taken over.
    callbacks, progress, workers, keep : as in `run`
    complete : bool
        The coreset is all of the data.  Else there is nothing to refine on, and the fit ends without.
    """
    problem, costs = snapshot.problem, snapshot.costs
    points = LocalPoints(problem.coreset, problem.frame, workers)
    attempts = Attempts(problem, points, costs, callbacks, progress, workers, keep)
    attempt = attempts.run(snapshot)
    rows = ArrayRows(problem.coreset.points) if complete else None
    weights = problem.coreset.weights
    return finish(rows, weights, float(weights.sum()), attempt, attempts, callbacks, progress, workers)


def in_data_coordinates(attempt: Attempt, problem: Problem, costs: Costs) -> Result:
    """The result of a fit from the best of its attempts."""
    fit, frame, coreset, unit = attempt.fit, problem.frame, problem.coreset, problem.weight_unit
    return Result(
        means=frame.leave(fit.means),
        variance=fit.variance / frame.scale**2,
        masses=fit.masses if unit == 1.0 else fit.masses * unit,
        bounds=[unit * bound for bound in fit.bounds],
        converged=fit.converged,
        stopped=fit.stopped,
        neighbors=attempt.neighbors,
        coreset=coreset if unit == 1.0 else replace(coreset, weights=coreset.weights * unit),
        frame=frame,
        timings=costs.seconds,
        n_evaluations=costs.n_evaluations,
        mixture=None if fit.mixture is None else leave(fit.mixture, frame),
    )


def leave(mixture: Mixture, frame: Frame) -> Mixture:
    """A mixture in data coordinates."""
    return Mixture(frame.leave(mixture.means), mixture.variances / frame.scale**2, mixture.weights)


def in_units(weights: np.ndarray) -> tuple[np.ndarray, float]:
    """Weights of about 1, and the power of two that they are multiples of: their scale must not cost digits."""
    exponent = int(np.frexp(weights.max())[1]) - 1  # the largest weight is then in [1, 2)
    return np.ldexp(weights, -exponent), math.ldexp(1.0, exponent)


def make_coreset(
    rows: Rows,
    weights: np.ndarray | None,
    facts: Moments,
    settings: Settings,
    workers: Workers,
    advance: Callable[[int], None],
    deviations_of: Deviations | None = None,
) -> Coreset:
    """Draw N' rows, or take all of them where N' is not smaller."""
    if settings.coreset_size is None or settings.coreset_size >= facts.n_usable:
        return all_rows(rows, weights)
    rng = generator(settings.seed, CORESET)
    size, n_distinct = settings.coreset_size, settings.n_components
    return lightweight_coreset(rows, facts, weights, size, rng, n_distinct, workers, advance, deviations_of)


def check_distinct(coreset: Coreset, name: str, n_clusters: int, n_samples: int) -> None:
    """Refuse to look for more clusters than there are different points; `name` is the argument to blame."""
    n_distinct = len(coreset)
    if 1 < n_clusters <= n_distinct:
        n_distinct = count_distinct(coreset.source, n_clusters)
    refuse_too_few(n_distinct, name, n_clusters, n_samples)


def refuse_too_few(n_distinct: int, name: str, n_clusters: int, n_samples: int) -> None:
    """Refuse to look for more clusters than there are different points, of which `n_distinct` are known."""
    if n_distinct < n_clusters:
        raise ValueError(
            f"X has {n_distinct} distinct point(s) of positive weight (n_samples={n_samples}), fewer than "
            f"{name}={n_clusters}. Ask for at most {n_distinct}, or give more data."
        )


def to_local(coreset: Coreset, frame: Frame, workers: Workers) -> np.ndarray:
    """The coreset's points in local coordinates, (N', D)."""
    return LocalPoints(coreset, frame, workers).array


def variance_floor(facts: Moments, frame: Frame, reg_covar: float) -> float:
    """Smallest variance allowed, in local coordinates: never 0, however equal the points are."""
    variance = facts.total_variance * frame.scale**2 / len(facts.mean)
    return max(reg_covar * variance, SMALLEST_VARIANCE)
