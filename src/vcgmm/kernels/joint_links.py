"""Which clusters are near which, for clusters with variances and weights of their own.

Near to a cluster c are those with the largest mean log joint over its members, as the model has them: a member has
mean mu_c and variance v_c, so its statistics have the mean (mu_c, mu_c^2 + v_c), and since costs are linear in
them, the mean cost of another cluster is its cost for that.
"""

from __future__ import annotations

import numpy as np

from .jit import kernel
from .joint_costs import natural_panels
from .neighbors import CLASSES, choose_nearest, fill_pool


@kernel
def expected_statistics(
    means: np.ndarray,
    variances: np.ndarray,
    clusters: np.ndarray,
    first: int,
    last: int,
    origin: np.ndarray,
    out: np.ndarray,
) -> None:
    """E[t(y - origin) | c] of clusters[first:last]; variances (C, V) float, out (>= last - first, D + V) float."""
    n_features, n_squares = means.shape[1], variances.shape[1]
    for j in range(last - first):
        c = clusters[first + j]
        total = out.dtype.type(n_features) * variances[c, 0]
        for d in range(n_features):
            value = means[c, d] - origin[d]
            out[j, d] = value
            if n_squares == n_features:
                out[j, n_features + d] = value * value + variances[c, d]
            else:
                total += value * value
        if n_squares != n_features:
            out[j, n_features] = total


@kernel
def link_joint_groups(
    first: int,
    last: int,
    leaf_start: np.ndarray,
    order: np.ndarray,
    near_groups: np.ndarray,
    known: np.ndarray,
    pool_size: int,
    means: np.ndarray,
    variances: np.ndarray,
    precisions: np.ndarray,
    offsets: np.ndarray,
    neighbors: np.ndarray,
    nearest: np.ndarray,
    counts: np.ndarray,
) -> None:
    """For every cluster of groups first..last-1 the L of its pool that cost its members least, on the average.

    Parameters
    ----------
    leaf_start, order, near_groups, known, pool_size, means : IN, as in `neighbors.link_groups`
    variances, precisions : (C, V) float, IN
    offsets : (C,) float, IN
    neighbors : (C, G) int32, OUT, itself first
    nearest : (C, L) int32, OUT, itself first, then roughly in order
    counts : (n_groups,) int64, OUT, costs computed
    """
    n_statistics = means.shape[1] + precisions.shape[1]
    n_nearest = nearest.shape[1]
    seen = np.full(means.shape[0], -1, np.int32)
    pool = np.empty(pool_size, np.int32)
    widest = 0
    for group in range(first, last):
        widest = max(widest, leaf_start[group + 1] - leaf_start[group])
    members = np.empty((widest, n_statistics), means.dtype)
    panels = np.empty((1, pool_size, n_statistics), means.dtype)
    constants = np.empty(pool_size, means.dtype)
    squares = np.empty(pool_size, means.dtype)
    flat = np.empty(widest * pool_size, means.dtype)
    values = np.empty(pool_size, np.float32)
    value_bits = values.view(np.int32)
    taken = np.empty(n_nearest, np.int64)
    scratch = np.empty(n_nearest + 1, np.int64)
    sizes = np.empty(CLASSES + 1, np.int64)
    zero = means.dtype.type(0)
    for group in range(first, last):
        size = fill_pool(group, leaf_start, order, near_groups, known, seen, pool)
        low, high = leaf_start[group], leaf_start[group + 1]
        n = high - low
        counts[group] = n * size
        origin = means[order[low]]
        expected_statistics(means, variances, order, low, high, origin, members)
        natural_panels(means, precisions, offsets, pool[:size], origin, panels, constants, squares)
        products = flat[: n * size].reshape(n, size)
        np.dot(members[:n], panels[0, :size].T, products)
        for j in range(n):
            for i in range(size):
                cost = constants[i] - (products[j, i] + products[j, i])
                values[i] = cost if cost > zero else zero
            choose_nearest(
                order[low + j], j, size, pool, values, value_bits, taken, scratch, sizes, neighbors, nearest
            )
