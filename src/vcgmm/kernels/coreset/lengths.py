"""Rows scaled to length 1."""

from __future__ import annotations

import math

import numpy as np

from ..jit import kernel

#: Squares of values between these neither overflow nor lose digits in float64.
SMALL, LARGE = 1e-140, 1e140


@kernel
def to_unit_length(rows: np.ndarray, out: np.ndarray) -> int:
    """Out = rows / ||rows||, the quotient taken in float64, up to a row that has no direction.

    Parameters
    ----------
    rows : (n, D) float, IN
    out : (n, D) float, OUT

    Returns
    -------
    int, the first row that is zero or not finite, or n
    """
    n_features = rows.shape[1]
    for n in range(rows.shape[0]):
        total = 0.0
        for i in range(n_features):
            value = np.float64(rows[n, i])
            total += value * value
        length, unit = math.sqrt(total), 1.0
        if not SMALL < length < LARGE:
            largest = 0.0
            for i in range(n_features):
                value = abs(np.float64(rows[n, i]))
                if not value < math.inf:
                    return n
                largest = max(largest, value)
            if largest == 0.0:
                return n
            unit, total = largest, 0.0
            for i in range(n_features):
                value = np.float64(rows[n, i]) / unit
                total += value * value
            length = math.sqrt(total)
        for i in range(n_features):
            out[n, i] = (np.float64(rows[n, i]) / unit) / length
    return rows.shape[0]
