"""The coordinates in which everything is computed.

Rows are shifted by their weighted mean and scaled by a power of two so that features vary by about one.  The
difference is taken in float64 before rounding, so an offset costs no digits, and no square overflows or
underflows in float32.  A shift and an isotropic scaling change no step of the algorithm; the bound changes by a
known constant.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data import ArrayRows
from ..data.rows import exact_float
from ..kernels.moments import change_coordinates, squared_deviations, weighted_sum
from ..parallel import Workers

#: Below this, squares of float64 lose their digits.
SMALLEST_SQUARE = 1e-290


@dataclass(frozen=True)
class Frame:
    """Local coordinates z = (y - origin) * scale.

    Attributes
    ----------
    origin : (D,) float64
    scale : float
        A power of two, so that scaling rounds nothing.
    dtype : float32 or float64
    """

    origin: np.ndarray
    scale: float
    dtype: np.dtype[Any]

    def enter(self, rows: np.ndarray, dtype: np.dtype[Any] | None = None) -> np.ndarray:
        """Data coordinates (n, D) to local ones, rounded once."""
        out = np.empty(rows.shape, self.dtype if dtype is None else dtype)
        rows = np.ascontiguousarray(rows, dtype=exact_float(rows.dtype))
        change_coordinates(rows, self.origin, self.scale, out)
        return out

    def leave(self, points: np.ndarray) -> np.ndarray:
        """Local coordinates to data coordinates, in float64."""
        result: np.ndarray = points / self.scale + self.origin
        return result

    @property
    def log_scale(self) -> float:
        """What a log density gains per dimension on the way from local to data coordinates."""
        return math.log(self.scale)


@dataclass(frozen=True)
class Moments:
    """Two passes over the rows.

    Attributes
    ----------
    total_weight : float
    mean : (D,) float64
    deviations : (N,) float64
        Squared distance of every row to the mean.
    total_variance : float
        Weighted mean of `deviations`.
    """

    total_weight: float
    mean: np.ndarray
    deviations: np.ndarray
    total_variance: float

    def frame(self, dtype: np.dtype[Any]) -> Frame:
        """Coordinates in which these rows have mean 0 and features vary by about one."""
        spread = math.sqrt(self.total_variance / len(self.mean))
        scale = math.ldexp(1.0, -round(math.log2(spread))) if spread > 0 else 1.0
        return Frame(self.mean, scale, dtype)


def moments(
    rows: ArrayRows, weights: np.ndarray | None, workers: Workers, advance: Callable[[int], None]
) -> Moments:
    """Mean and squared deviations of all rows; refuses rows that are not finite.

    Parameters
    ----------
    rows : ArrayRows
    weights : (N,) float64 or None
        Non-negative, not all zero.
    workers : Workers
    advance : callable
        Told how many rows have been read since the last call, in two passes over all of them.
    """
    none = np.empty(0)
    sums = np.zeros((rows.n_blocks, rows.n_features))
    deviations = np.empty(rows.n_samples)

    def add(_thread: int, first: int, last: int) -> None:
        for i in range(first, last):
            a, b = rows.bounds(i)
            weighted_sum(rows.block(i), none if weights is None else weights[a:b], sums[i])
            if not np.isfinite(sums[i]).all():
                rows.refuse_nonfinite(i)
            advance(b - a)

    workers.run(add, rows.n_blocks)
    total = float(rows.n_samples if weights is None else weights.sum())
    mean = sums.sum(axis=0) / total

    def deviate(_thread: int, first: int, last: int) -> None:
        for i in range(first, last):
            a, b = rows.bounds(i)
            squared_deviations(rows.block(i), mean, deviations[a:b])
            advance(b - a)

    workers.run(deviate, rows.n_blocks)
    variance = float(deviations.sum() if weights is None else np.dot(weights, deviations)) / total
    if not math.isfinite(variance):
        raise ValueError(
            f"{rows.name} holds values so large that their squares overflow float64: divide it by its largest "
            f"absolute value first."
        )
    if variance < SMALLEST_SQUARE and _varies(rows, weights):
        raise ValueError(
            f"{rows.name} varies so little that its squares underflow float64: multiply it by a large number."
        )
    return Moments(total, mean, deviations, variance)


def _varies(rows: ArrayRows, weights: np.ndarray | None) -> bool:
    """Whether any two rows that count differ."""
    one = rows.array[0 if weights is None else int(np.argmax(weights > 0))]
    for i in range(rows.n_blocks):
        a, b = rows.bounds(i)
        block = rows.array[a:b] if weights is None else rows.array[a:b][weights[a:b] > 0]
        if (block != one).any():
            return True
    return False
