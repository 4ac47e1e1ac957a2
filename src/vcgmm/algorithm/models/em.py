"""Variational EM for mixtures with weights and variances of their own: the loop of `em`, by joints."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...progress import Callback, Iteration, Progress
from ..em import Fit, relative_change
from ..mstep import next_step
from ..random import generator
from .collapse import drop_collapsed, sow_again
from .families import Family
from .mixture import Mixture
from .mstep import JointStatistics, joint_m_step
from .search import JointSearch

#: Iterations before clusters are dropped: in the first ones many are on their way.
PATIENCE = 2


@dataclass(frozen=True)
class Model:
    """What a mixture may become.

    Attributes
    ----------
    family : Family
    learned : bool
        Weights are learned; else they stay equal.
    floor : (V,) float64
        Smallest variances.
    reassign : bool
        Clusters that were dropped get a second chance.
    seed : int
        For their new places.
    """

    family: Family
    learned: bool
    floor: np.ndarray
    reassign: bool
    seed: int


def shared_start(means: np.ndarray, variance: float, model: Model) -> Mixture:
    """Where clusters begin: one variance for all, and equal weights."""
    n_squares = model.family.n_squares(means.shape[1])
    variances = np.maximum(np.full((len(means), n_squares), variance), model.floor)
    return Mixture(means, variances, np.full(len(means), 1.0 / len(means)))


def joint_em(
    search: JointSearch,
    mixture: Mixture,
    model: Model,
    fit: Fit,
    *,
    total_weight: float,
    tol: float,
    max_iter: int,
    relaxation: float,
    log_scale: float,
    weight_unit: float,
    callbacks: Sequence[Callback],
    progress: Progress,
    begun: float,
) -> Fit:
    """Iterate E- and M-steps until the bound converges.

    Parameters
    ----------
    search : JointSearch
    mixture : Mixture
        What the first E-step uses.
    model : Model
    fit : Fit
        Where EM has come to with one variance and equal weights, changed in place; its `mixture` will be set.
    total_weight, tol, max_iter, relaxation, log_scale, weight_unit, callbacks, progress, begun
        As in `em.variational_em`.
    """
    point_weight = total_weight / len(search.points)
    sown = np.zeros(len(mixture.means), bool)  # no cluster is sown twice, so that EM comes to an end
    first = len(fit.bounds)
    fit.converged, fit.step, fit.moves = False, 1.0, None
    n_features = mixture.means.shape[1]
    while len(fit.bounds) < max_iter and not (fit.converged or fit.stopped):
        active = mixture.active
        statistics = search.joint_e_step(mixture)
        fit.n_evaluations += statistics.n_evaluations
        fit.bounds.append(statistics.log_sum + total_weight * n_features * log_scale)

        plain = joint_m_step(statistics, mixture, model.family, model.learned, model.floor)
        ways = plain.means - statistics.means
        fit.step = next_step(fit.step, fit.moves, ways, statistics.masses, relaxation)
        fit.moves = ways
        used_variance = mean_variance(mixture) / math.exp(2 * log_scale)
        mixture = joint_m_step(statistics, mixture, model.family, model.learned, model.floor, fit.step)
        if len(fit.bounds) > first + PATIENCE:
            plain, mixture = _without_collapsed(plain, mixture, statistics, model, point_weight)
        fit.mixture, fit.means, fit.variance = plain, plain.means, mean_variance(plain)
        fit.masses = np.where(plain.active, statistics.masses, 0.0)

        change = relative_change(fit.bounds)
        fit.converged = change < tol and len(fit.bounds) > first + 1
        places = np.flatnonzero(~mixture.active & ~sown)
        if model.reassign and len(places) and len(fit.bounds) < max_iter:
            rng = generator(model.seed, len(fit.bounds))
            mixture = sow_again(mixture, statistics, places, point_weight, rng)
            sown[places] = True
            fit.converged = False
        if (mixture.active != active).any() or not fit.mixture.active[mixture.active].all():
            search.link_anew()
        bound, seconds = weight_unit * fit.bounds[-1], time.perf_counter() - begun
        n_active = int(np.count_nonzero(fit.masses))
        facts = Iteration(len(fit.bounds), bound, change, used_variance, seconds, n_active)
        progress.iteration(facts)
        answers = [callback(facts) for callback in callbacks]  # every one of them is called
        fit.stopped = any(answers)
    return fit


def mean_variance(mixture: Mixture) -> float:
    """Mean of all features' variances over the mixture's points."""
    return float(mixture.weights @ mixture.variances.mean(axis=1))


def _without_collapsed(
    plain: Mixture, relaxed: Mixture, statistics: JointStatistics, model: Model, point_weight: float
) -> tuple[Mixture, Mixture]:
    """Both results of an M-step without the clusters that have collapsed in the plain one."""
    kept = drop_collapsed(plain, statistics.masses, model.family, model.learned, model.floor, point_weight)
    return kept, replace(relaxed, weights=kept.weights)
