"""Which clusters are near which: G_c, and more of the nearest.

The clusters of a group share one pool: the group itself, everything its members had as candidates, and the
clusters of the nearest groups.  Costs within the pool are one matrix product, so the work per cluster does not
grow with their number, and what was found once is only given up for something nearer.

Near to a cluster c are those with the least mean cost over its members, as the model has them: a member has mean
mu_c and variance v_c, so its statistics have the mean (mu_c, mu_c^2 + v_c), and since costs are linear in them
(`costs`), the mean cost of another cluster is its cost for that.  Where all clusters share a variance that is the
distance of the means, up to a constant.
"""

from __future__ import annotations

import numpy as np

from .costs import natural_rows
from .jit import kernel, part
from .shortlist import CLASSES, choose_nearest, longest_choice
from .transpose import transpose


@part
def fill_pool(
    group: int,
    leaf_start: np.ndarray,
    order: np.ndarray,
    near_groups: np.ndarray,
    known: np.ndarray,
    seen: np.ndarray,
    pool: np.ndarray,
) -> int:
    """Collect a group's pool without repetition; returns its length, at most pool.shape[0].

    Own members first, then the candidates they had (-1: none), then the nearest groups' members.
    `seen` (C,) int32 holds for every cluster the last group whose pool it entered.
    """
    size = 0
    capacity = pool.shape[0]
    for i in range(leaf_start[group], leaf_start[group + 1]):
        pool[size] = order[i]
        seen[order[i]] = group
        size += 1
    for k in range(known.shape[1]):
        for i in range(leaf_start[group], leaf_start[group + 1]):
            cluster = known[order[i], k]
            if cluster >= 0 and seen[cluster] != group and size < capacity:
                pool[size] = cluster
                seen[cluster] = group
                size += 1
    for k in range(near_groups.shape[1]):
        other = near_groups[group, k]
        for i in range(leaf_start[other], leaf_start[other + 1]):
            cluster = order[i]
            if seen[cluster] != group and size < capacity:
                pool[size] = cluster
                seen[cluster] = group
                size += 1
    return size


@part
def expected_statistics(
    means: np.ndarray,
    variances: np.ndarray | None,
    clusters: np.ndarray,
    first: int,
    last: int,
    origin: np.ndarray,
    out: np.ndarray,
    norms: np.ndarray,
) -> None:
    """E[t(y - origin) | c] of clusters[first:last].

    Parameters
    ----------
    means : (C, D) float, IN
    variances : (C, V) float or None, IN
    clusters : (m,) int, IN
    first, last : int, IN
    origin : (D,) float, IN
    out : (>= last - first, D + V) float, OUT
    norms : (>= last - first,) float, OUT, as in `costs.statistics_rows`
    """
    n_features = means.shape[1]
    for j in range(last - first):
        c = clusters[first + j]
        total = out.dtype.type(0)
        for d in range(n_features):
            value = means[c, d] - origin[d]
            out[j, d] = value
            total += value * value
        norms[j] = total
        if variances is not None:
            norms[j] = 0
            if variances.shape[1] == n_features:
                for d in range(n_features):
                    out[j, n_features + d] = out[j, d] * out[j, d] + variances[c, d]
            else:
                out[j, n_features] = total + out.dtype.type(n_features) * variances[c, 0]


@kernel
def link_groups(
    first: int,
    last: int,
    leaf_start: np.ndarray,
    order: np.ndarray,
    near_groups: np.ndarray,
    known: np.ndarray,
    pool_size: int,
    means: np.ndarray,
    variances: np.ndarray | None,
    precisions: np.ndarray | None,
    offsets: np.ndarray | None,
    neighbors: np.ndarray,
    nearest: np.ndarray,
    counts: np.ndarray,
) -> None:
    """For every cluster of groups first..last-1 the L nearest of its pool, the G nearest in order and first.

    Parameters
    ----------
    leaf_start : (n_groups + 1,) int64, IN, group g holds the clusters order[leaf_start[g]:leaf_start[g + 1]]
    order : (C,) int32, IN
    near_groups : (n_groups, k) int32, IN
    known : (C, m) int32, IN, candidates from before, -1 for none; may be `nearest` itself
    pool_size : int, IN, at least L and the size of a group
    means : (C, D) float, IN
    variances, precisions : (C, V) float or None, IN, v and 1 / (2 v); None: V = 0, costs are squared distances
    offsets : (C,) float or None, IN, q
    neighbors : (C, G) int32, OUT, itself first
    nearest : (C, L) int32, OUT, itself first, then roughly in order
    counts : (n_groups,) int64, OUT, costs computed
    """
    n_statistics = means.shape[1]
    if precisions is not None:
        n_statistics += precisions.shape[1]
    n_listed = longest_choice(nearest.shape[1]) + 1
    seen = np.empty(means.shape[0], np.int32)
    seen[:] = -1
    pool = np.empty(pool_size, np.int32)
    widest = 0
    for group in range(first, last):
        widest = max(widest, leaf_start[group + 1] - leaf_start[group])
    members = np.empty((widest, n_statistics), means.dtype)
    norms = np.empty(widest, means.dtype)
    rows = np.empty((pool_size, n_statistics), means.dtype)
    constants = np.empty(pool_size, means.dtype)
    squares = np.empty(pool_size, means.dtype)
    flat = np.empty(widest * pool_size, means.dtype)
    turned = np.empty((widest, pool_size + 16), means.dtype)  # its columns fall into different places of the cache
    values = np.empty(pool_size, np.float32)
    value_bits = values.view(np.int32)
    taken, scratch = np.empty(n_listed, np.int64), np.empty(n_listed, np.int64)
    sizes = np.empty(CLASSES + 1, np.int64)
    zero = means.dtype.type(0)
    for group in range(first, last):
        size = fill_pool(group, leaf_start, order, near_groups, known, seen, pool)
        low, high = leaf_start[group], leaf_start[group + 1]
        n = high - low
        counts[group] = n * size
        origin = means[order[low]]
        expected_statistics(means, variances, order, low, high, origin, members, norms)
        natural_rows(means, precisions, offsets, pool[:size], origin, rows, constants, squares)
        products = flat[: size * n].reshape(size, n)
        np.dot(rows[:size], members[:n].T, products)  # the other way round it takes half as long again, or more
        transpose(size, products, int(np.int64(0)), turned[:n])
        threshold = int(np.int64(0))
        for j in range(n):
            norm = norms[j]
            for i in range(size):
                cost = constants[i] + norm - (turned[j, i] + turned[j, i])
                values[i] = cost if cost > zero else zero
            threshold = choose_nearest(
                order[low + j], j, size, pool, values, value_bits, threshold, taken, scratch, sizes, neighbors,
                nearest,
            )  # fmt: skip
