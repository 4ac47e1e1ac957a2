"""One step of Lloyd's algorithm over some rows: the nearest of all centres, and sums by centre, in one pass."""

from __future__ import annotations

import numpy as np

from .jit import kernel, strict_part
from .nearest_tiles import nearest_of_few
from .selection import LANES
from .transpose import transpose_rows


@strict_part
def add_rows(
    n: int,
    rows: np.ndarray,
    weights: np.ndarray,
    labels: np.ndarray,
    magic: np.ndarray,
    mass_magic: float,
    totals: np.ndarray,
    masses: np.ndarray,
) -> None:
    """totals[c] += weight * row and masses[c] += weight for the first n rows, each term rounded to the quantum.

    Parameters
    ----------
    n : int, IN
    rows : (>= n, D) float, IN
    weights : (>= n,) float64, IN
    labels : (>= n,) int32, IN
    magic : (D,) float64, IN, from `exact_sums.rounding_constant`
    mass_magic : float64, IN, likewise for the masses
    totals : (C, D) float64, IN/OUT
    masses : (C,) float64, IN/OUT
    """
    for i in range(n):
        c = labels[i]
        weight = weights[i]
        masses[c] += (weight + mass_magic) - mass_magic
        for d in range(totals.shape[1]):
            totals[c, d] += (weight * np.float64(rows[i, d]) + magic[d]) - magic[d]


@kernel
def assign_and_add(
    first: int,
    last: int,
    points: np.ndarray,
    weights: np.ndarray,
    centres: np.ndarray,
    squares: np.ndarray,
    magic: np.ndarray,
    mass_magic: float,
    labels: np.ndarray,
    totals: np.ndarray,
    masses: np.ndarray,
) -> int:
    """The nearest of all centres, as far as products tell, and sums by centre, for runs first..last-1 of LANES.

    Parameters
    ----------
    points : (N', D) float, IN
    weights : (N',) float64, IN
    centres : (padded(C), D) float, IN, whatever lies in those that are none
    squares : (padded(C),) float, IN, ||mu||^2, infinite for those that are none
    magic : (D,) float64, IN, as in `add_rows`
    mass_magic : float64, IN
    labels : (N',) int32, IN/OUT
    totals : (C, D) float64, IN/OUT, exact sums of weight * row
    masses : (C,) float64, IN/OUT, exact sums of weights

    Returns
    -------
    int
        How many labels have changed.
    """
    n_points, n_features = points.shape
    columns = np.empty((n_features, LANES), points.dtype)
    best = np.empty(LANES, points.dtype)
    found = np.empty(LANES, np.int32)
    n_moved = int(np.int64(0))
    for low in range(first * LANES, min(last * LANES, n_points), LANES):
        n = min(LANES, n_points - low)
        transpose_rows(n, points[low : low + n], columns)
        nearest_of_few(centres, squares, columns, best, found)
        for i in range(n):
            n_moved += int(labels[low + i] != found[i])
            labels[low + i] = found[i]
        add_rows(n, points[low : low + n], weights[low : low + n], found, magic, mass_magic, totals, masses)
    return n_moved
