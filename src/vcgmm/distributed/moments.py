"""Mean and variance of rows that lie in partitions: one pass, of which only sums come back."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..algorithm.coreset.drawing import part_deviations
from ..algorithm.coreset.frame import SMALLEST_SQUARE, Moments, part_moments
from ..data import ArrayRows
from ..kernels.coreset.moments import merge_moments
from .partitions import Partitions


@dataclass(frozen=True)
class Share:
    """What the pass finds in a partition.

    Attributes
    ----------
    total : (D,) float64
        Weighted sum of its rows.
    weight : float
    scatter : float
        About its own mean.
    n_usable : int
        Rows of positive weight.
    nonfinite : (int, int, float) or None
        Row, feature and value of the first number that is none.
    """

    total: np.ndarray
    weight: float
    scatter: float
    n_usable: int
    nonfinite: tuple[int, int, float] | None = None


@dataclass(frozen=True)
class Spread:
    """All rows, and what every partition has of them.

    Attributes
    ----------
    moments : Moments
    weights : (P,) float64
        Sum of the weights in each partition.
    deviations : (P,) float64
        Weighted sum of the squared distances to the mean of all rows.
    """

    moments: Moments
    weights: np.ndarray
    deviations: np.ndarray


def spread_of(partitions: Partitions, advance: Callable[[int], None]) -> Spread:
    """Moments of all rows; refuses rows that are not finite.

    Parameters
    ----------
    partitions : Partitions
    advance : callable
        Told how many rows have been read since the last call.
    """
    shares: list[Share] = partitions.gather(partitions.tasks(share_of), advance)
    _refuse_nonfinite(partitions, shares)
    totals = np.array([share.total for share in shares])
    weights = np.array([share.weight for share in shares])
    scatters = np.array([share.scatter for share in shares])
    total = np.zeros(partitions.n_features)
    mass, spread = merge_moments(totals, weights, scatters, total, 0.0, 0.0)
    variance = spread / mass
    if not math.isfinite(variance):
        raise ValueError(
            "X holds values so large that their squares overflow float64: divide it by its largest absolute value "
            "first."
        )
    if variance < SMALLEST_SQUARE and _varies(partitions):
        raise ValueError("X varies so little that its squares underflow float64: multiply it by a large number.")
    mean = total / mass
    away = totals / np.where(weights > 0, weights, 1.0)[:, None] - mean
    deviations = scatters + weights * np.einsum("pd,pd->p", away, away)
    return Spread(Moments(mass, mean, variance, sum(share.n_usable for share in shares)), weights, deviations)


def share_of(block: np.ndarray, weights: np.ndarray | None) -> Share:
    """The pass over a partition, block by block as over rows in memory."""
    total, weight, scatter, n_usable = np.zeros(block.shape[1]), 0.0, 0.0, 0
    for part in ArrayRows(block).parts():
        try:
            facts = part_moments(part, part.weights(weights))
        except ValueError:  # the client knows which row this is of all
            row, feature = np.argwhere(~np.isfinite(block))[0]
            return Share(total, weight, scatter, n_usable, (int(row), int(feature), float(block[row, feature])))
        weight, scatter = merge_moments(facts.sums, facts.masses, facts.scatters, total, weight, scatter)
        n_usable += facts.n_usable
    return Share(total, weight, scatter, n_usable)


def deviations_from(block: np.ndarray, moments: Moments) -> np.ndarray:
    """Squared distance of every row to the mean of all, (n,) float64."""
    return np.concatenate([np.empty(0), *(part_deviations(part, moments) for part in ArrayRows(block).parts())])


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
