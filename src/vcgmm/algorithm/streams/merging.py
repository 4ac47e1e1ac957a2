"""Coresets of coresets: merging adds what they stand for, reducing draws fewer points that stand for as much."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...data import ArrayRows
from ...parallel import Workers
from ..coreset.frame import moments
from ..coreset.lightweight import Coreset, lightweight_coreset
from ..pipeline import in_units

#: Points and weights.
Weighted = tuple[np.ndarray, np.ndarray]


def merge(parts: Sequence[Weighted]) -> Weighted:
    """All points (N', D) and weights (N',) of several parts, in a type that holds the values of all."""
    points, weights = zip(*parts, strict=True)
    return np.concatenate(points), np.concatenate(weights)


def reduce(
    points: np.ndarray,
    weights: np.ndarray,
    size: int,
    rng: np.random.Generator,
    workers: Workers,
    n_distinct: int = 1,
) -> Coreset:
    """A lightweight coreset of weighted points: every weighted sum over it is unbiased.

    Parameters
    ----------
    points : (n, D) array
    weights : (n,) float64
    size : int
        Number of draws.
    rng : numpy Generator
    workers : Workers
    n_distinct : int
        Draw on until there are this many different points, if there are so many.

    Returns
    -------
    Coreset
        Its indices are those of points.
    """
    rows = ArrayRows(points, "points")
    scaled, unit = in_units(weights)
    facts = moments(rows, scaled, workers, lambda _: None)
    drawn = lightweight_coreset(rows, facts, scaled, size, rng, n_distinct, workers, lambda _: None)
    return Coreset(drawn.indices, drawn.points, drawn.weights * unit)
