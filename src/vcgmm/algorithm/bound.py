"""The merged objective F in the simplified form of the paper's supplement."""

from __future__ import annotations

import math

from .mstep import Statistics


def lower_bound(statistics: Statistics, log_scale: float = 0.0) -> float:
    """F(K, Theta) = sum_n gamma_n log sum_{c in K(n)} p(c, y_n | Theta).

    With p(c, y) = (2 pi sigma^2)^(-D/2) exp(-||y - mu_c||^2 / 2 sigma^2) / C.

    Parameters
    ----------
    statistics : Statistics
    log_scale : float
        Log of the factor from data to local coordinates: F is told in data coordinates.
    """
    n_clusters, n_features = statistics.means.shape
    return bound_of(
        statistics.log_sum, statistics.total_weight, statistics.variance, n_clusters, n_features, log_scale
    )


def bound_of(
    log_sum: float, total_weight: float, variance: float, n_clusters: int, n_features: int, log_scale: float
) -> float:
    """F from sum_n gamma log sum_{c in K(n)} exp(-||y - mu_c||^2 / 2 sigma^2)."""
    log_normaliser = math.log(n_clusters) + 0.5 * n_features * math.log(2 * math.pi * variance)
    return float(log_sum - total_weight * (log_normaliser - n_features * log_scale))
