"""Counting sort of points by cluster, rows in another order, and fingerprints of rows."""

from __future__ import annotations

import numpy as np

from .jit import kernel


@kernel
def count_sort(
    labels: np.ndarray,
    n_labels: int,
    order: np.ndarray,
    start: np.ndarray,
) -> None:
    """Stable order of points by label: those with label c are order[start[c]:start[c + 1]].

    Parameters
    ----------
    labels : (n,) int32, IN, or a column of a larger array
    n_labels : int, IN
    order : (n,) int64, OUT
    start : (n_labels + 1,) int64, OUT
    """
    start[:] = 0
    for i in range(labels.shape[0]):
        start[labels[i] + 1] += 1
    for c in range(n_labels):
        start[c + 1] += start[c]
    place = start[:-1].copy()
    for i in range(labels.shape[0]):
        c = labels[i]
        order[place[c]] = i
        place[c] += 1


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
        row = rows[i]
        for d in range(source.shape[1]):
            out[i, d] = source[row, d]


@kernel
def permute_rows(rows: np.ndarray, order: np.ndarray, done: np.ndarray, spare: np.ndarray) -> None:
    """rows[i] = rows[order[i]] for all i at once, in place, cycle by cycle.

    Parameters
    ----------
    rows : (n, D), IN/OUT
    order : (n,) int64, IN, a permutation
    done : (n,) bool, IN/OUT, False at first, True at last
    spare : (D,) scratch
    """
    for first in range(rows.shape[0]):
        if done[first]:
            continue
        for d in range(rows.shape[1]):
            spare[d] = rows[first, d]
        here = first
        while order[here] != first:
            there = order[here]
            for d in range(rows.shape[1]):
                rows[here, d] = rows[there, d]
            done[here] = True
            here = there
        for d in range(rows.shape[1]):
            rows[here, d] = spare[d]
        done[here] = True
