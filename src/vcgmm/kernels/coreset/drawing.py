"""Sorted numbers along running sums of probabilities: which rows they draw."""

from __future__ import annotations

import numpy as np

from ..jit import kernel, strict_kernel

#: Rows that a search goes on by, and then looks at all at once.
STRIDE = 16


@strict_kernel
def add_up(values: np.ndarray, weights: np.ndarray, slope: float, level: float, step: int) -> None:
    """Replace values by running sums of (slope value + level) w, from the beginning of each block of `step` on.

    `weights` may be empty, for all ones.
    """
    unweighted = weights.shape[0] == 0
    for first in range(0, values.shape[0], step):
        total = 0.0
        for i in range(first, min(first + step, values.shape[0])):
            probability = slope * values[i] + level
            total += probability if unweighted else probability * weights[i]
            values[i] = total


@kernel
def meet(
    running: np.ndarray,
    step: int,
    numbers: np.ndarray,
    begins: np.ndarray,
    start: np.ndarray,
    rows: np.ndarray,
    counts: np.ndarray,
    probabilities: np.ndarray,
) -> int:
    """Rows that numbers fall on, ascending, how many on each, and how probable that was.

    Parameters
    ----------
    running : (n,) float64, IN, running sum of the probabilities within each block
    step : int, IN, rows in a block
    numbers : (size,) float64, IN, ascending
    begins : (n_blocks,) float64, IN, running sum of all before the block
    start : (n_blocks + 1,) int64, IN, the numbers that fall into each block
    rows, counts : (size,) int64, OUT, as many as are returned
    probabilities : (size,) float64, OUT, likewise

    Returns
    -------
    int
    """
    n_met = 0
    for block in range(begins.shape[0]):
        first, end = block * step, min((block + 1) * step, running.shape[0])
        # Rounding may point just past the last row that has any probability.
        last = end - 1
        while last > first and running[last - 1] == running[last]:
            last -= 1
        low = first
        for i in range(start[block], start[block + 1]):
            number = numbers[i] - begins[block]
            # The first row whose running sum is larger, or the last: mostly not far from the one before.
            while low + STRIDE <= last and running[low + STRIDE - 1] <= number:
                low += STRIDE
            beyond = 0
            for row in range(low, min(low + STRIDE, last)):
                beyond += 1 if running[row] <= number else 0
            low += beyond
            if n_met > 0 and rows[n_met - 1] == low:
                counts[n_met - 1] += 1
            else:
                rows[n_met] = low
                counts[n_met] = 1
                probabilities[n_met] = running[low] - (running[low - 1] if low > first else 0.0)
                n_met += 1
    return n_met
