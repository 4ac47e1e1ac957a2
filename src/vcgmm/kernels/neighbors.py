"""Which clusters are near which: G_c, and the candidates that all points of a cluster search.

The clusters of a group share one pool: the group itself, everything its members had as candidates, and the
clusters of the nearest groups.  Distances within the pool are one matrix product, so the cost per cluster does
not grow with their number, and what was found once is only given up for something nearer.
"""

from __future__ import annotations

import numpy as np

from .distances import block_distances, local_rows
from .jit import kernel

#: Classes of distance by which a list is put roughly in order.
CLASSES = 64

#: Ranks looked at together when lists are turned round: as many as share a line of cache.
BAND = 16


@kernel
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


@kernel
def threshold_of(
    bits: np.ndarray,
    size: int,
    count: int,
) -> int:
    """Bisect for t with fewer than `count` values below t and at least `count` up to t, or exactly `count` below.

    `bits` are the patterns of non-negative floats as int32: they order like the floats, and counting how many
    lie below a value is a vector loop.
    """
    low = high = bits[0]
    for i in range(size):
        low = min(low, bits[i])
        high = max(high, bits[i])
    one = np.int32(1)
    below, within, n_looks = np.int32(0), np.int32(size), 0  # values below low, and up to high
    while low < high:
        middle = low + np.int32((high - low) >> one)
        if n_looks % 3 < 2:  # where the count would be reached if they were spread evenly: most often near it
            share = np.float32(count - below) / np.float32(within - below)
            guess = low + np.int32(np.float32(high - low) * share)
            middle = max(low, min(guess, high - one))
        n_looks += 1
        up_to = np.int32(0)
        for i in range(size):
            up_to += np.int32(bits[i] <= middle)
        if up_to == count:
            return middle + one
        if up_to > count:
            high, within = middle, up_to
        else:
            low, below = middle + one, up_to
    return low


@kernel
def sort_roughly(first: int, taken: np.ndarray, bits: np.ndarray, sizes: np.ndarray, scratch: np.ndarray) -> None:
    """Put taken[first:] in ascending order of `bits`, up to ties in one of `CLASSES` classes at most.

    Parameters
    ----------
    first : int, IN
    taken : (L,) int64, IN/OUT, places in `bits`
    bits : (n,) int32, IN, patterns of non-negative floats
    sizes : (CLASSES + 1,) int64, scratch
    scratch : (>= L,) int64
    """
    n = taken.shape[0]
    if first >= n:
        return
    low = high = np.int64(bits[taken[first]])
    for k in range(first, n):
        low = min(low, np.int64(bits[taken[k]]))
        high = max(high, np.int64(bits[taken[k]]))
    shift = np.int64(0)  # widths are powers of two: dividing would take longer than all the rest
    while (high - low) >> shift >= CLASSES:
        shift += 1
    for i in range(CLASSES + 1):
        sizes[i] = 0
    for k in range(first, n):
        scratch[k] = taken[k]
        sizes[((np.int64(bits[taken[k]]) - low) >> shift) + 1] += 1
    for i in range(CLASSES):
        sizes[i + 1] += sizes[i]
    for k in range(first, n):
        group = (np.int64(bits[scratch[k]]) - low) >> shift
        taken[first + sizes[group]] = scratch[k]
        sizes[group] += 1


