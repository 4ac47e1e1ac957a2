"""Counting sort of points by cluster, rows in another order, and fingerprints of rows."""

from __future__ import annotations

import numpy as np

from .jit import kernel
from .prefetch import hint_row

#: Rows that lie anywhere are fetched so many ahead.
AHEAD = 8


@kernel
def count_sort(
    labels: np.ndarray,
    n_labels: int,
    order: np.ndarray,
    start: np.ndarray,
) -> None:
    """Stable order of points by label: those with label c are order[start[c]:start[c + 1]].

    Points mostly have the label of the one before, and a counter that was written just now takes a while to be
    read again.  So each half of the points has counters of its own, and they take turns.

    Parameters
    ----------
    labels : (n, k) int32, IN, the first of each row
    n_labels : int, IN
    order : (n,) int32 or int64, OUT
    start : (n_labels + 1,) int64, OUT
    """
    n_points = labels.shape[0]
    half = n_points // 2
    place = np.empty(2 * n_labels, order.dtype)
    for k in range(2 * n_labels):
        place[k] = 0
    for i in range(half):
        place[2 * labels[i, 0]] += 1
        place[2 * labels[half + i, 0] + 1] += 1
    if 2 * half < n_points:
        place[2 * labels[n_points - 1, 0] + 1] += 1
    total = np.int64(0)
    for c in range(n_labels):
        start[c] = total
        for k in range(2 * c, 2 * c + 2):
            size = place[k]
            place[k] = total
            total += size
    start[n_labels] = total
    for i in range(half):
        for k in range(2):
            point = k * half + i
            slot = 2 * labels[point, 0] + k
            order[place[slot]] = point
            place[slot] += 1
    if 2 * half < n_points:
        order[place[2 * labels[n_points - 1, 0] + 1]] = n_points - 1


@kernel
def fingerprints(
    bits: np.ndarray,
    out: np.ndarray,
) -> None:
    """A 64-bit hash of every row of 64-bit words: equal rows have equal hashes, others hardly ever.

    Parameters
    ----------
    bits : (n, D) int64, IN
    out : (n,) int64, OUT
    """
    for i in range(bits.shape[0]):
        state = np.uint64(0x9E3779B97F4A7C15)
        for d in range(bits.shape[1]):
            state ^= np.uint64(bits[i, d])
            state *= np.uint64(0xFF51AFD7ED558CCD)
            state ^= state >> np.uint64(32)
        out[i] = np.int64(state)


@kernel
def take_rows(first: int, last: int, source: np.ndarray, rows: np.ndarray, out: np.ndarray) -> None:
    """out[i] = source[rows[i]] for i in first..last-1.

    Parameters
    ----------
    source : (n, D), IN
    rows : (m,) int64, IN
    out : (m, D), OUT
    """
    for i in range(first, last):
        hint_row(source, rows[min(i + AHEAD, rows.shape[0] - 1)])  # they may lie anywhere
        row = rows[i]
        for d in range(source.shape[1]):
            out[i, d] = source[row, d]


@kernel
def permute_rows(
    first_column: int,
    last_column: int,
    rows: np.ndarray,
    order: np.ndarray,
    done: np.ndarray,
    spare: np.ndarray,
) -> None:
    """rows[i] = rows[order[i]] for all i at once, in place, cycle by cycle, in columns first..last-1.

    Where a cycle leads, rows lie anywhere: they are fetched some steps ahead.

    Parameters
    ----------
    rows : (n, D), IN/OUT
    order : (n,) int64, IN, a permutation
    done : (n,) bool, IN/OUT, False at first, in the end True where a row has come to another place
    spare : (D,) scratch
    """
    for first in range(rows.shape[0]):
        if done[first] or order[first] == first:
            continue
        for d in range(first_column, last_column):
            spare[d] = rows[first, d]
        here = first
        ahead = order[first]
        for _ in range(AHEAD):
            ahead = order[ahead]
            hint_row(rows, int(ahead))
        while order[here] != first:
            there = order[here]
            ahead = order[ahead]
            hint_row(rows, int(ahead))
            for d in range(first_column, last_column):
                rows[here, d] = rows[there, d]
            done[here] = True
            here = there
        for d in range(first_column, last_column):
            rows[here, d] = spare[d]
        done[here] = True
