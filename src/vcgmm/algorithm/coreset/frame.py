"""The coordinates in which everything is computed.

Rows are shifted by their weighted mean and scaled by a power of two so that features vary by about one.  The
difference is taken in float64 before rounding, so an offset costs no digits, and no square overflows or
underflows in float32.  A shift and an isotropic scaling change no step of the algorithm; the bound changes by a
known constant.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...data import Part, Rows
from ...data.rows import FEW_PARTS, exact_float
from ...kernels.coreset.coordinates import change_coordinates
from ...kernels.coreset.moments import block_moments, merge_moments
from ...kernels.coreset.quick_moments import quick_block_moments
from ...parallel import READING, Workers

#: Below this, squares of float64 lose their digits.
SMALLEST_SQUARE = 1e-290

#: Features that vary by less than this, or by more than its inverse, are scaled before they are squared.
LEAST = 2.0**-20


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
        result: np.ndarray = points / self.scale
        return result + self.origin if self.origin.any() else result

    @property
    def changes_nothing(self) -> bool:
        """Whether local coordinates are those of the data."""
        return self.scale == 1.0 and not self.origin.any()

    @property
    def log_scale(self) -> float:
        """What a log density gains per dimension on the way from local to data coordinates."""
        return math.log(self.scale)


@dataclass(frozen=True)
class Moments:
    """What one pass over the rows tells.

    Attributes
    ----------
    total_weight : float
    mean : (D,) float64
    total_variance : float
        Weighted mean of the squared distances to the mean.
    n_usable : int
        Rows of positive weight.
    """

    total_weight: float
    mean: np.ndarray
    total_variance: float
    n_usable: int

    @property
    def spread(self) -> float:
        """Weighted sum of the squared distances to the mean."""
        return self.total_variance * self.total_weight

    def frame(self, dtype: np.dtype[Any]) -> Frame:
        """Coordinates in which these rows have mean 0 and features vary by about one."""
        spread = math.sqrt(self.total_variance / len(self.mean))
        scale = math.ldexp(1.0, -round(math.log2(spread))) if spread > 0 else 1.0
        return Frame(self.mean, scale, dtype)

    def light_frame(self, dtype: np.dtype[Any]) -> Frame:
        """The data's own coordinates where they do as well: then rows need not be copied.

        They do where rows are no farther from 0 than from their mean, since neither differences nor squares lose
        digits then, and vary neither much nor little.
        """
        frame = self.frame(dtype)
        near = float(np.square(self.mean).sum()) <= self.total_variance
        return Frame(np.zeros_like(self.mean), 1.0, dtype) if near and LEAST < frame.scale < 1 / LEAST else frame


@dataclass(frozen=True)
class PartMoments:
    """Sums over each block of a part.

    Attributes
    ----------
    sums : (k, D) float64
    masses, scatters : (k,) float64
        Weight of a block, and its scatter about its own mean.
    n_usable : int
    """

    sums: np.ndarray
    masses: np.ndarray
    scatters: np.ndarray
    n_usable: int


def part_moments(part: Part, weights: np.ndarray | None) -> PartMoments:
    """Sums over each block of a part with weights (n,) or None; refuses rows that are not finite."""
    bounds, step = list(part.bounds()), part.owner.rows_per_block
    sums, scatters = np.empty((len(bounds), part.rows.shape[1])), np.empty(len(bounds))
    if weights is None:
        masses = np.array([float(last - first) for first, last in bounds])
    else:
        masses = np.array([weights[first:last].sum() for first, last in bounds])
    for first, last in part.runs():
        blocks = slice(first // step, -(-last // step))
        rows, mass = part.block(first, last), np.empty(0) if weights is None else weights[first:last]
        if weights is not None or rows.dtype != np.float32:
            block_moments(rows, step, mass, masses[blocks], sums[blocks], scatters[blocks])
            continue
        quick_block_moments(rows, step, sums[blocks], scatters[blocks])
        for i in blocks.start + np.flatnonzero(np.isnan(scatters[blocks])):  # more than float32 can hold
            one = slice(i, i + 1)
            block_moments(part.block(*bounds[i]), step, mass, masses[one], sums[one], scatters[one])
    if not np.isfinite(sums).all():
        for first, last in bounds:
            part.refuse_nonfinite(first, last)
    return PartMoments(sums, masses, scatters, len(part) if weights is None else int(np.count_nonzero(weights)))


def moments(
    rows: Rows,
    weights: np.ndarray | None,
    workers: Workers,
    advance: Callable[[int], None],
    by_part: Callable[[Rows, np.ndarray | None], Generator[tuple[Part, PartMoments], None, None]] | None = None,
) -> Moments:
    """Mean and variance of all rows, in one pass; refuses rows that are not finite.

    Parameters
    ----------
    rows : Rows
    weights : (N,) float64 or None
        Non-negative, not all zero; None: those that the rows come with, if any.
    workers : Workers
    advance : callable
        Told how many rows have been read since the last call.
    by_part : callable, optional
        Takes the sums over every part, in order, where that is not done here.
    """
    total = np.zeros(rows.n_features)
    mass, spread, n_usable = 0.0, 0.0, 0
    if by_part is None:
        sums = workers.in_order(
            lambda part: part_moments(part, part.weights(weights)),
            rows.parts(),
            batch=FEW_PARTS if rows.in_few_parts else None,
            effort=READING * rows.n_samples * rows.n_features,
        )
    else:
        sums = by_part(rows, weights)
    with closing(sums) as parts:
        for part, facts in parts:
            mass, spread = merge_moments(facts.sums, facts.masses, facts.scatters, total, mass, spread)
            n_usable += facts.n_usable
            advance(len(part))
    variance = spread / mass
    if not math.isfinite(variance):
        raise ValueError(
            f"{rows.name} holds values so large that their squares overflow float64: divide it by its largest "
            f"absolute value first."
        )
    if variance < SMALLEST_SQUARE and _varies(rows, weights):
        raise ValueError(
            f"{rows.name} varies so little that its squares underflow float64: multiply it by a large number."
        )
    return Moments(mass, total / mass, variance, n_usable)


def _varies(rows: Rows, weights: np.ndarray | None) -> bool:
    """Whether any two rows that count differ."""
    one: np.ndarray | None = None
    with closing(rows.parts()) as parts:
        for part in parts:
            mass = part.weights(weights)
            counted = part.rows if mass is None else part.rows[mass > 0]
            if one is None and len(counted):
                one = counted[0]
            if one is not None and (counted != one).any():
                return True
    return False
