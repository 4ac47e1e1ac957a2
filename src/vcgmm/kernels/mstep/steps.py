"""Means after an M-step, and how long its ways are: one look at each number, where NumPy would take several."""

from __future__ import annotations

import numpy as np

from ..jit import kernel, strict_kernel


@strict_kernel
def take_step(
    first: int,
    last: int,
    shifts: np.ndarray,
    masses: np.ndarray,
    means: np.ndarray,
    step: float,
    out: np.ndarray,
) -> None:
    """Means of clusters first..last-1 after `step` times the way to the weighted means, mu_c + r shift_c / R_c.

    Every operation is rounded as NumPy rounds it: sums that lie elsewhere give the same means, to the last bit.

    Parameters
    ----------
    shifts : (C, D) float64, IN
    masses : (C,) float64, IN, a cluster without weight stays where it is
    means : (C, D) float, IN
    step : float, IN, r
    out : (C, D) float64, OUT
    """
    for c in range(first, last):
        mass = masses[c] if masses[c] > 0.0 else 1.0
        for d in range(shifts.shape[1]):
            out[c, d] = shifts[c, d] / mass * step + means[c, d]


@kernel
def row_products(first: int, last: int, left: np.ndarray, right: np.ndarray, out: np.ndarray) -> None:
    """<l_c, l_c> and <l_c, r_c> of rows first..last-1.

    Parameters
    ----------
    left, right : (C, D) float64, IN
    out : (C, 2) float64, OUT
    """
    for c in range(first, last):
        square = cross = 0.0
        for d in range(left.shape[1]):
            square += left[c, d] * left[c, d]
            cross += left[c, d] * right[c, d]
        out[c, 0], out[c, 1] = square, cross
