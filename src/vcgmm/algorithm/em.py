"""Variational EM on the merged objective: the loop of the paper's Algorithm 1."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..progress import Callback, Iteration, Progress
from .bound import lower_bound
from .estep import Steps
from .models.mixture import Mixture
from .mstep import initial_variance, m_step, next_step


@dataclass
class Fit:
    """Where EM has come to.

    Attributes
    ----------
    means : (C, D) float64
    variance : float
    masses : (C,) float64
        Weight of every cluster in the last M-step.
    bounds : list of float
        F after each E-step, with the parameters it used, in units of the weights.
    converged : bool
    stopped : bool
        A callback asked to stop.
    n_evaluations : int
        Distances computed in E-steps, warm-up included.
    step : float
        Length of the last M-step, as a multiple of the way to the weighted means.
    moves : (C, D) float64 or None
        That way.
    mixture : Mixture or None
        All parameters, where clusters have weights or variances of their own; `variance` is then their mean.
    """

    means: np.ndarray
    variance: float
    masses: np.ndarray
    bounds: list[float] = field(default_factory=list)
    converged: bool = False
    stopped: bool = False
    n_evaluations: int = 0
    step: float = 1.0
    moves: np.ndarray | None = None
    mixture: Mixture | None = None


#: Told after every iteration where EM is, and the means and variance that the next E-step will use.
Keep = Callable[[Fit, np.ndarray, float], None]


def variational_em(
    search: Steps,
    means: np.ndarray,
    variance: float | None,
    *,
    total_weight: float,
    n_warmup: int,
    tol: float,
    max_iter: int,
    relaxation: float,
    variance_floor: float,
    log_scale: float,
    weight_unit: float,
    callbacks: Sequence[Callback],
    progress: Progress,
    begun: float,
    fit: Fit | None = None,
    keep: Keep | None = None,
) -> Fit:
    """Iterate E- and M-steps until the bound converges.

    Parameters
    ----------
    search : Steps
    means : (C, D) float64
        What the first E-step uses.
    variance : float or None
        Likewise; None: estimated from the first winners.
    total_weight : float
    n_warmup : int
        E-steps before the first one that counts.
    tol : float
        Converged when the bound's relative change falls below it.
    max_iter : int
    relaxation : float
        How far each M-step goes at most, as a multiple of the way to the weighted means; where the last one ends
        is always the weighted means themselves.
    variance_floor : float
    log_scale : float
        Of the local coordinates, so that the bound is told in data coordinates.
    weight_unit : float
        What the weights are multiples of, so that the bound is told in the user's weights.
    callbacks : sequence of Callback
    progress : Progress
    begun : float
        `time.perf_counter()` at the start of the fit.
    fit : Fit, optional
        Where to go on from, changed in place; `means`, `variance` and the search are then those that were kept.
    keep : Keep, optional
    """
    if fit is None:
        fit = Fit(means, math.nan, np.zeros(len(means)))
    given = variance
    for _ in range(n_warmup if not fit.bounds else 0):
        error, n_evaluations = search.warm_up(means)
        fit.n_evaluations += n_evaluations
        if given is None:
            variance = initial_variance(error, total_weight, means.shape[1], variance_floor)

    while len(fit.bounds) < max_iter and not (fit.converged or fit.stopped):
        statistics = search.e_step(means, variance)
        fit.n_evaluations += statistics.n_evaluations
        fit.bounds.append(lower_bound(statistics, log_scale))

        fit.means, fit.variance = m_step(statistics, variance_floor, search.scatter)
        ways = fit.means - statistics.means
        fit.step = next_step(fit.step, fit.moves, ways, statistics.masses, relaxation)
        fit.moves = ways
        means, variance = m_step(statistics, variance_floor, search.scatter, fit.step)
        fit.masses = statistics.masses

        change = relative_change(fit.bounds)  # in units of the weights, where nothing overflows
        fit.converged = change < tol
        used_variance = statistics.variance / math.exp(2 * log_scale)
        n_active = int(np.count_nonzero(fit.masses))
        bound, seconds = weight_unit * fit.bounds[-1], time.perf_counter() - begun
        facts = Iteration(len(fit.bounds), bound, change, used_variance, seconds, n_active)
        progress.iteration(facts)
        answers = [callback(facts) for callback in callbacks]  # every one of them is called
        fit.stopped = any(answers)
        if keep is not None:
            keep(fit, means, variance)
    return fit


def relative_change(bounds: Sequence[float]) -> float:
    """|dF / F| between the last two bounds; infinite before there are two."""
    if len(bounds) < 2:
        return math.inf
    change = abs(bounds[-1] - bounds[-2])
    return change / abs(bounds[-1]) if bounds[-1] != 0 else (math.inf if change else 0.0)
