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

from ..jit import kernel, part
from ..parts.differences import subtract
from ..parts.vectors import ROWS, VECTOR_BYTES, VECTORS, aligned
from .cost_table import cost_table
from .costs import natural_rows
from .shortlist import CLASSES, choose_nearest, longest_choice


@part
def enter(cluster: int, group: int, seen: np.ndarray, pool: np.ndarray, size: int) -> int:
    """Put a cluster into the pool where it is new to it, without a branch that would often be guessed wrong."""
    pool[size] = cluster
    size += int(seen[cluster] != group)
    seen[cluster] = group
    return size


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
    size, capacity = 0, pool.shape[0]
    for i in range(leaf_start[group], leaf_start[group + 1]):
        size = enter(order[i], group, seen, pool, size)
    if size == capacity:
        return size
    for k in range(known.shape[1]):
        for i in range(leaf_start[group], leaf_start[group + 1]):
            if known[order[i], k] >= 0:
                size = enter(known[order[i], k], group, seen, pool, size)
                if size == capacity:
                    return size
    for k in range(near_groups.shape[1]):
        other = near_groups[group, k]
        for i in range(leaf_start[other], leaf_start[other + 1]):
            size = enter(order[i], group, seen, pool, size)
            if size == capacity:
                return size
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
        total = subtract(means, c, origin, out, j)
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
    widest = (widest + ROWS - 1) // ROWS * ROWS
    members = np.empty((widest, n_statistics), means.dtype)
    norms = np.empty(widest, means.dtype)
    members[:] = 0
    norms[:] = 0
    at_once = VECTORS * VECTOR_BYTES // means.itemsize
    room = (pool_size + at_once - 1) // at_once * at_once
    rows = np.empty((room, n_statistics), means.dtype)
    constants = np.empty(room, means.dtype)
    squares = np.empty(pool_size, means.dtype)
    columns = aligned(at_once * n_statistics, means)
    table = np.empty((widest, room + 16), np.float32)  # its columns fall into different places of the cache
    table_bits = table.view(np.int32)
    taken, scratch = np.empty(n_listed, np.int64), np.empty(n_listed, np.int64)
    sizes = np.empty(CLASSES + 1, np.int64)
    for group in range(first, last):
        size = fill_pool(group, leaf_start, order, near_groups, known, seen, pool)
        low, high = leaf_start[group], leaf_start[group + 1]
        n = high - low
        counts[group] = n * size
        origin = means[order[low]]
        expected_statistics(means, variances, order, low, high, origin, members, norms)
        natural_rows(means, precisions, offsets, pool[:size], origin, rows, constants, squares)
        cost_table(size, rows, constants, members, norms, columns, table)
        threshold = int(np.int64(0))
        for j in range(n):
            threshold = choose_nearest(
                order[low + j], j, size, pool, table[j], table_bits[j], threshold, taken, scratch, sizes,
                neighbors, nearest,
            )  # fmt: skip
