"""Coresets drawn where the partitions lie.

The same draws as `algorithm.coreset.lightweight`, from the same random numbers: the client knows how much
probability each partition has, so it knows which of its sorted uniform numbers fall into which; only these go out,
and only what they meet is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from ..algorithm.coreset.drawing import Probabilities
from ..algorithm.coreset.frame import Moments
from ..algorithm.coreset.lightweight import EXTRA_ROUNDS, row_hashes
from .moments import Spread, deviations_from
from .partitions import Partitions
from .pieces import Piece, Pieces
from .transport import PIECE_BYTES, hand_out


def all_rows(partitions: Partitions, bring: bool, n_distinct: int) -> Pieces:
    """The data itself as a coreset, without rows of weight zero; `bring` and `n_distinct` as for `Pieces`."""
    futures = partitions.tasks(take_all, own=_firsts(partitions))
    return Pieces(partitions.client, futures, bring, partitions.n_samples, n_distinct)


def lightweight_coreset(
    partitions: Partitions, spread: Spread, size: int, rng: np.random.Generator, bring: bool, n_distinct: int
) -> Pieces:
    """Draw a coreset.

    Parameters
    ----------
    partitions : Partitions
    spread : Spread
    size : int
        Number of draws N'.  Rows drawn more than once appear once, with their weights added.
    rng : numpy Generator
    bring : bool
        Whether its points come to the client.
    n_distinct : int
        Draw on until there are this many different points, if the data has them.
    """
    draws = np.sort(rng.random(size))
    for _ in range(EXTRA_ROUNDS):
        pieces = _take(partitions, spread, draws, bring, n_distinct)
        if len(pieces) == spread.moments.n_usable or pieces.n_distinct() >= n_distinct:
            return pieces
        draws = np.sort(np.concatenate([draws, rng.random(max(size, n_distinct))]))
    pieces = _take(partitions, spread, draws, bring, n_distinct)
    return pieces if pieces.n_distinct() >= n_distinct else _add_unseen(partitions, pieces, bring, n_distinct)


def partition_probabilities(spread: Spread) -> np.ndarray:
    """How much of q(n) lies in each partition, (P,); where all rows are equal, in proportion to their weights."""
    total, deviation = spread.moments.total_weight, float(spread.deviations.sum())
    if deviation <= 0.0:
        return spread.weights / total
    return 0.5 * spread.weights / total + 0.5 * spread.deviations / deviation


def take_all(block: np.ndarray, weights: np.ndarray | None, first: int) -> Piece:
    """All rows of a partition that have any weight."""
    if weights is None:
        return Piece(np.arange(first, first + len(block)), block, np.ones(len(block)))
    rows = np.flatnonzero(weights)
    return Piece(first + rows, block if len(rows) == len(block) else block[rows], weights[rows])


def take_drawn(
    block: np.ndarray,
    weights: np.ndarray | None,
    first: int,
    numbers: np.ndarray,
    moments: Moments,
    spread: float,
    n_draws: int,
) -> Piece:
    """The rows of a partition that draws have met.

    Parameters
    ----------
    block : (n, D) array
    weights : (n,) float64 or None
    first : int
        Its first row in the collection.
    numbers : array
        Between 0 and its share of the probability, ascending.
    moments : Moments
    spread : float
        As in `Probabilities.of`.
    n_draws : int
        Draws in all partitions.
    """
    probabilities = Probabilities.of(moments, spread)(deviations_from(block, moments), weights)
    running = np.cumsum(probabilities)
    last = int(np.flatnonzero(probabilities)[-1])
    rows, counts = np.unique(np.minimum(np.searchsorted(running, numbers, side="right"), last), return_counts=True)
    mass = 1.0 if weights is None else weights[rows]
    return Piece(first + rows, np.ascontiguousarray(block[rows]), counts * mass / (n_draws * probabilities[rows]))


def unseen_in(
    block: np.ndarray, weights: np.ndarray | None, first: int, seen: np.ndarray, enough: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Different rows of a partition that no draw has met, in order and at most `enough`: row, hash, weight."""
    candidates = np.arange(len(block)) if weights is None else np.flatnonzero(weights)
    hashes, firsts = np.unique(row_hashes(block[candidates]), return_index=True)
    places = np.sort(firsts[~np.isin(hashes, seen)])[:enough]
    rows = candidates[places]
    return first + rows, row_hashes(block[rows]), np.ones(len(rows)) if weights is None else weights[rows]


def take_rows(
    block: np.ndarray, _weights: np.ndarray | None, first: int, indices: np.ndarray, weights: np.ndarray
) -> Piece:
    """Rows of a partition that are chosen already, with their weights in the coreset."""
    return Piece(indices, np.ascontiguousarray(block[indices - first]), weights)


def _take(partitions: Partitions, spread: Spread, draws: np.ndarray, bring: bool, n_distinct: int) -> Pieces:
    """Send the draws, sorted uniform numbers, to the partitions they fall into."""
    shares = partition_probabilities(spread)
    ends = np.cumsum(shares)
    last = int(np.flatnonzero(shares)[-1])
    cuts = np.searchsorted(draws, ends[:last], side="left")
    own: list[tuple[int, Any] | None] = [None] * len(partitions)
    send = _sender(partitions, draws.nbytes)
    for i, (begin, stop) in enumerate(pairwise([0, *cuts, len(draws)])):
        if begin < stop:
            own[i] = int(partitions.starts[i]), send(draws[begin:stop] - (ends[i - 1] if i else 0.0))
    moments = hand_out(partitions.client, spread.moments)
    futures = partitions.tasks(take_drawn, moments, float(spread.deviations.sum()), len(draws), own=own)
    return Pieces(partitions.client, futures, bring, len(draws), n_distinct)


def _add_unseen(partitions: Partitions, pieces: Pieces, bring: bool, n_distinct: int) -> Pieces:
    """Add rows that no draw has met, each with its own weight, until there are `n_distinct` different points."""
    client, firsts, seen = partitions.client, _firsts(partitions), np.unique(pieces.hashes())
    found = client.gather(partitions.tasks(unseen_in, hand_out(client, seen), n_distinct, own=firsts))
    rows, hashes, weights = (np.concatenate(parts) for parts in zip(*found, strict=True))
    added = np.sort(np.unique(hashes, return_index=True)[1])[: max(0, n_distinct - len(seen))]
    indices = np.concatenate([pieces.indices, rows[added]])
    order = np.argsort(indices, kind="stable")
    indices, weights = indices[order], np.concatenate([pieces.weights, weights[added]])[order]
    send = _sender(partitions, indices.nbytes + weights.nbytes)
    own = [
        (*firsts[i], send(indices[low:high]), send(weights[low:high])) if low < high else None
        for i, (low, high) in enumerate(pairwise(np.searchsorted(indices, partitions.starts)))
    ]
    return Pieces(client, partitions.tasks(take_rows, own=own), bring, len(indices), n_distinct)


def _sender(partitions: Partitions, n_bytes: int) -> Callable[[np.ndarray], Any]:
    """How arrays for partitions go out: few bytes in all with the tasks themselves, more on their own."""
    if n_bytes <= PIECE_BYTES:
        return lambda array: array
    return lambda array: hand_out(partitions.client, array)


def _firsts(partitions: Partitions) -> list[tuple[int]]:
    """First row of every partition, as an argument of its task."""
    return [(int(first),) for first in partitions.starts[:-1]]
