"""Counting sort of points by cluster, rows in another order, and fingerprints of rows."""

from __future__ import annotations

import numpy as np

from ..jit import kernel
from ..parts.prefetch import hint_columns, hint_row

#: Runs of points that take turns where points are counted.
RUNS = 4

#: Rows that lie anywhere are fetched so many ahead.
AHEAD = 8


@kernel
def count_labels(first: int, last: int, labels: np.ndarray, counts: np.ndarray) -> None:
    """How many points of parts first..last-1 have each label: the first of the three steps of a counting sort.

    Points mostly have the label of the one before, and a counter that was written just now takes a while to be
    read again.  So the runs of points that a part is cut into have counters of their own, and they take turns.

    Parameters
    ----------
    labels : (n, k) int32, IN, the first of each row
    counts : (n_parts, n_labels, RUNS) int32 or int64, OUT, by run of each part
    """
    n_points, n_parts = labels.shape[0], counts.shape[0]
    for part in range(first, last):
        begin, end = n_points * part // n_parts, n_points * (part + 1) // n_parts
        length = (end - begin) // RUNS
        counts[part] = 0
        for i in range(begin, begin + length):
            for run in range(RUNS):
                counts[part, labels[i + run * length, 0], run] += 1
        for i in range(begin + RUNS * length, end):  # the last run is the longest
            counts[part, labels[i, 0], RUNS - 1] += 1


@kernel
def begin_labels(counts: np.ndarray, start: np.ndarray) -> None:
    """Where the points of each label begin: the second step.

    Parameters
    ----------
    counts : (n_parts, n_labels, RUNS) int32 or int64, IN/OUT, then the first place of each run's points
    start : (n_labels + 1,) int64, OUT
    """
    total = np.int64(0)
    for label in range(counts.shape[1]):
        start[label] = total
        for part in range(counts.shape[0]):
            for run in range(RUNS):
                size = counts[part, label, run]
                counts[part, label, run] = total
                total += size
    start[counts.shape[1]] = total


@kernel
def place_points(first: int, last: int, labels: np.ndarray, places: np.ndarray, order: np.ndarray) -> None:
    """Put the points of parts first..last-1 where they belong: the third step.

    Parameters
    ----------
    labels : (n, k) int32, IN, the first of each row
    places : (n_parts, n_labels, RUNS) int32 or int64, IN/OUT, from `begin_labels`
    order : (n,) int32 or int64, OUT, stable: those with label c are order[start[c]:start[c + 1]]
    """
    n_points, n_parts = labels.shape[0], places.shape[0]
    for part in range(first, last):
        begin, end = n_points * part // n_parts, n_points * (part + 1) // n_parts
        length = (end - begin) // RUNS
        for i in range(begin, begin + length):
            for run in range(RUNS):
                point = i + run * length
                label = labels[point, 0]
                order[places[part, label, run]] = point
                places[part, label, run] += 1
        for point in range(begin + RUNS * length, end):
            label = labels[point, 0]
            order[places[part, label, RUNS - 1]] = point
            places[part, label, RUNS - 1] += 1


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
            hint_columns(rows, int(ahead), first_column, last_column)
        while order[here] != first:
            there = order[here]
            ahead = order[ahead]
            hint_columns(rows, int(ahead), first_column, last_column)
            for d in range(first_column, last_column):
                rows[here, d] = rows[there, d]
            done[here] = True
            here = there
        for d in range(first_column, last_column):
            rows[here, d] = spare[d]
        done[here] = True
