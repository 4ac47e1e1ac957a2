"""Mean and variance of rows that lie in partitions: two passes, of which only sums come back."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..algorithm.frame import SMALLEST_SQUARE, Moments
from ..data import ArrayRows
from ..kernels.moments import squared_deviations, weighted_sum
from .partitions import Partitions
from .transport import hand_out


@dataclass(frozen=True)
class Share:
    """What the first pass finds in a partition.

    Attributes
    ----------
    total : (D,) float64
        Weighted sum of its rows.
    weight : float
    n_positive : int
        Rows of positive weight.
    nonfinite : (int, int, float) or None
        Row, feature and value of the first number that is none.
    """

    total: np.ndarray
    weight: float
    n_positive: int
    nonfinite: tuple[int, int, float] | None


@dataclass(frozen=True)
class Spread:
    """All rows, and what every partition has of them.

    Attributes
    ----------
    moments : Moments
        Without deviations: they stay where the rows are, and are taken again when rows are drawn.
    weights : (P,) float64
        Sum of the weights in each partition.
    deviations : (P,) float64
        Weighted sum of the squared distances to the mean of all rows.
    n_positive : int
        Rows of positive weight in all.
    """

    moments: Moments
    weights: np.ndarray
    deviations: np.ndarray
    n_positive: int


def spread_of(partitions: Partitions, advance: Callable[[int], None]) -> Spread:
    """Mean and deviations of all rows; refuses rows that are not finite.

    Parameters
    ----------
    partitions : Partitions
    advance : callable
        Told how many rows have been read since the last call, in two passes over all of them.
    """
    shares: list[Share] = partitions.gather(partitions.tasks(share_of), advance)
    _refuse_nonfinite(partitions, shares)
    weights = np.array([share.weight for share in shares])
    total_weight = float(weights.sum())
    with np.errstate(over="ignore", invalid="ignore"):  # an overflow shows in the variance
        mean = np.sum([share.total for share in shares], axis=0) / total_weight
    futures = partitions.tasks(deviation_of, hand_out(partitions.client, mean))
    deviations = np.array(partitions.gather(futures, advance))
    variance = float(deviations.sum()) / total_weight
    if not math.isfinite(variance):
        raise ValueError(
            "X holds values so large that their squares overflow float64: divide it by its largest absolute value "
            "first."
        )
    if variance < SMALLEST_SQUARE and _varies(partitions):
        raise ValueError("X varies so little that its squares underflow float64: multiply it by a large number.")
    n_positive = sum(share.n_positive for share in shares)
    return Spread(Moments(total_weight, mean, np.empty(0), variance), weights, deviations, n_positive)


def share_of(block: np.ndarray, weights: np.ndarray | None) -> Share:
    """The first pass over a partition."""
    rows = ArrayRows(block)
    sums = np.zeros((rows.n_blocks, rows.n_features))
    for i in range(rows.n_blocks):
        first, last = rows.bounds(i)
        weighted_sum(rows.block(i), np.empty(0) if weights is None else weights[first:last], sums[i])
    with np.errstate(over="ignore", invalid="ignore"):
        total = sums.sum(axis=0)
    nonfinite = None
    if not np.isfinite(total).all():  # or finite numbers whose sum overflows
        places = np.argwhere(~np.isfinite(block))
        if len(places):
            row, feature = places[0]
            nonfinite = int(row), int(feature), float(block[row, feature])
    if weights is None:
        return Share(total, float(len(block)), len(block), nonfinite)
    return Share(total, float(weights.sum()), int(np.count_nonzero(weights)), nonfinite)


def deviations_from(block: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Squared distance of every row to the mean of all, (n,) float64."""
    rows = ArrayRows(block)
    out = np.empty(len(block))
    for i in range(rows.n_blocks):
        squared_deviations(rows.block(i), mean, out[slice(*rows.bounds(i))])
    return out


def deviation_of(block: np.ndarray, weights: np.ndarray | None, mean: np.ndarray) -> float:
    """The second pass over a partition: weighted sum of its squared distances to the mean of all rows."""
    deviations = deviations_from(block, mean)
    return float(deviations.sum() if weights is None else np.dot(weights, deviations))


def extent_of(block: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray] | None:
    """Smallest and largest value of every feature over the rows that count; None where none does."""
    rows = block if weights is None else block[weights > 0]
    return (rows.min(axis=0), rows.max(axis=0)) if len(rows) else None


def _varies(partitions: Partitions) -> bool:
    """Whether any two rows that count differ."""
    extents = [extent for extent in partitions.gather(partitions.tasks(extent_of)) if extent is not None]
    lowest = np.min([low for low, _ in extents], axis=0)
    highest = np.max([high for _, high in extents], axis=0)
    return bool((lowest != highest).any())


def _refuse_nonfinite(partitions: Partitions, shares: Sequence[Share]) -> None:
    """Raise a ValueError that names the first NaN or infinity, if there is any."""
    for first, partition, share in zip(partitions.starts, partitions.ids, shares, strict=False):
        if share.nonfinite is not None:
            row, feature, value = share.nonfinite
            kind = "NaN" if math.isnan(value) else "infinity (inf)"
            raise ValueError(
                f"Input X contains {kind}: the first in row {first + row} (row {row} of partition {partition}), "
                f"feature {feature}. Remove such rows or impute their values."
            )
