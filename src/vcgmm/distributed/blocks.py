"""What workers do with their points: pure functions of a block, its winners and what the client sends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from ..algorithm.cells.extent import Extent, Rounding
from ..algorithm.cells.natural import Natural
from ..algorithm.cells.neighbourhoods import sort_by_cluster
from ..algorithm.cells.sums import Sums, Totals
from ..algorithm.coreset.frame import Frame
from ..algorithm.estep import scatter_of
from ..algorithm.seeding.afkmc2 import assign
from ..data import ArrayRows
from .pieces import Piece
from .transport import task_threads

Sum = TypeVar("Sum", Totals, Extent)


@dataclass(frozen=True)
class Block:
    """Points of a coreset in local coordinates.

    Attributes
    ----------
    points : (n, D) float32 or float64
    weights : (n,) float64
    """

    points: np.ndarray
    weights: np.ndarray


@dataclass(frozen=True)
class Constants:
    """Numbers that go out with the means.

    Attributes
    ----------
    precision : float
        1 / (2 sigma^2); negative: the nearest takes all.
    rounding : Rounding
        Of the extent of all blocks.
    """

    precision: float
    rounding: Rounding


def make_block(frame: Frame, bounds: Sequence[tuple[int, int]], *pieces: Piece) -> Block:
    """Points from parts of some pieces, in local coordinates; `bounds` are first row and end of each part."""
    size = sum(last - first for first, last in bounds)
    points = np.empty((size, pieces[0].points.shape[1]), frame.dtype)
    weights = np.empty(size)
    filled = 0
    for (first, last), piece in zip(bounds, pieces, strict=True):
        part = ArrayRows(piece.points[first:last])
        weights[filled : filled + last - first] = piece.weights[first:last]
        for i in range(part.n_blocks):
            a, b = part.bounds(i)
            points[filled + a : filled + b] = frame.enter(part.block(i))
        filled += last - first
    return Block(points, weights)


def extent_of(block: Block, n_threads: int | None) -> Extent:
    """What a block adds to the limits of the exact sums."""
    with task_threads(n_threads) as workers:
        return Extent.of(block.points, block.weights, workers)


def assign_block(block: Block, means: np.ndarray, n_threads: int | None) -> tuple[np.ndarray, float]:
    """Nearest of all means to every point, (n,) int32, and the weighted squared distance to it."""
    with task_threads(n_threads) as workers:
        start = assign(block.points, block.weights, means, workers)
    return start.labels, start.error


def first_winners(labels: np.ndarray, truncation: int) -> np.ndarray:
    """Winners of points of which one near cluster is known, (n, C') int32."""
    winners = np.full((len(labels), truncation), -1, np.int32)
    winners[:, 0] = labels
    return winners


def put_in_order(block: Block, winners: np.ndarray, n_clusters: int) -> tuple[Block, np.ndarray]:
    """Points and winners sorted by the nearest cluster: reading rows in sequence is much faster."""
    order, _ = sort_by_cluster(winners, n_clusters)
    return Block(block.points[order], block.weights[order]), winners[order]


def search_block(
    block: Block,
    winners: np.ndarray,
    means: np.ndarray,
    candidates: np.ndarray,
    constants: Constants,
    n_threads: int | None,
) -> tuple[Totals, np.ndarray]:
    """An E-step over a block: its part of the sums, and its new winners."""
    winners = winners.copy()  # the old ones are a task's result, which others may read
    order, start = sort_by_cluster(winners, len(means))
    with task_threads(n_threads) as workers:
        sums = Sums(Natural.shared(means), constants.rounding, workers)
        sums.search(block.points, block.weights, winners, order, start, candidates, constants.precision)
        return sums.totals(), winners


def scatter_block(
    block: Block, winners: np.ndarray, used: np.ndarray, variance: float, means: np.ndarray, n_threads: int | None
) -> float:
    """A block's part of `Search.scatter`."""
    with task_threads(n_threads) as workers:
        return scatter_of(block.points, block.weights, winners, used, variance, means, workers)


def add_all(first: Sum, *others: Sum) -> Sum:
    """Totals, or extents, of several blocks together; the first ones' arrays are left as they are."""
    for other in others:
        first = first + other
    return first
