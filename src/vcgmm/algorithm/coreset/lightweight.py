"""Lightweight coresets (Bachem et al. 2018): a weighted sample that stands for all the data.

A row is drawn with probability q = (w / sum w + w d^2 / sum w d^2) / 2, with d its distance to the weighted
mean, and stands for w / (N' q) rows.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np

from ...data import ArrayRows, Rows, Selection
from ...kernels.cells.sorting import fingerprints
from ...parallel import Workers
from ..places import narrowed
from .drawing import Deviations, Draws, draw
from .frame import Moments

#: Rounds of drawing on when a coreset has too few distinct points, each a pass over the rows, before the missing
#: ones are looked up in one more.
EXTRA_ROUNDS = 4

#: Rows that are looked at for each different one that is wanted, until they are found.
LOOKS = (1.25, 4.0, np.inf)

#: Bytes of rows that a thread fetches at once: many calls' worth, and nothing beside the coreset.
FETCHED = 1 << 17

#: How far the sum of all probabilities may be from 1: more is not the rounding of float32, and a pass is repeated.
TOLERANCE = 1e-5


@dataclass(frozen=True)
class Coreset:
    """A weighted sample of rows.

    Attributes
    ----------
    rows : (N',) int or None
        Rows of the data, ascending, none twice; None: all of them.
    source : (N', D) array or Selection
        Those rows, in the data's own dtype; a `Selection` where the data are in memory anyway.
    weights : (N',) float64
        How much of the data each stands for; they sum to the data's weight in expectation.
    """

    rows: np.ndarray | None
    source: np.ndarray | Selection
    weights: np.ndarray

    def __len__(self) -> int:
        """Number of points N'."""
        return len(self.weights)

    @property
    def indices(self) -> np.ndarray:
        """Rows of the data, (N',) int64; a fit does without."""
        return np.arange(len(self)) if self.rows is None else self.rows.astype(np.int64, copy=False)

    @property
    def points(self) -> np.ndarray:
        """The rows as an array: a copy where they are a selection."""
        return self.source if isinstance(self.source, np.ndarray) else self.source[:]


def lightweight_coreset(
    rows: Rows,
    moments: Moments,
    weights: np.ndarray | None,
    size: int,
    rng: np.random.Generator,
    n_distinct: int,
    workers: Workers,
    advance: Callable[[int], None],
    deviations_of: Deviations | None = None,
) -> Coreset:
    """Draw a coreset, in one pass over the rows, or a few where it lacks different points.

    Parameters
    ----------
    rows : Rows
    moments : Moments
    weights : (N,) float64 or None
        None: those that the rows come with, if any.
    size : int
        Number of draws N'.  Rows drawn more than once appear once, with their weights added.
    rng : numpy Generator
    n_distinct : int
        Draw on until there are this many different points, if the data has them.
    workers : Workers
    advance : callable
        Told how many rows have been read since the last call.
    deviations_of : callable, optional
        As in `drawing.draw`.

    Returns
    -------
    Coreset
    """

    def draw_more(size: int, spread: float) -> tuple[Draws, float]:
        numbers = rng.random(size)
        numbers.sort()
        drawn, total = draw(rows, moments, weights, numbers, spread, workers, advance, deviations_of)
        if abs(total - 1.0) > TOLERANCE:  # the spread was mostly rounding: take what this pass has found instead
            spread *= 2.0 * total - 1.0
            drawn, _ = draw(rows, moments, weights, numbers, spread, workers, advance, deviations_of)
        return drawn, spread

    drawn, spread = draw_more(size, moments.spread)
    for _ in range(EXTRA_ROUNDS):
        complete = count_distinct(drawn.points, n_distinct) >= n_distinct
        if complete or len(drawn.indices) == moments.n_usable:
            break
        more, spread = draw_more(max(size, n_distinct), spread)
        drawn = drawn.and_also(more)
    else:
        complete = count_distinct(drawn.points, n_distinct) >= n_distinct
    weights_drawn = drawn.counts * drawn.masses / (drawn.size * drawn.probabilities)
    chosen, source = narrowed(drawn.indices, rows.n_samples), drawn.points
    if isinstance(source, Selection):
        source = replace(source, indices=chosen)
    coreset = Coreset(chosen, source, weights_drawn)
    return coreset if complete else _add_unseen(rows, weights, coreset, n_distinct, advance)


def all_rows(rows: Rows, weights: np.ndarray | None) -> Coreset:
    """The data itself as a coreset, in memory, without rows of weight zero."""
    if weights is None and rows.weighted:
        weights = np.concatenate([part.own_weights for part in rows.parts() if part.own_weights is not None])
    points = rows.all()
    if weights is None:
        return Coreset(None, points, np.ones(len(points)))
    indices = np.flatnonzero(weights)
    if len(indices) == len(points):
        return Coreset(None, points, weights.copy())
    return Coreset(indices, Selection(points, indices) if rows.at_hand else points[indices], weights[indices])


def in_memory(coreset: Coreset, workers: Workers) -> Coreset:
    """The same coreset with rows of its own."""
    source = coreset.source
    if not isinstance(source, Selection):
        return coreset
    points = np.empty((len(source), source.array.shape[1]), source.array.dtype)
    step = rows_at_once(points.shape[1] * points.itemsize)

    def work(_thread: int, first: int, last: int) -> None:
        for i in range(first, last):
            part = slice(i * step, (i + 1) * step)
            points[part] = source[part]

    workers.run(work, -(-len(source) // step))
    return replace(coreset, source=points)


def rows_at_once(row_bytes: int) -> int:
    """How many rows of so many bytes a thread fetches at once."""
    return max(1, FETCHED // max(1, row_bytes))


def row_hashes(points: np.ndarray) -> np.ndarray:
    """A fingerprint per row, in bounded memory."""
    out = np.empty(len(points), np.int64)
    source = ArrayRows(points)
    for i in range(source.n_blocks):
        first, last = source.bounds(i)
        block = source.block(i).astype(np.float64) + 0.0  # -0.0 equals 0.0
        fingerprints(block.view(np.int64), out[first:last])
    return out


def count_distinct(points: np.ndarray | Selection, enough: int) -> int:
    """Number of different rows, or any number from `enough` on once so many have been seen.

    Up to a 2^-64 chance of a clash of two.
    """
    n_distinct, last = 0, 0
    for share in LOOKS:  # most data show enough of them in a part of their rows
        step = max(1, int(len(points) // (share * enough)))
        if n_distinct < enough and step != last:
            n_distinct, last = len(np.unique(row_hashes(points[::step]))), step
    return n_distinct


def _add_unseen(
    rows: Rows, weights: np.ndarray | None, coreset: Coreset, n_distinct: int, advance: Callable[[int], None]
) -> Coreset:
    """Add rows that no draw has met, each with its own weight, until there are `n_distinct` different points."""
    seen = np.unique(row_hashes(coreset.points))
    pieces = [coreset]
    with closing(rows.parts()) as parts:
        for part in parts:
            mass = part.weights(weights)
            candidates = np.arange(len(part)) if mass is None else np.flatnonzero(mass)
            hashes, firsts = np.unique(row_hashes(part.rows[candidates]), return_index=True)
            unseen = np.sort(candidates[firsts[~np.isin(hashes, seen)]])[: n_distinct - len(seen)]
            if len(unseen):
                points = np.ascontiguousarray(part.rows[unseen])
                seen = np.union1d(seen, row_hashes(points))
                pieces.append(
                    Coreset(part.first + unseen, points, np.ones(len(unseen)) if mass is None else mass[unseen])
                )
            advance(len(part))
            if len(seen) >= n_distinct:
                break
    indices = np.concatenate([piece.indices for piece in pieces])
    order = np.argsort(indices, kind="stable")
    return Coreset(
        indices[order],
        np.concatenate([piece.points for piece in pieces])[order],
        np.concatenate([piece.weights for piece in pieces])[order],
    )
