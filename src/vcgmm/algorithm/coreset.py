"""Lightweight coresets (Bachem et al. 2018): a weighted sample that stands for all the data.

A row is drawn with probability q = (w / sum w + w d^2 / sum w d^2) / 2, with d its distance to the weighted
mean, and stands for w / (N' q) rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..data import ArrayRows
from ..kernels.sorting import fingerprints
from .frame import Moments

#: Rounds of drawing on when a coreset has too few distinct points, before the missing ones are looked up.
EXTRA_ROUNDS = 16


@dataclass(frozen=True)
class Coreset:
    """A weighted sample of rows.

    Attributes
    ----------
    indices : (N',) int64
        Rows of the data, ascending, none twice.
    points : (N', D) array
        Those rows, in the data's own dtype.
    weights : (N',) float64
        How much of the data each stands for; they sum to the data's weight in expectation.
    """

    indices: np.ndarray
    points: np.ndarray
    weights: np.ndarray

    def __len__(self) -> int:
        """Number of points N'."""
        return len(self.indices)


def sampling_probabilities(moments: Moments, weights: np.ndarray | None) -> np.ndarray:
    """q(n) of every row; where all rows are equal, proportional to their weights."""
    spread = moments.total_variance * moments.total_weight
    if spread <= 0.0:
        equal = np.ones(len(moments.deviations)) if weights is None else weights
        return equal / moments.total_weight
    probabilities = moments.deviations * (0.5 / spread)  # one array of length N, changed in place
    probabilities += 0.5 / moments.total_weight
    if weights is not None:
        probabilities *= weights
    return probabilities


def draw(probabilities: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Indices of `size` independent draws, ascending, repeated as often as drawn."""
    running = np.cumsum(probabilities)
    places = np.searchsorted(running, np.sort(rng.random(size)) * running[-1], side="right")
    # Rounding may point just past the last row that has any probability.
    last = len(probabilities) - 1 - int(np.argmax(probabilities[::-1] > 0))
    return np.minimum(places, last)


def lightweight_coreset(
    rows: ArrayRows,
    moments: Moments,
    weights: np.ndarray | None,
    size: int,
    rng: np.random.Generator,
    n_distinct: int = 1,
) -> Coreset:
    """Draw a coreset.

    Parameters
    ----------
    rows : ArrayRows
    moments : Moments
    weights : (N,) float64 or None
    size : int
        Number of draws N'.  Rows drawn more than once appear once, with their weights added.
    rng : numpy Generator
    n_distinct : int
        Draw on until there are this many different points, if the data has them.

    Returns
    -------
    Coreset
    """
    probabilities = sampling_probabilities(moments, weights)
    drawn = draw(probabilities, size, rng)
    indices = np.unique(drawn)
    for _ in range(EXTRA_ROUNDS):
        if count_distinct(rows.take(indices), n_distinct) >= n_distinct or len(indices) == np.count_nonzero(
            probabilities
        ):
            break
        drawn = np.concatenate([drawn, draw(probabilities, max(size, n_distinct), rng)])
        indices = np.unique(drawn)
    indices, counts = np.unique(drawn, return_counts=True)
    mass = 1.0 if weights is None else weights[indices]
    coreset_weights = counts * mass / (len(drawn) * probabilities[indices])
    if n_distinct > 1 and count_distinct(rows.take(indices), n_distinct) < n_distinct:
        every = np.ones(rows.n_samples) if weights is None else weights
        indices, coreset_weights = _add_unseen(rows, every, indices, coreset_weights, n_distinct)
    return Coreset(indices, rows.take(indices), coreset_weights)


def all_rows(rows: ArrayRows, weights: np.ndarray | None) -> Coreset:
    """The data itself as a coreset, without rows of weight zero."""
    if weights is None:
        return Coreset(np.arange(rows.n_samples), rows.array, np.ones(rows.n_samples))
    indices = np.flatnonzero(weights)
    points = rows.array if len(indices) == rows.n_samples else rows.take(indices)
    return Coreset(indices, points, weights[indices])


def row_hashes(points: np.ndarray) -> np.ndarray:
    """A fingerprint per row, in bounded memory."""
    out = np.empty(len(points), np.int64)
    source = ArrayRows(points)
    for i in range(source.n_blocks):
        first, last = source.bounds(i)
        block = source.block(i).astype(np.float64) + 0.0  # -0.0 equals 0.0
        fingerprints(block.view(np.int64), out[first:last])
    return out


def count_distinct(points: np.ndarray, enough: int) -> int:
    """Number of different rows, or any number from `enough` on once so many have been seen.

    Up to a 2^-64 chance of a clash of two.
    """
    step = max(1, len(points) // (4 * enough))  # most data show enough of them in a part of their rows
    n_distinct = len(np.unique(row_hashes(points[::step])))
    if n_distinct >= enough or step == 1:
        return n_distinct
    return len(np.unique(row_hashes(points)))


def _add_unseen(
    rows: ArrayRows, mass: np.ndarray, indices: np.ndarray, weights: np.ndarray, n_distinct: int
) -> tuple[np.ndarray, np.ndarray]:
    """Add rows that no draw has met, each with its own weight, until there are `n_distinct` different points."""
    candidates = np.flatnonzero(mass)
    hashes, firsts = np.unique(row_hashes(rows.array)[candidates], return_index=True)
    unseen = np.sort(candidates[firsts[~np.isin(hashes, row_hashes(rows.take(indices)))]])
    missing = n_distinct - (len(hashes) - len(unseen))
    added = unseen[: max(0, missing)]
    indices = np.concatenate([indices, added])
    order = np.argsort(indices, kind="stable")
    return indices[order], np.concatenate([weights, mass[added]])[order]
