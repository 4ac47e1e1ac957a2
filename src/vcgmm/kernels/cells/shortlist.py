"""The smallest of many costs: a list of the nearest clusters, the first few in order and the others roughly."""

from __future__ import annotations

import numpy as np

from ..jit import part
from ..parts.bits import WORD, bits_below, lowest_bit

#: Classes of distance by which a list is put roughly in order.
CLASSES = 64


@part
def longest_choice(count: int) -> int:
    """How many may lie below a threshold that parts `count` from the rest: with fewer, it is looked for longer."""
    return count + count // 8


@part
def threshold_of(bits: np.ndarray, size: int, count: int, most: int, guess: int) -> int:
    """Look for t with at least `count` values below t, but no more than `most`.

    Where there is none, since too many are equal: one with fewer than `count` below t, but not up to t.

    Parameters
    ----------
    bits : (>= size,) int32, IN, the patterns of non-negative floats: they order like the floats, and counting how
        many lie below a value is a vector loop
    size, count, most : int, IN
    guess : int, IN, where to look first: the threshold of other values that are spread alike is mostly the one
    """
    low = high = bits[0]
    for i in range(size):
        low = min(low, bits[i])
        high = max(high, bits[i])
    if size <= most:
        return int(high) + 1
    one = np.int32(1)
    middle = max(low, min(np.int32(guess - 1), high - one))
    below, within, n_looks = np.int32(0), np.int32(size), 0  # values below low, and up to high
    while low < high:
        up_to, limit = np.int32(0), np.int32(middle)  # a sum of two is wider than they are
        for i in range(size):
            up_to = np.int32(up_to + np.int32(bits[i] <= limit))
        if count <= up_to <= most:
            return int(middle) + 1
        if up_to > most:
            high, within = middle, up_to
        else:
            low, below = middle + one, up_to
        middle = low + np.int32((high - low) >> one)
        if n_looks % 3 < 2 and low < high:  # where they would be enough if they were spread evenly
            share = (np.float32(0.5) * np.float32(count + most) - np.float32(below)) / np.float32(within - below)
            middle = max(low, min(low + np.int32(np.float32(high - low) * share), high - one))
        n_looks += 1
    return int(low)


@part
def sort_roughly(n: int, taken: np.ndarray, bits: np.ndarray, sizes: np.ndarray, scratch: np.ndarray) -> None:
    """Put taken[:n] in ascending order of `bits`, up to ties in one of `CLASSES` classes at most.

    Parameters
    ----------
    n : int, IN, at least 1
    taken : (>= n,) int64, OUT
    bits : (m,) int32, IN, patterns of non-negative floats
    sizes : (CLASSES + 1,) int64, OUT, class k is taken[sizes[k - 1]:sizes[k]], the first begins with 0
    scratch : (>= n,) int64, IN, places in `bits`
    """
    low = high = np.int64(bits[scratch[0]])
    for k in range(n):
        low = min(low, np.int64(bits[scratch[k]]))
        high = max(high, np.int64(bits[scratch[k]]))
    shift = np.int64(0)  # widths are powers of two: dividing would take longer than all the rest
    while (high - low) >> shift >= CLASSES:
        shift += 1
    for i in range(CLASSES + 1):
        sizes[i] = 0
    for k in range(n):
        sizes[((np.int64(bits[scratch[k]]) - low) >> shift) + 1] += 1
    for i in range(CLASSES):
        sizes[i + 1] += sizes[i]
    for k in range(n):
        group = (np.int64(bits[scratch[k]]) - low) >> shift
        taken[sizes[group]] = scratch[k]
        sizes[group] += 1


@part
def sort_in_full(first: int, last: int, taken: np.ndarray, bits: np.ndarray) -> None:
    """Put taken[first:last], few of them, in ascending order of `bits`."""
    for k in range(first + 1, last):
        i = taken[k]
        slot = k
        while slot > first and bits[taken[slot - 1]] > bits[i]:
            taken[slot] = taken[slot - 1]
            slot -= 1
        taken[slot] = i


@part
def choose_nearest(
    cluster: int,
    itself: int,
    size: int,
    pool: np.ndarray,
    values: np.ndarray,
    value_bits: np.ndarray,
    guess: int,
    taken: np.ndarray,
    scratch: np.ndarray,
    sizes: np.ndarray,
    neighbors: np.ndarray,
    nearest: np.ndarray,
) -> int:
    """Write a cluster's lists: the L nearest of its pool, itself first, the G nearest next and in order.

    Parameters
    ----------
    cluster : int, IN
    itself : int, IN, its place in the pool
    size : int, IN, clusters in the pool, at least L
    pool : (>= size,) int32, IN
    values : (>= size,) float32, IN/OUT, how far each is, never negative; that of the cluster itself is overwritten
    value_bits : int32, the same memory
    guess : int, IN, what this has returned for a cluster near by, or 0
    taken, scratch : (>= longest_choice(L) + 1,) int64, scratch
    sizes : (CLASSES + 1,) int64, scratch
    neighbors : (C, G) int32, OUT
    nearest : (C, L) int32, OUT

    Returns
    -------
    int, the threshold
    """
    n_neighbors, count = neighbors.shape[1], nearest.shape[1] - 1
    neighbors[cluster, 0] = cluster
    nearest[cluster, 0] = cluster
    if count == 0:
        return guess
    values[itself] = values[1 if itself == 0 else 0]  # it leads anyway, and no value should stand out
    most = taken.shape[0] - 1
    threshold = threshold_of(value_bits, size, count + 1, most, guess)  # it may be among them
    place, whole = 0, size - size % WORD
    for first in range(0, whole, WORD):
        found = bits_below(value_bits, first, threshold)
        if first <= itself < first + WORD:
            found &= ~(np.int64(1) << np.int64(itself - first))
        while found != 0:
            bit = lowest_bit(found)
            scratch[place] = first + bit
            place += 1
            found &= ~(np.int64(1) << np.int64(bit))
    for i in range(whole, size):  # without a branch, which would be guessed wrong at every change
        scratch[place] = i
        place += int((value_bits[i] < threshold) & (i != itself))
    i = 0
    while place < count:  # and ties with it as long as there is room
        if value_bits[i] == threshold and i != itself:
            scratch[place] = i
            place += 1
        i += 1
    sort_roughly(place, taken, value_bits, sizes, scratch)
    begin = int(np.int64(0))
    for k in range(CLASSES):  # in full only where a class holds some of the few, or of those to be left out
        end = sizes[k]
        if end - begin > 1 and (begin < n_neighbors - 1 or begin < count < end):
            sort_in_full(begin, end, taken, value_bits)
        begin = end
    for k in range(count):
        nearest[cluster, k + 1] = pool[taken[k]]
    for k in range(n_neighbors - 1):
        neighbors[cluster, k + 1] = pool[taken[k]]
    return threshold
