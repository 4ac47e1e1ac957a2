"""Few clusters: all are candidates of all, and only the order among them is to be found.

By NumPy in float64, so that a fit with few clusters need not compile what finds candidates among many.
"""

from __future__ import annotations

import numpy as np

from .natural import Natural


def order_of_all(natural: Natural) -> np.ndarray:
    """For every cluster itself, then all others by their mean cost over its members, (C, C) int32.

    Members of c have mean mu_c and variance v_c, so that the mean cost of k is

        sum_d p_kd ((mu_cd - mu_kd)^2 + v_cd) + q_k,

    and where all share a variance the squared distance of the means, both up to what depends on c alone.

    Parameters
    ----------
    natural : Natural
    """
    means = natural.means - natural.means.mean(0, dtype=np.float64)  # about their middle no digits are lost
    squares = means * means
    if natural.variances is None or natural.precisions is None or natural.offsets is None:
        costs = squares.sum(1) - 2.0 * (means @ means.T)
    else:
        variances, precisions = natural.variances.astype(np.float64), natural.precisions.astype(np.float64)
        if precisions.shape[1] == 1:  # one for all features: their squares count together
            spread = squares.sum(1, keepdims=True) + means.shape[1] * variances
        else:
            spread = squares + variances
        own = (precisions * squares).sum(1) + natural.offsets
        costs = spread @ precisions.T - 2.0 * (means @ (precisions * means).T) + own
    np.fill_diagonal(costs, -np.inf)
    return np.argsort(costs, axis=1, kind="stable").astype(np.int32)
