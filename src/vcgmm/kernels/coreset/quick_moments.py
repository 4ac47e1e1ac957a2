"""The sums of the coreset's two passes over float32 rows, as fast as memory gives them.

Differences to a centre near by are taken in float32, which rounds each by 2^-24 of itself at most: an offset that
all rows share costs no digits.  Few of them are added before float64 takes over.  Where float32 cannot hold them,
since squares overflow or underflow, that is found out, and left to `moments`, which computes in float64 all along.
"""

from __future__ import annotations

import numpy as np

from ..jit import kernel, part, strict_part
from ..parts.prefetch import AHEAD, LINE, prefetch
from ..parts.vectors import VECTOR_BYTES, aligned
from .eight_rows import ROWS, add_eight_rows

#: One row of so many is looked at to find a centre.
SPARSE = 64

#: How many of those are under way at a time.
SOON = 8

#: Rows over which differences are added in float32.
SUMMED = 32

#: Mean squares below this lose digits in float32, or all of them.
LEAST_SQUARE = 1e-30

#: Mean squared distances beyond this may overflow float32.
MOST_SQUARE = 1e30

BYTES = 4


@strict_part
def minus(value: float, centre: float) -> float:
    """Value - centre, not to be taken apart: a sum that may be reordered would add values and centres apart."""
    return value - centre


@kernel
def quick_block_moments(rows: np.ndarray, step: int, sums: np.ndarray, scatters: np.ndarray) -> None:
    """Sum of every block of rows, and its scatter about its own mean.

    With t = y - c for a centre c near the mean m: sum y = n c + sum t, and the scatter is
    sum t^2 - (sum t)^2 / n.  As c is the mean of one row of 64, the second term is at most 64 times the scatter.

    Parameters
    ----------
    rows : (n, D) float32, IN
    step : int, IN, rows in a block
    sums : (k, D) float64, OUT
    scatters : (k,) float64, OUT, NaN for blocks that float32 cannot hold, or that hold NaN or infinity
    """
    n_features = rows.shape[1]
    lanes = VECTOR_BYTES // BYTES
    centre = aligned((n_features + lanes - 1) // lanes * lanes, rows)
    centre[:] = 0
    for i in range(sums.shape[0]):
        block = rows[i * step : (i + 1) * step]
        total = sums[i]
        sparse_mean(block, total, centre)
        total[:] = 0.0
        squares = add_differences(block, centre, total)
        n = float(block.shape[0])
        excess = 0.0
        for d in range(n_features):
            excess += total[d] * total[d]
        for d in range(n_features):
            total[d] += n * np.float64(centre[d])
        sound = squares < np.inf and squares > LEAST_SQUARE * n * n_features
        scatters[i] = max(squares - excess / n, 0.0) if sound else np.nan


@part
def sparse_mean(rows: np.ndarray, total: np.ndarray, centre: np.ndarray) -> None:
    """centre[d] = mean of y_nd over one row of `SPARSE`; `total`, (D,) float64, is overwritten."""
    total[:] = 0.0
    width = rows.shape[1] * BYTES
    for n in range(0, rows.shape[0], SPARSE):
        far = (n + SOON * SPARSE) * width
        for k in range(far, far + width, LINE):
            prefetch(rows, k)
        for d in range(rows.shape[1]):
            total[d] += np.float64(rows[n, d])
    n_seen = (rows.shape[0] + SPARSE - 1) // SPARSE
    for d in range(rows.shape[1]):
        centre[d] = np.float32(total[d] / n_seen)


@part
def add_differences(rows: np.ndarray, centre: np.ndarray, total: np.ndarray) -> float:
    """total[d] += sum_n t_nd for t = y - centre; returns sum_nd t_nd^2.  The centre has room for whole vectors."""
    n_features = rows.shape[1]
    width = n_features * BYTES
    some = aligned(2 * centre.shape[0], centre).reshape(2, centre.shape[0])  # of some rows, and their squares
    some[:] = 0
    squares = 0.0
    whole = rows.shape[0] - rows.shape[0] % ROWS
    for n in range(0, whole, ROWS):
        for k in range(n * width + AHEAD, (n + ROWS) * width + AHEAD, LINE):
            prefetch(rows, k)
        add_eight_rows(rows, n, centre, some)
        if (n + ROWS) % SUMMED == 0 or n + ROWS == whole:
            for d in range(n_features):
                total[d] += np.float64(some[0, d])
            for d in range(n_features):  # a sum has a loop of its own (`jit`)
                squares += np.float64(some[1, d])
            some[:] = 0
    for n in range(whole, rows.shape[0]):
        for d in range(n_features):
            total[d] += np.float64(minus(rows[n, d], centre[d]))
        for d in range(n_features):
            t = np.float64(minus(rows[n, d], centre[d]))
            squares += t * t
    return squares


@kernel
def quick_block_deviations(
    rows: np.ndarray, step: int, high: np.ndarray, low: np.ndarray, centre: np.ndarray, out: np.ndarray
) -> None:
    """out[n] = ||y_n - centre||^2, block by block: the same bits however many blocks there are.

    Parameters
    ----------
    rows : (n, D) float32, IN
    step : int, IN, rows in a block
    high, low : (D,) float32, IN, the centre rounded, and what that leaves
    centre : (D,) float64, IN, for rows whose squares overflow float32
    out : (n,) float64, OUT
    """
    for first in range(0, rows.shape[0], step):
        last = min(first + step, rows.shape[0])
        quick_deviations(rows[first:last], high, low, out[first:last])
        for n in range(first, last):
            if not out[n] < np.inf:
                total = 0.0
                for d in range(rows.shape[1]):
                    difference = np.float64(rows[n, d]) - centre[d]
                    total += difference * difference
                out[n] = total


@part
def quick_deviations(rows: np.ndarray, high: np.ndarray, low: np.ndarray, out: np.ndarray) -> None:
    """out[n] = ||(y_n - high) - low||^2, squares in float32."""
    n_features = rows.shape[1]
    width = n_features * BYTES
    whole = rows.shape[0] - rows.shape[0] % 4
    for n in range(0, whole, 4):
        for k in range(n * width + AHEAD, (n + 4) * width + AHEAD, LINE):
            prefetch(rows, k)
        square0, square1, square2, square3 = np.float32(0.0), np.float32(0.0), np.float32(0.0), np.float32(0.0)
        for d in range(n_features):
            h, rest = high[d], low[d]
            t0 = minus(minus(rows[n, d], h), rest)
            t1 = minus(minus(rows[n + 1, d], h), rest)
            t2 = minus(minus(rows[n + 2, d], h), rest)
            t3 = minus(minus(rows[n + 3, d], h), rest)
            square0 += t0 * t0
            square1 += t1 * t1
            square2 += t2 * t2
            square3 += t3 * t3
        out[n], out[n + 1], out[n + 2], out[n + 3] = square0, square1, square2, square3
    for n in range(whole, rows.shape[0]):
        total = 0.0
        for d in range(n_features):
            t = np.float64(minus(minus(rows[n, d], high[d]), low[d]))
            total += t * t
        out[n] = total
