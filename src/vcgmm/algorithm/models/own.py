"""Mixtures with weights and variances of the clusters' own for EM, by joints."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np

from ..em import Fit
from ..random import generator
from .collapse import drop_collapsed, sow_again
from .families import Family
from .mixture import Mixture
from .mstep import JointStatistics, joint_m_step

#: Iterations before clusters are dropped: in the first ones many are on their way.
PATIENCE = 2


@dataclass(frozen=True)
class Rules:
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


class JointSteps(Protocol):
    """E-steps by joints, whatever they go over."""

    def joint_e_step(self, mixture: Mixture) -> JointStatistics:
        """New winners and neighbours, and the sums of the M-step."""
        ...

    def link_anew(self) -> None:
        """Let the next E-step find all neighbours anew: clusters have come or gone."""
        ...


@runtime_checkable
class JointSearches(JointSteps, Protocol):
    """A search over points in memory whose E-steps may also be by joints.

    Attributes
    ----------
    sums, squares : (D,) float64
        sum_n gamma y_d and sum_n gamma y_d^2.
    start_error : float
        Weighted squared distance to the labels that it began with.
    """

    sums: np.ndarray
    squares: np.ndarray
    start_error: float


class OwnModel:
    """Clusters with weights or variances of their own.

    Parameters
    ----------
    search : JointSteps
    rules : Rules
    total_weight : float
    n_points : int
    relaxation : float
        As for `SharedModel`.
    log_scale : float
        Likewise.
    max_iter : int
        No cluster is given a new start in the last iteration.
    """

    def __init__(
        self,
        search: JointSteps,
        rules: Rules,
        total_weight: float,
        n_points: int,
        relaxation: float,
        log_scale: float,
        max_iter: int,
    ) -> None:
        self.search = search
        self.rules = rules
        self.total_weight = total_weight
        self.point_weight = total_weight / n_points
        self.relaxation = relaxation
        self.log_scale = log_scale
        self.max_iter = max_iter
        self._used: Mixture | None = None

    def begin(self, fit: Fit, variance: float) -> Mixture:
        """Where clusters begin that have shared a variance, and equal weights, until now."""
        n_clusters, n_features = fit.means.shape
        n_squares = self.rules.family.n_squares(n_features)
        variances = np.maximum(np.full((n_clusters, n_squares), variance), self.rules.floor)
        mixture = Mixture(fit.means, variances, np.full(n_clusters, 1.0 / n_clusters))
        fit.mixture, fit.variance = mixture, variance
        fit.n_shared, fit.sown = len(fit.bounds), np.zeros(n_clusters, bool)
        fit.converged, fit.step, fit.moves = False, 1.0, None
        return mixture

    @property
    def used(self) -> Mixture:
        """What the last E-step used."""
        if self._used is None:
            raise RuntimeError("there has been no E-step yet.")
        return self._used

    def e_step(self, now: Mixture) -> JointStatistics:
        """New winners and neighbours, and the sums of the M-step."""
        self._used = now
        return self.search.joint_e_step(now)

    def bound(self, statistics: JointStatistics) -> float:
        """F, in data coordinates."""
        return statistics.log_sum + self.total_weight * statistics.means.shape[1] * self.log_scale

    def m_step(self, statistics: JointStatistics, step: float) -> Mixture:
        """New means, variances and weights."""
        rules = self.rules
        return joint_m_step(statistics, self.used, rules.family, rules.learned, rules.floor, step)

    def used_variance(self, statistics: JointStatistics) -> float:  # noqa: ARG002 (sums do not tell it)
        """The mean variance of an E-step, in data coordinates."""
        return mean_variance(self.used) / math.exp(2 * self.log_scale)

    def take_over(self, fit: Fit, statistics: JointStatistics, plain: Mixture, ahead: Mixture) -> Mixture:
        """Drop clusters that have collapsed, and give them a new start where that is allowed."""
        rules, before = self.rules, self.used.active
        if fit.n_shared is None or fit.sown is None:
            raise RuntimeError("clusters have variances of their own, but did not begin to have them.")
        n_own = len(fit.bounds) - fit.n_shared
        if n_own > PATIENCE:
            plain = drop_collapsed(
                plain, statistics.masses, rules.family, rules.learned, rules.floor, self.point_weight
            )
            ahead = replace(ahead, weights=plain.weights)
        fit.mixture, fit.means, fit.variance = plain, plain.means, mean_variance(plain)
        fit.masses = np.where(plain.active, statistics.masses, 0.0)
        fit.converged = fit.converged and n_own > 1

        places = np.flatnonzero(~ahead.active & ~fit.sown)  # none is sown twice, so that EM comes to an end
        if rules.reassign and len(places) and len(fit.bounds) < self.max_iter:
            rng = generator(rules.seed, len(fit.bounds))
            ahead, sown = sow_again(ahead, statistics, places, rules.learned, self.point_weight, rng)
            fit.sown = fit.sown.copy()
            fit.sown[sown] = True
            fit.converged = fit.converged and not len(sown)
        if (ahead.active != before).any() or not plain.active[ahead.active].all():
            self.search.link_anew()
        return ahead


def mean_variance(mixture: Mixture) -> float:
    """Mean of all features' variances over the mixture's points."""
    return float(mixture.weights @ mixture.variances.mean(axis=1))
