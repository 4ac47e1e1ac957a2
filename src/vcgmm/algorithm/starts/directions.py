"""Directions in which rows vary most, where few of them carry most of the variance (Halko et al. 2011)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..coreset.local_points import LocalPoints
from .row_sample import RowSample, Sample

#: Numbers of dimensions to choose from; the least that keeps so much of the variance is taken, or the largest.
CHOICES = (16, 32, 48, 64)
ENOUGH = 0.9

#: With fewer features than this for each dimension, a projection gains too little.
LEAST_GAIN = 3

#: Where no fit follows, less is enough for rows of so many features up to those that have all choices, and half of
#: the features are few enough.
MIDDLING = 64
NEARLY_ENOUGH = 0.8

#: Not if what it leaves out is 0 or nearly so in most rows and large in some, which may be what tells clusters
#: apart: mean of fourth powers over squared mean of squares, which is 3 of normal numbers.
SPARSE = 12.0

#: Dimensions for each of few clusters, whose means differ in C - 1 directions at most, and what these have to keep
#: of the variance: where they keep little, others may be what tells clusters apart.
FOR_EACH = 1.5
ENOUGH_FOR_FEW = 0.5

#: Up to so many rows a cluster, means are off by a thousandth of the error or more, fewer directions by no more.
FEW_ROWS = 1024

#: Rows looked at to find the directions, and directions beyond those wanted that make the search for them robust.
SAMPLE = 2048
SPARE = 8

#: Up to so many features, all directions are found from the scatter of the sample as a whole, where a fit follows.
FEW_FEATURES = 128


def leading_directions(points: LocalPoints, weights: np.ndarray, rng: np.random.Generator) -> np.ndarray | None:
    """Orthonormal directions (D, d) of largest weighted variance; None where a projection does not pay.

    Parameters
    ----------
    points : LocalPoints
    weights : (N',) float64
    rng : numpy Generator
    """
    rows = draw_sample(len(points), points.n_features, rng)
    if rows is None:
        return None
    sample = _sampled(points, weights, rows)
    if points.n_features > FEW_FEATURES:
        return directions_of_sample(sample, points.n_features, points.frame.dtype, rng)
    return directions_of_scatter(sample.scatter(), points.frame.dtype)


def directions_alone(
    points: LocalPoints, weights: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray | None, bool]:
    """As `leading_directions`, where no fit follows: there rows of middling width are content with less.

    Parameters
    ----------
    points, weights, rng : as in `leading_directions`

    Returns
    -------
    directions : (D, d) float, or None
    pay_in_fits : bool
        Whether so many of them would pay in a fit too.
    """
    n_features = points.n_features
    if n_features < MIDDLING or len(choices_for(n_features)) == len(CHOICES):
        leading = leading_directions(points, weights, rng)
        return leading, leading is not None
    rows = draw_sample(len(points), n_features, rng)
    if rows is None:
        return None, False
    sample = _sampled(points, weights, rows)
    scatter = sample.scatter()
    total = float(np.trace(scatter))
    choices = [d for d in CHOICES if 2 * d <= min(n_features, len(rows))]
    if not total > 0.0 or cannot_pay(scatter, choices, NEARLY_ENOUGH):
        return None, False
    variances, directions = (found[..., ::-1] for found in np.linalg.eigh(scatter))
    of_fits = size_that_pays(variances, total, n_features)
    enough = of_fits or least_that_keeps(ENOUGH, choices, variances, total)
    size = enough or least_that_keeps(NEARLY_ENOUGH, choices, variances, total)
    if size is None:
        return None, False
    leading = np.ascontiguousarray(directions[:, :size], dtype=points.frame.dtype)
    if of_fits is None and sample.tails_beyond(leading) >= SPARSE:
        return None, False
    return leading, of_fits is not None


def directions_for_few(
    points: LocalPoints, weights: np.ndarray, n_clusters: int, rng: np.random.Generator
) -> np.ndarray | None:
    """Directions (D, d) of very wide rows that are enough for few clusters, and found in fewer rows.

    None where there would be no fewer than `leading_directions` takes, where they keep too little, or where rows
    are so many that more could be told from them.

    Parameters
    ----------
    points : LocalPoints
    weights : (N',) float64
    n_clusters : int
    rng : numpy Generator
    """
    fewer = [d for d in CHOICES[:-1] if d >= FOR_EACH * n_clusters]
    if not fewer or len(choices_for(points.n_features)) < len(CHOICES) or len(points) > FEW_ROWS * n_clusters:
        return None
    most = fewer[0]
    rows = draw_sample(len(points), points.n_features, rng, SAMPLE * most // CHOICES[-1])
    if rows is None:
        return None
    sample = _sampled(points, weights, rows)
    total = sample.total
    if not total > 0.0:
        return None
    variances, directions = principal_directions(sample, most + SPARE, points.frame.dtype, rng)
    kept = np.cumsum(variances) / total
    if kept[most - 1] < ENOUGH_FOR_FEW:
        return None
    size = next((d for d in CHOICES if d < most and kept[d - 1] >= ENOUGH), most)
    return np.ascontiguousarray(directions[:, :size])


def _sampled(points: LocalPoints, weights: np.ndarray, rows: np.ndarray) -> RowSample:
    """Some points (n,) int64 as a sample."""
    return RowSample(points.take_together(rows), weights[rows] / weights[rows].sum(), points.workers)


def draw_sample(n_points: int, n_features: int, rng: np.random.Generator, most: int = SAMPLE) -> np.ndarray | None:
    """Rows (n,) int64 in which directions are looked for, all over the points; None where there are too few."""
    n = min(n_points, most)
    if n < rows_for_directions(n_features):
        return None
    return np.minimum(((np.arange(n) + rng.random(n)) * (n_points / n)).astype(np.int64), n_points - 1)


def directions_of_scatter(scatter: np.ndarray, dtype: np.dtype) -> np.ndarray | None:
    """Directions (D, d) of largest variance from the scatter (D, D) of a sample, or None."""
    choices = choices_for(len(scatter))
    if len(choices) < len(CHOICES) and cannot_pay(scatter, choices, ENOUGH):
        return None
    variances, directions = np.linalg.eigh(scatter)
    size = size_that_pays(variances[::-1], float(np.trace(scatter)), len(scatter))
    return None if size is None else np.ascontiguousarray(directions[:, ::-1][:, :size], dtype=dtype)


def directions_of_sample(
    sample: Sample, n_features: int, dtype: np.dtype, rng: np.random.Generator
) -> np.ndarray | None:
    """Directions (D, d) of largest variance from products with a sample, or None.

    Parameters
    ----------
    sample : Sample
    n_features : int
        D.
    dtype : dtype
        Of the directions.
    rng : numpy Generator
    """
    total = sample.total
    if not total > 0.0:
        return None
    wanted = min(choices_for(n_features)[-1] + SPARE, n_features)
    variances, directions = principal_directions(sample, wanted, dtype, rng)
    size = size_that_pays(variances, total, n_features)
    return None if size is None else np.ascontiguousarray(directions[:, :size])


def principal_directions(
    sample: Sample, wanted: int, dtype: np.dtype, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Variances (d,), largest first, and directions (D, d) that come near the principal ones of a sample.

    Sums of rows with random signs lie mostly in the directions wanted, and more so after one step of subspace
    iteration.

    Parameters
    ----------
    sample : Sample
    wanted : int
        d, `SPARE` of which are there to make the others right.
    dtype : dtype
        Of the directions.
    rng : numpy Generator
    """
    signs = rng.choice(np.array([-1, 1], dtype), len(sample))
    basis = np.linalg.qr(sample.scatter_times(np.ascontiguousarray(sample.sums(signs, wanted).T)))[0]
    variances, turn = np.linalg.eigh(sample.scatter_within(basis))
    return variances[::-1], basis @ turn[:, ::-1]


def choices_for(n_features: int) -> list[int]:
    """Numbers of dimensions that are few enough beside so many features; none, where no projection can pay."""
    return [d for d in CHOICES if LEAST_GAIN * d <= n_features]


def rows_for_directions(n_features: int) -> float:
    """How many rows a sample must have at least to tell directions; infinite where there are none to be told."""
    choices = choices_for(n_features)
    return 2 * choices[-1] if choices else math.inf


def cannot_pay(scatter: np.ndarray, choices: Sequence[int], enough: float) -> bool:
    """Whether it can be told without eigenvalues that no number of directions of a scatter (D, D) keeps enough.

    The sum of the k largest is at most the root of k times the sum of all squares.
    """
    return math.sqrt(choices[-1]) * float(np.linalg.norm(scatter)) < enough * float(np.trace(scatter))


def size_that_pays(variances: np.ndarray, total: float, n_features: int) -> int | None:
    """How many of the leading directions are taken; None where a projection does not pay.

    Parameters
    ----------
    variances : (k,) float, largest first
    total : float
        Sum of all variances.
    n_features : int
    """
    choices = choices_for(n_features)
    if not total > 0.0 or not choices:
        return None
    size = least_that_keeps(ENOUGH, choices, variances, total)
    return choices[-1] if size is None and len(choices) == len(CHOICES) else size


def least_that_keeps(enough: float, choices: Sequence[int], variances: np.ndarray, total: float) -> int | None:
    """The first of some numbers of leading directions that keeps so much of all variance, if any does."""
    kept = np.cumsum(variances)
    return next((d for d in choices if kept[d - 1] >= enough * total), None) if total > 0.0 else None
