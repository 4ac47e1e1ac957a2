"""One step of Lloyd's algorithm over some rows: the nearest of all centres, and sums by centre, in one pass.

Sums are exact, so those of the step before need only be told of rows that have changed their label.
"""

from __future__ import annotations

import numpy as np

from ..jit import kernel, strict_part
from ..parts.selection import LANES
from ..parts.shorts import shorten, shorten_centres
from ..parts.transpose import transpose_rows
from .nearest_tiles import nearest_of_few


@strict_part
def move_rows(
    n: int,
    rows: np.ndarray,
    weights: np.ndarray,
    before: np.ndarray,
    labels: np.ndarray,
    magic: np.ndarray,
    mass_magic: float,
    totals: np.ndarray,
    masses: np.ndarray,
) -> int:
    """Take those of the first n rows whose label has changed from one centre's sums to another's.

    totals[c] += weight * row and masses[c] += weight, or -= for the label before, each term rounded to the
    quantum: what is taken away is to the last bit what was added.  Returns how many there are.

    Parameters
    ----------
    n : int, IN
    rows : (>= n, D) float, IN
    weights : (>= n,) float64, IN
    before : (>= n,) int32, IN, -1 where there was none
    labels : (>= n,) int32, IN
    magic : (D,) float64, IN, from `exact_sums.rounding_constant`
    mass_magic : float64, IN, likewise for the masses
    totals : (C, D) float64, IN/OUT
    masses : (C,) float64, IN/OUT
    """
    n_moved = 0
    for i in range(n):
        old, new = before[i], labels[i]
        if old == new:
            continue
        n_moved += 1
        weight = weights[i]
        mass = (weight + mass_magic) - mass_magic
        masses[new] += mass
        for d in range(totals.shape[1]):
            totals[new, d] += (weight * np.float64(rows[i, d]) + magic[d]) - magic[d]
        if old >= 0:
            masses[old] -= mass
            for d in range(totals.shape[1]):
                totals[old, d] -= (weight * np.float64(rows[i, d]) + magic[d]) - magic[d]
    return n_moved


@kernel
def assign_and_add(
    first: int,
    last: int,
    points: np.ndarray,
    weights: np.ndarray,
    centres: np.ndarray,
    squares: np.ndarray,
    steps: float,
    magic: np.ndarray,
    mass_magic: float,
    labels: np.ndarray,
    totals: np.ndarray,
    masses: np.ndarray,
) -> int:
    """The nearest of all centres, as far as products tell, and what that changes in sums by centre.

    For runs first..last-1 of LANES rows each.

    Parameters
    ----------
    points : (N', D) float, IN
    weights : (N',) float64, IN
    centres : (padded(C), D) float, IN, whatever lies in those that are none
    squares : (padded(C),) float, IN, ||mu||^2, infinite for those that are none
    steps : float64, IN, how many make a unit where rows are compared as `shorts`; 0: as floats
    magic : (D,) float64, IN, as in `move_rows`
    mass_magic : float64, IN
    labels : (N',) int32, IN/OUT, -1 where there is none yet
    totals : (C, D) float64, IN/OUT, exact sums of weight * row, less those of rows that were there before
    masses : (C,) float64, IN/OUT, exact sums of weights, likewise

    Returns
    -------
    int
        How many labels have changed.
    """
    n_points, n_features = points.shape
    columns = np.empty((n_features, LANES), points.dtype)
    best = np.empty(LANES, points.dtype)
    found = np.empty(LANES, np.int32)
    n_pairs = (n_features + 1) // 2
    pairs = np.empty((LANES, n_pairs), np.float32)
    pair_columns = np.empty((n_pairs, LANES), np.float32)
    short_centres = np.empty((centres.shape[0], n_pairs), np.float32)
    short_squares = np.empty(centres.shape[0], np.int32)
    short_best = np.empty(LANES, np.int32)
    in_steps = False
    if steps > 0.0:
        in_steps = shorten_centres(totals.shape[0], centres, steps, short_centres, short_squares)
    n_moved = int(np.int64(0))
    for low in range(first * LANES, min(last * LANES, n_points), LANES):
        n = min(LANES, n_points - low)
        if in_steps:
            shorten(n, points[low : low + n], steps, pairs)
            transpose_rows(n, pairs, pair_columns)
            nearest_of_few(short_centres, short_squares, pair_columns, short_best, found)
        else:
            transpose_rows(n, points[low : low + n], columns)
            nearest_of_few(centres, squares, columns, best, found)
        n_moved += move_rows(
            n, points[low : low + n], weights[low : low + n], labels[low : low + n], found, magic, mass_magic,
            totals, masses,
        )  # fmt: skip
        for i in range(n):
            labels[low + i] = found[i]
    return n_moved
