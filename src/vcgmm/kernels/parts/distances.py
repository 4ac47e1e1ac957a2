"""Squared distances: one by one, and in blocks by a matrix product in local coordinates.

Two habits of all kernels here: a literal int beside a float32 would make it a float64, so constants take their
type from an array; and arrays are passed whole with an index, since a slice in an inner loop costs an atomic
reference count.
"""

from __future__ import annotations

import numpy as np

from ..jit import kernel, part
from .differences import subtract
from .prefetch import hint_row

#: How many rows ahead of the one that is used they are fetched.
SOON = 8


@part
def local_rows(
    source: np.ndarray,
    rows: np.ndarray,
    first: int,
    last: int,
    origin: np.ndarray,
    out: np.ndarray,
    squares: np.ndarray,
) -> None:
    """Rows in coordinates local to an origin: out[j] = source[rows[first + j]] - origin.

    Parameters
    ----------
    source : (n, D) float, IN
    rows : (m,) int, IN
    first, last : int, IN, the range of `rows` to take
    origin : (D,) float, IN
    out : (>= last - first, D) float, OUT
    squares : (>= last - first,) float, OUT, squared norms of `out`
    """
    for j in range(last - first):
        hint_row(source, int(rows[min(first + j + SOON, last - 1)]))  # rows lie anywhere
        row = rows[first + j]
        squares[j] = subtract(source, row, origin, out, j)


@part
def squared_distance(
    a: np.ndarray,
    i: int,
    b: np.ndarray,
    j: int,
) -> float:
    """||a_i - b_j||^2, directly."""
    total = a.dtype.type(0)
    for d in range(a.shape[1]):
        difference = a[i, d] - b[j, d]
        total += difference * difference
    return total


@kernel
def distances_to(rows: np.ndarray, centres: np.ndarray, ids: np.ndarray, out: np.ndarray) -> None:
    """out[n, k] = ||rows[n] - centres[ids[n, k]]||^2, all in float64.

    Parameters
    ----------
    rows : (n, D) float, IN
    centres : (C, D) float64, IN
    ids : (n, k) int32, IN
    out : (n, k) float64, OUT
    """
    for n in range(rows.shape[0]):
        for k in range(ids.shape[1]):
            centre = ids[n, k]
            total = 0.0
            for d in range(rows.shape[1]):
                difference = np.float64(rows[n, d]) - centres[centre, d]
                total += difference * difference
            out[n, k] = total
