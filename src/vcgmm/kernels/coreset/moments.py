"""The sums of the coreset's two passes."""

from __future__ import annotations

import numpy as np

from ..jit import kernel, part, strict_kernel

#: Rows that are read side by side: totals are then fetched and stored, and loops begun, once for all of them.
SIDE_BY_SIDE = 4


@part
def weighted_sum(
    rows: np.ndarray,
    weights: np.ndarray,
    total: np.ndarray,
) -> None:
    """total[d] += sum_n w_n y_nd in float64; `weights` may be empty, for all ones."""
    unweighted = weights.shape[0] == 0
    whole = rows.shape[0] - rows.shape[0] % SIDE_BY_SIDE
    for n in range(0, whole, SIDE_BY_SIDE):
        w0, w1, w2, w3 = 1.0, 1.0, 1.0, 1.0
        if not unweighted:
            w0, w1, w2, w3 = weights[n], weights[n + 1], weights[n + 2], weights[n + 3]
        for d in range(rows.shape[1]):
            total[d] += (w0 * np.float64(rows[n, d]) + w1 * np.float64(rows[n + 1, d])) + (
                w2 * np.float64(rows[n + 2, d]) + w3 * np.float64(rows[n + 3, d])
            )
    for n in range(whole, rows.shape[0]):
        weight = 1.0 if unweighted else weights[n]
        for d in range(rows.shape[1]):
            total[d] += weight * np.float64(rows[n, d])


@part
def squared_deviations(
    rows: np.ndarray,
    centre: np.ndarray,
    out: np.ndarray,
) -> None:
    """out[n] = ||y_n - centre||^2 in float64."""
    whole = rows.shape[0] - rows.shape[0] % SIDE_BY_SIDE
    for n in range(0, whole, SIDE_BY_SIDE):
        total0, total1, total2, total3 = 0.0, 0.0, 0.0, 0.0
        for d in range(rows.shape[1]):
            difference0 = np.float64(rows[n, d]) - centre[d]
            difference1 = np.float64(rows[n + 1, d]) - centre[d]
            difference2 = np.float64(rows[n + 2, d]) - centre[d]
            difference3 = np.float64(rows[n + 3, d]) - centre[d]
            total0 += difference0 * difference0
            total1 += difference1 * difference1
            total2 += difference2 * difference2
            total3 += difference3 * difference3
        out[n], out[n + 1], out[n + 2], out[n + 3] = total0, total1, total2, total3
    for n in range(whole, rows.shape[0]):
        total = 0.0
        for d in range(rows.shape[1]):
            difference = np.float64(rows[n, d]) - centre[d]
            total += difference * difference
        out[n] = total


@part
def scatter(rows: np.ndarray, weights: np.ndarray, centre: np.ndarray) -> float:
    """sum_n w_n ||y_n - centre||^2 in float64; `weights` may be empty, for all ones."""
    deviations = np.empty(rows.shape[0])
    squared_deviations(rows, centre, deviations)
    total = 0.0
    for n in range(rows.shape[0]):
        total += deviations[n] if weights.shape[0] == 0 else weights[n] * deviations[n]
    return total


@kernel
def block_moments(
    rows: np.ndarray,
    step: int,
    weights: np.ndarray,
    masses: np.ndarray,
    sums: np.ndarray,
    scatters: np.ndarray,
) -> None:
    """Sum of every block of rows, and its scatter about its own mean.

    Parameters
    ----------
    rows : (n, D) float, IN
    step : int, IN, rows in a block
    weights : (n,) float64, IN, or empty, for all ones
    masses : (k,) float64, IN, sum of the weights in each block
    sums : (k, D) float64, OUT
    scatters : (k,) float64, OUT, 0 for blocks without weight
    """
    sums[:] = 0.0
    scatters[:] = 0.0
    for i in range(masses.shape[0]):
        block = rows[i * step : (i + 1) * step]
        mass = weights[i * step : (i + 1) * step]
        weighted_sum(block, mass, sums[i])
        if masses[i] > 0.0:
            scatters[i] = scatter(block, mass, sums[i] / masses[i])


@kernel
def block_deviations(rows: np.ndarray, step: int, centre: np.ndarray, out: np.ndarray) -> None:
    """`squared_deviations`, block by block of `step` rows: the same bits however many blocks there are."""
    for first in range(0, rows.shape[0], step):
        squared_deviations(rows[first : first + step], centre, out[first : first + step])


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
