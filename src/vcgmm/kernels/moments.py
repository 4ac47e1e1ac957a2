"""The sums of the coreset's two passes."""

from __future__ import annotations

import numpy as np

from .jit import kernel


@kernel
def weighted_sum(
    rows: np.ndarray,
    weights: np.ndarray,
    total: np.ndarray,
) -> None:
    """total[d] += sum_n w_n y_nd in float64; `weights` may be empty, for all ones."""
    unweighted = weights.shape[0] == 0
    for n in range(rows.shape[0]):
        weight = 1.0 if unweighted else weights[n]
        for d in range(rows.shape[1]):
            total[d] += weight * np.float64(rows[n, d])


@kernel
def absolute_sum(first: int, last: int, points: np.ndarray, weights: np.ndarray, total: np.ndarray) -> None:
    """total[d] = sum_n w_n |y_nd| over points first..last-1, in float64."""
    for d in range(points.shape[1]):
        total[d] = 0.0
    for n in range(first, last):
        for d in range(points.shape[1]):
            total[d] += weights[n] * np.float64(abs(points[n, d]))


@kernel
def squared_deviations(
    rows: np.ndarray,
    centre: np.ndarray,
    out: np.ndarray,
) -> None:
    """out[n] = ||y_n - centre||^2 in float64."""
    for n in range(rows.shape[0]):
        total = 0.0
        for d in range(rows.shape[1]):
            difference = np.float64(rows[n, d]) - centre[d]
            total += difference * difference
        out[n] = total


@kernel
def change_coordinates(
    rows: np.ndarray,
    origin: np.ndarray,
    scale: float,
    out: np.ndarray,
) -> None:
    """Out = (rows - origin) * scale, the difference taken in float64."""
    for n in range(rows.shape[0]):
        for d in range(rows.shape[1]):
            out[n, d] = (np.float64(rows[n, d]) - origin[d]) * scale
