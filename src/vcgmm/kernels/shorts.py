"""Rows as short integers, for comparisons that need not be right to the last digit.

Processors multiply pairs of 16-bit integers and add both products to a 32-bit sum in one instruction, and their
registers hold twice as many of them as floats: products take half of the time, or on older processors as long.
Integers are added up without rounding, so what is compared are the true distances between rows that have been
rounded to whole steps: nothing cancels.

Two features of a row are a pair: an int32, as it lies in memory.  After an odd last feature there is a 0.
"""

from __future__ import annotations

import math

import numpy as np

from .distances import squared_distance
from .jit import part

#: Norm of the longest row, in steps.  Of centres of up to twice that, ||c||^2 - 2 <c, x> fits into 32 bits.
LARGEST = 16_000.0

#: Rounding does not matter where rows are, in the mean, so many steps from their nearest centre: a squared
#: distance is then off by a third of a percent.
FAR_ENOUGH = 256.0

#: Rows by which that is told.
LOOKED_AT = 64

#: Fewer features than this, or fewer products a row, are not worth the rounding.
FEATURES = 16
PRODUCTS = 48

#: A float32 to which this is added has the whole number nearest to it at the end of its bits, as 16 of them.
_MAGIC = np.float32(1.5 * 2.0**23)


@part
def n_pairs(n_features: int) -> int:
    """Pairs that hold so many features."""
    return (n_features + 1) // 2


@part
def steps_per_unit(n: int, squares: np.ndarray, n_features: int, n_products: int) -> float:
    """How many steps make a unit of rows; 0 where floats are as good.

    Parameters
    ----------
    n : int, IN
    squares : (>= n,) float, IN, squared norms of the rows
    n_features : int, IN
    n_products : int, IN, how many centres each row will be compared with in all
    """
    if n_features < FEATURES or n_products < PRODUCTS:
        return 0.0
    largest = squares.dtype.type(0)
    for i in range(n):
        largest = max(largest, squares[i])
    steps = LARGEST / math.sqrt(np.float64(largest)) if largest > 0.0 else 0.0
    return steps if steps < 1e30 else 0.0  # a float32


@part
def shorten(n: int, rows: np.ndarray, steps: float, shorts: np.ndarray) -> None:
    """The first n rows in whole steps.

    Parameters
    ----------
    n : int, IN
    rows : (>= n, D) float, IN
    steps : float64, IN, from `steps_per_unit`
    shorts : (>= n, 2 n_pairs(D)) int16, OUT
    """
    n_features, factor = rows.shape[1], rows.dtype.type(steps)
    for i in range(n):
        for d in range(n_features):
            number = np.float32(np.float32(rows[i, d] * factor) + _MAGIC)
            shorts[i, d] = np.int16(number.view(np.int32) & np.int32(0xFFFF))
        for d in range(n_features, shorts.shape[1]):
            shorts[i, d] = 0


@part
def shorten_centres(
    k: int, centres: np.ndarray, centre_squares: np.ndarray, steps: float, shorts: np.ndarray, squares: np.ndarray
) -> bool:
    """Centres in the same steps; whether none is too long for that.

    Parameters
    ----------
    k : int, IN
    centres : (>= k, D) float, IN
    centre_squares : (>= k,) float, IN, their squared norms
    steps : float64, IN
    shorts : (m, 2 n_pairs(D)) int16, OUT, 0 beyond k
    squares : (m,) int32, OUT, squared norms, as large as can be beyond k
    """
    longest = 2.0 * LARGEST / steps
    for i in range(k):
        if not centre_squares[i] <= longest * longest:
            return False
    shorten(k, centres, steps, shorts)
    for i in range(k):
        square = np.int32(0)
        for d in range(shorts.shape[1]):
            square += np.int32(shorts[i, d]) * np.int32(shorts[i, d])
        squares[i] = square
    for i in range(k, shorts.shape[0]):
        squares[i] = np.int32(0x7FFFFFFF)
        for d in range(shorts.shape[1]):
            shorts[i, d] = 0
    return True


@part
def steps_tell(n: int, rows: np.ndarray, centres: np.ndarray, ids: np.ndarray, steps: float) -> bool:
    """Whether rows are far enough from their centres, as some of the first n tell.

    Parameters
    ----------
    n : int, IN
    rows : (>= n, D) float, IN
    centres : (k, D) float, IN
    ids : (>= n,) int32, IN
    steps : float64, IN
    """
    apart, seen = 0.0, 0
    for i in range(0, n, max(1, n // LOOKED_AT)):
        apart += math.sqrt(squared_distance(rows, i, centres, ids[i]))
        seen += 1
    return apart * steps >= FAR_ENOUGH * seen
