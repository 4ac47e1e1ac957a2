"""The sums of the coreset's two passes."""

from __future__ import annotations

import numpy as np

from .jit import kernel, strict_kernel


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
def scatter(rows: np.ndarray, weights: np.ndarray, centre: np.ndarray) -> float:
    """sum_n w_n ||y_n - centre||^2 in float64; `weights` may be empty, for all ones."""
    unweighted = weights.shape[0] == 0
    total = 0.0
    for n in range(rows.shape[0]):
        deviation = 0.0
        for d in range(rows.shape[1]):
            difference = np.float64(rows[n, d]) - centre[d]
            deviation += difference * difference
        total += deviation if unweighted else weights[n] * deviation
    return total


@strict_kernel
def merge_moments(
    sums: np.ndarray,
    masses: np.ndarray,
    scatters: np.ndarray,
    total: np.ndarray,
    mass: float,
    spread: float,
) -> tuple[float, float]:
    """Add blocks to what has been summed so far, one after the other.

    With W the mass and m the mean before, W_b and m_b those of a block and S_b its scatter about m_b, the scatter
    of both about their common mean is S + S_b + W W_b / (W + W_b) ||m_b - m||^2: nothing is subtracted.

    Parameters
    ----------
    sums : (k, D) float64, IN
    masses, scatters : (k,) float64, IN
    total : (D,) float64, IN/OUT, the sum of all rows
    mass, spread : float, IN

    Returns
    -------
    mass, spread : float
    """
    for b in range(sums.shape[0]):
        between = 0.0
        if mass > 0.0 and masses[b] > 0.0:
            for d in range(total.shape[0]):
                difference = sums[b, d] / masses[b] - total[d] / mass
                between += difference * difference
            between *= mass * masses[b] / (mass + masses[b])
        spread += scatters[b] + between
        mass += masses[b]
        for d in range(total.shape[0]):
            total[d] += sums[b, d]
    return mass, spread


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
