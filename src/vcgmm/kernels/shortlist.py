"""The shortest of many distances: a list of the nearest, the first few in order and the others roughly."""

from __future__ import annotations

import numpy as np

from .jit import kernel

#: Classes of distance by which a list is put roughly in order.
CLASSES = 64


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
