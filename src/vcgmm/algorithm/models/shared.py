"""The paper's model for EM: one variance for all clusters, and equal weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..bound import lower_bound
from ..em import Fit
from ..estep import Steps
from ..mstep import Statistics, as_used, initial_variance, m_step


@dataclass(frozen=True)
class Shared:
    """Means (C, D) float and one variance, in local coordinates.

    A variance that is not known yet is NaN: the first E-step estimates it from its winners.
    """

    means: np.ndarray
    variance: float


class SharedModel:
    """Clusters that share one variance.

    Parameters
    ----------
    search : Steps
    total_weight : float
    variance_floor : float
    relaxation : float
        How far each M-step goes at most, as a multiple of the way to the weighted means.
    log_scale : float
        Of the local coordinates, so that the bound is told in data coordinates.
    """

    def __init__(
        self, search: Steps, total_weight: float, variance_floor: float, relaxation: float, log_scale: float
    ) -> None:
        self.search = search
        self.total_weight = total_weight
        self.variance_floor = variance_floor
        self.relaxation = relaxation
        self.log_scale = log_scale

    def warm_up(self, start: Shared, n_warmup: int, fit: Fit) -> Shared:
        """Search so many times without responsibilities; a variance that is not known follows from the last."""
        unknown = math.isnan(start.variance)
        for _ in range(n_warmup):
            error, n_evaluations = self.search.warm_up(start.means)
            fit.n_evaluations += n_evaluations
            if unknown:
                n_features = start.means.shape[1]
                variance = initial_variance(error, self.total_weight, n_features, self.variance_floor)
                start = replace(start, variance=variance)
        return start

    def e_step(self, now: Shared) -> Statistics:
        """New winners and neighbours, and the sums of the M-step."""
        return self.search.e_step(now.means, None if math.isnan(now.variance) else now.variance)

    def bound(self, statistics: Statistics) -> float:
        """F, in data coordinates."""
        return lower_bound(statistics, self.log_scale)

    def m_step(self, statistics: Statistics, step: float) -> Shared:
        """The best means, or beyond them, and the best variance there."""
        return self.improve(statistics, self.search.scatter, step)

    def improve(
        self, statistics: Statistics, scatter: Callable[[Statistics, np.ndarray], float], step: float
    ) -> Shared:
        """The M-step, with another second pass than that of the search."""
        return Shared(*m_step(statistics, self.variance_floor, scatter, step))

    def start_at(self, means: np.ndarray) -> np.ndarray:
        """Means (C, D) that this model may have, near those of a start."""
        return means

    def shifts_about_means(self, masses: np.ndarray, means: np.ndarray, scatter: float) -> np.ndarray:  # noqa: ARG002
        """sum_n gamma s_c (y - mu_c) over the points of a finished fit: its means are weighted means."""
        return np.zeros_like(means)

    def used_variance(self, statistics: Statistics) -> float:
        """The variance of an E-step, in data coordinates."""
        return statistics.variance / math.exp(2 * self.log_scale)

    def take_over(self, fit: Fit, statistics: Statistics, plain: Shared, ahead: Shared) -> Shared:
        """A fit ends with plain steps, and goes on from longer ones."""
        fit.means, fit.variance, fit.masses = plain.means, plain.variance, statistics.masses
        means = as_used(ahead.means, statistics)
        return ahead if means is ahead.means else replace(ahead, means=means)
