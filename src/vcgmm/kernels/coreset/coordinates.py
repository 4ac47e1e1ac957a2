"""Rows in local coordinates: less an origin, times a scale."""

from __future__ import annotations

import numpy as np

from ..jit import kernel
from ..parts.prefetch import hint_row

#: Rows that lie anywhere are fetched so many ahead.
AHEAD = 8


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


@kernel
def rows_in_coordinates(
    source: np.ndarray,
    rows: np.ndarray,
    origin: np.ndarray,
    scale: float,
    out: np.ndarray,
) -> None:
    """`change_coordinates` of rows that lie anywhere: out[i] = (source[rows[i]] - origin) * scale.

    Parameters
    ----------
    source : (N, D) float, IN, C-ordered
    rows : (n,) int64, IN
    origin : (D,) float64, IN
    scale : float, IN
    out : (n, D) float, OUT
    """
    for i in range(rows.shape[0]):
        if i + AHEAD < rows.shape[0]:
            hint_row(source, rows[i + AHEAD])
        row = rows[i]
        for d in range(source.shape[1]):
            out[i, d] = (np.float64(source[row, d]) - origin[d]) * scale


@kernel
def mean_in_coordinates(
    first: int,
    last: int,
    source: np.ndarray,
    origin: np.ndarray,
    scale: float,
    weights: np.ndarray,
    order: np.ndarray,
    start: np.ndarray,
    means: np.ndarray,
    distances: np.ndarray,
) -> None:
    """`lloyd.mean_of_groups` of rows as `change_coordinates` writes them, which are not kept.

    Parameters
    ----------
    source : (N, D) float, IN, C-ordered
    origin : (D,) float64, IN
    scale : float, IN
    weights : (N,) float64, IN
    order, start : IN, group g holds the rows order[start[g]:start[g + 1]]
    means : (n_groups, D) float64, OUT; 0 for a group that is empty or without weight
    distances : (N,) float, OUT, squared, of every member to its group's mean; or (0,), where nobody asks for them
    """
    local = np.empty(source.shape[1], source.dtype)  # rounded as points are
    for group in range(first, last):
        mass = 0.0
        for d in range(means.shape[1]):
            means[group, d] = 0.0
        for i in range(start[group], start[group + 1]):
            hint_row(source, int(order[min(i + AHEAD, order.shape[0] - 1)]))
            row = order[i]
            weight = weights[row]
            mass += weight
            for d in range(means.shape[1]):
                local[d] = (np.float64(source[row, d]) - origin[d]) * scale
            for d in range(means.shape[1]):
                means[group, d] += weight * local[d]
        if mass > 0.0:
            for d in range(means.shape[1]):
                means[group, d] /= mass
        for i in range(start[group], start[group + 1] if distances.shape[0] else start[group]):
            row = order[i]
            for d in range(means.shape[1]):
                local[d] = (np.float64(source[row, d]) - origin[d]) * scale
            total = 0.0
            for d in range(means.shape[1]):
                difference = local[d] - means[group, d]
                total += difference * difference
            distances[row] = total
