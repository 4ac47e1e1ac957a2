"""The scatter about new means, by a second pass: for the rare M-step whose short way would cancel."""

from __future__ import annotations

import math

import numpy as np

from ..jit import kernel


@kernel
def scatter_about(
    first: int,
    last: int,
    points: np.ndarray,
    weights: np.ndarray,
    winners: np.ndarray,
    means: np.ndarray,
    precision: float,
    new_means: np.ndarray,
    out: np.ndarray,
) -> None:
    """out[n] = gamma_n sum_{c in K(n)} s_c(n) ||y_n - mu_c,new||^2 for points first..last-1, in float64.

    Parameters
    ----------
    points : (N', D) float, IN
    weights : (N',) float64, IN
    winners : (N', C') int32, IN
    means : (C, D) float64, IN, the means that the responsibilities belong to
    precision : float64, IN, 1 / (2 sigma^2)
    new_means : (C, D) float64, IN
    out : (N',) float64, OUT
    """
    n_winners = winners.shape[1]
    near = np.empty(n_winners, np.float64)
    fresh = np.empty(n_winners, np.float64)
    for n in range(first, last):
        nearest = np.inf
        for k in range(n_winners):
            c = winners[n, k]
            old, new = 0.0, 0.0
            for d in range(points.shape[1]):
                value = np.float64(points[n, d])
                old += (value - means[c, d]) ** 2
                new += (value - new_means[c, d]) ** 2
            near[k] = old
            fresh[k] = new
            nearest = min(nearest, old)
        total, scatter = 0.0, 0.0
        for k in range(n_winners):
            share = math.exp((nearest - near[k]) * precision)
            total += share
            scatter += share * fresh[k]
        out[n] = weights[n] * scatter / total