@kernel
def choose_nearest(
    cluster: int,
    itself: int,
    size: int,
    pool: np.ndarray,
    values: np.ndarray,
    value_bits: np.ndarray,
    taken: np.ndarray,
    scratch: np.ndarray,
    sizes: np.ndarray,
    neighbors: np.ndarray,
    nearest: np.ndarray,
) -> None:
    """Write a cluster's lists: the L nearest of its pool, itself first, the G nearest next and in order.

    Parameters
    ----------
    cluster : int, IN
    itself : int, IN, its place in the pool
    size : int, IN, clusters in the pool
    pool : (>= size,) int32, IN
    values : (>= size,) float32, IN/OUT, how far each is, never negative; that of the cluster itself becomes 0
    value_bits : int32, the same memory
    taken, scratch : (L,) and (L + 1,) int64, scratch
    sizes : (CLASSES + 1,) int64, scratch
    neighbors : (C, G) int32, OUT
    nearest : (C, L) int32, OUT
    """
    n_neighbors, n_nearest = neighbors.shape[1], nearest.shape[1]
    values[itself] = 0
    threshold = threshold_of(value_bits, size, n_nearest)
    # Those below the threshold, then ties with it as long as there is room; itself leads.
    nearest[cluster, 0] = cluster
    scratch[0] = itself
    place = 1
    for i in range(size):  # without a branch, which would be guessed wrong at every change
        scratch[place] = i
        place += int((value_bits[i] < threshold) & (i != itself))
    i = 0
    while place < n_nearest:
        if value_bits[i] == threshold and i != itself:
            scratch[place] = i
            place += 1
        i += 1
    for k in range(n_nearest):
        taken[k] = scratch[k]
    for k in range(1, n_nearest):  # the nearest few come to the front, in order
        i = taken[k]
        slot = k
        if k >= n_neighbors and values[i] < values[taken[n_neighbors - 1]]:
            taken[k] = taken[n_neighbors - 1]
            slot = n_neighbors - 1
        if slot < n_neighbors:
            while slot > 1 and values[taken[slot - 1]] > values[i]:
                taken[slot] = taken[slot - 1]
                slot -= 1
            taken[slot] = i
    sort_roughly(n_neighbors, taken, value_bits, sizes, scratch)
    for k in range(1, n_nearest):
        nearest[cluster, k] = pool[taken[k]]
    for k in range(n_neighbors):
        neighbors[cluster, k] = pool[taken[k]]


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
    known : (C, m) int32, IN, candidates from before, -1 for none
    pool_size : int, IN, at least L and the size of a group
    means : (C, D) float, IN
    neighbors : (C, G) int32, OUT, itself first
    nearest : (C, L) int32, OUT, itself first, then roughly in order
    counts : (n_groups,) int64, OUT, distances computed
    """
    n_features = means.shape[1]
    n_nearest = nearest.shape[1]
    seen = np.full(means.shape[0], -1, np.int32)
    pool = np.empty(pool_size, np.int32)
    widest = 0
    for group in range(first, last):
        widest = max(widest, leaf_start[group + 1] - leaf_start[group])
    members = np.empty((widest, n_features), means.dtype)
    member_squares = np.empty(widest, means.dtype)
    centres = np.empty((pool_size, n_features), means.dtype)
    centre_squares = np.empty(pool_size, means.dtype)
    flat = np.empty(widest * pool_size, means.dtype)
    values = np.empty(pool_size, np.float32)
    value_bits = values.view(np.int32)
    taken = np.empty(n_nearest, np.int64)
    scratch = np.empty(n_nearest + 1, np.int64)
    sizes = np.empty(CLASSES + 1, np.int64)
    for group in range(first, last):
        size = fill_pool(group, leaf_start, order, near_groups, known, seen, pool)
        low, high = leaf_start[group], leaf_start[group + 1]
        n = high - low
        counts[group] = n * size
        origin = means[order[low]]
        local_rows(means, order, low, high, origin, members, member_squares)
        local_rows(means, pool, 0, size, origin, centres, centre_squares)
        distances = flat[: n * size].reshape(n, size)
        block_distances(members[:n], member_squares, centres[:size].T, centre_squares, distances)
        for j in range(n):
            for i in range(size):
                values[i] = distances[j, i]
            choose_nearest(
                order[low + j], j, size, pool, values, value_bits, taken, scratch, sizes, neighbors, nearest
            )


@kernel
def turn_round(first: int, last: int, nearest: np.ndarray, followers: np.ndarray, counts: np.ndarray) -> None:
    """For clusters first..last-1 those that have them high on their own lists, the highest first.

    Parameters
    ----------
    nearest : (C, L) int32, IN, itself first, then roughly in order
    followers : (C, room) int32, OUT
    counts : (C,) int64, OUT, how many places of `followers` are filled
    """
    n_clusters, n_nearest = nearest.shape
    room = followers.shape[1]
    counts[first:last] = 0
    for band in range(1, n_nearest, BAND):
        for follower in range(n_clusters):
            for k in range(band, min(band + BAND, n_nearest)):
                cluster = nearest[follower, k]
                if first <= cluster < last and counts[cluster] < room:
                    followers[cluster, counts[cluster]] = follower
                    counts[cluster] += 1


@kernel
def join_neighbourhoods(
    first: int,
    last: int,
    neighbors: np.ndarray,
    nearest: np.ndarray,
    followers: np.ndarray,
    counts: np.ndarray,
    explored: np.ndarray,
    candidates: np.ndarray,
) -> None:
    """Candidates of clusters first..last-1: their search space, the nearest, followers, then random ones.

    The union of G_c' over c' in G_c is the paper's search space G(n) of a point whose winners are G_c.  Then come
    the nearest, but as many places as there could be followers are left to these first.

    Parameters
    ----------
    neighbors : (C, G) int32, IN
    nearest : (C, L) int32, IN
    followers : (C, room) int32, IN, from `turn_round`
    counts : (C,) int64, IN
    explored : (C, n_explore) int32, IN
    candidates : (C, min(C, L + n_explore)) int32, OUT, itself first; no cluster twice
    """
    n_clusters, n_neighbors = neighbors.shape
    room = nearest.shape[1]
    before = room - followers.shape[1]
    seen = np.full(n_clusters, -1, np.int32)
    for c in range(first, last):
        candidates[c, 0] = c
        seen[c] = c
        place = 1
        for k in range(n_neighbors):
            for i in range(n_neighbors):
                other = neighbors[neighbors[c, k], i]
                if seen[other] != c and place < room:
                    candidates[c, place] = other
                    seen[other] = c
                    place += 1
        for i in range(before):
            other = nearest[c, i]
            if seen[other] != c and place < room:
                candidates[c, place] = other
                seen[other] = c
                place += 1
        for i in range(counts[c]):
            other = followers[c, i]
            if seen[other] != c and place < room:
                candidates[c, place] = other
                seen[other] = c
                place += 1
        for i in range(before, room):
            other = nearest[c, i]
            if seen[other] != c and place < room:
                candidates[c, place] = other
                seen[other] = c
                place += 1
        for i in range(explored.shape[1]):
            other = explored[c, i]
            while place < candidates.shape[1] and seen[other] == c:  # known already: the next that is not
                other = (other + 1) % n_clusters
            if place < candidates.shape[1]:
                candidates[c, place] = other
                seen[other] = c
                place += 1
