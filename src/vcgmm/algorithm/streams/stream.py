"""A stream of rows in bounded memory: merge and reduce (Har-Peled and Mazumdar 2004).

Rows are kept as they come until there are twice as many as a coreset has points; then a coreset takes their place.
Coresets that stand for as many rows are merged in pairs and reduced, like the carries of a binary number, so there
is at most one of each level, and a row passes a number of reductions that grows with the logarithm of the stream.
What early reductions add to the variance of any sum is small beside the last: all of them make it at most twice
that of one coreset drawn from all rows at once (docs/math.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ...parallel import Workers
from ..random import generator
from .merging import Weighted, merge, reduce

#: What its random numbers are for, beside the purposes of `attempts` and `row_search`.
STREAM = 17


@dataclass(frozen=True)
class Stream:
    """How the points that are kept of a stream are divided into coresets.

    Attributes
    ----------
    seed : int
    levels : tuple of int
        Of each coreset, in the order in which their points lie: 0 for rows as they came, else about log2 of how
        many times more rows it stands for than it has points.
    lengths : tuple of int
        Points of each.
    n_rows : int
        Rows seen.
    n_reductions : int
        Coresets drawn so far: each has random numbers of its own.
    scatter : float
        Scatter of all rows about their means when EM last ran on all that is kept: once it has grown, EM is due.
    """

    seed: int
    levels: tuple[int, ...] = ()
    lengths: tuple[int, ...] = ()
    n_rows: int = 0
    n_reductions: int = 0
    scatter: float = 0.0


def begin(seed: int, n_points: int, n_rows: int, size: int | None, scatter: float) -> Stream:
    """A stream that goes on from a coreset of `n_points` points that stands for `n_rows` rows."""
    raw = size is None or n_points < 2 * size
    level = 0 if raw or size is None else max(1, math.floor(math.log2(max(n_rows, n_points) / size)))
    return Stream(seed, (level,), (n_points,), n_rows, scatter=scatter)


def absorb(
    stream: Stream,
    kept: Weighted | None,
    block: Weighted,
    n_rows: int,
    size: int | None,
    n_distinct: int,
    workers: Workers,
) -> tuple[Stream, Weighted]:
    """Take in a block of rows.

    Parameters
    ----------
    stream : Stream
    kept : points (n, D) and weights (n,), or None
        All that is kept of the stream.
    block : points (m, D) and weights (m,)
    n_rows : int
        Rows that the block stands for.
    size : int or None
        Points of a coreset; None: every row is kept.
    n_distinct : int
        A coreset has so many different points, if what it is drawn from has.
    workers : Workers

    Returns
    -------
    stream : Stream
    kept : points and weights
        Copies: the block may be overwritten.
    """
    parts = _split(stream, kept)
    carried = merge([parts.pop(0), block] if 0 in parts else [block])
    level = 0
    n_reductions = stream.n_reductions

    def shrink(many: Weighted) -> Weighted:
        nonlocal n_reductions
        rng = generator(stream.seed, STREAM, n_reductions)
        n_reductions += 1
        drawn = reduce(*many, size or 0, rng, workers, n_distinct)
        return drawn.points, drawn.weights

    if size is not None and len(carried[1]) >= 2 * size:
        level = math.floor(math.log2(len(carried[1]) / size))
        carried = shrink(carried)
        while level in parts:
            carried = shrink(merge([parts.pop(level), carried]))
            level += 1
    parts[level] = carried
    levels = sorted(parts, reverse=True)
    after = replace(
        stream,
        levels=tuple(levels),
        lengths=tuple(len(parts[level][1]) for level in levels),
        n_rows=stream.n_rows + n_rows,
        n_reductions=n_reductions,
    )
    return after, merge([parts[level] for level in levels])


def _split(stream: Stream, kept: Weighted | None) -> dict[int, Weighted]:
    """The coresets of a stream by level, at most one of each; views of what is kept."""
    if kept is None:
        return {}
    ends = np.cumsum(stream.lengths)
    pieces = zip(stream.levels, stream.lengths, ends, strict=True)
    return {level: (kept[0][end - n : end], kept[1][end - n : end]) for level, n, end in pieces}
