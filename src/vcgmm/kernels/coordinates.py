"""Rows in local coordinates: less an origin, times a scale."""

from __future__ import annotations

import numpy as np

from .jit import kernel
from .prefetch import hint_row

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
