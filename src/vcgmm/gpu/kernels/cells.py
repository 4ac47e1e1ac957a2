"""Groups cut into pieces, without asking the device how many there are."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def count_pieces(start, n_groups, size, counts, GROUPS: tl.constexpr):
    """counts[g + 1] = pieces of at most `size` members in group start[g]..start[g + 1] - 1, and counts[0] = 0."""
    group = tl.program_id(0) * GROUPS + tl.arange(0, GROUPS) - 1
    inside = (group >= 0) & (group < n_groups)
    first = tl.load(start + group, mask=inside, other=0)
    last = tl.load(start + group + 1, mask=inside, other=0)
    tl.store(counts + group + 1, (last - first + size - 1) // size, mask=group < n_groups)


@triton.jit
def fill_pieces(
    start,
    piece_start,
    n_groups,
    size,
    n_pieces,
    piece_group,
    piece_first,
    piece_last,
    STEPS: tl.constexpr,
    PIECES: tl.constexpr,
):
    """The group of every piece and its members; those beyond the last piece have none.

    Parameters
    ----------
    start : (n_groups + 1,) int64, IN, members of each group
    piece_start : (n_groups + 1,) int64, IN, pieces of each group
    size : int, IN
    piece_group : (n_pieces,) int32, OUT
    piece_first, piece_last : (n_pieces,) int64, OUT
    STEPS : constexpr, 2^STEPS is more than n_groups
    """
    piece = tl.program_id(0).to(tl.int64) * PIECES + tl.arange(0, PIECES)
    low = tl.zeros((PIECES,), tl.int64)
    high = tl.zeros((PIECES,), tl.int64) + n_groups
    for _ in range(STEPS):  # bisection: the first group whose pieces end beyond this one
        middle = (low + high) // 2
        open_ = low < high
        ended = tl.load(piece_start + middle + 1, mask=open_, other=0) <= piece
        low, high = tl.where(open_ & ended, middle + 1, low), tl.where(open_ & ~ended, middle, high)
    real = low < n_groups
    begin = tl.load(start + low, mask=real, other=0)
    end = tl.load(start + low + 1, mask=real, other=0)
    first = begin + (piece - tl.load(piece_start + low, mask=real, other=0)) * size
    inside = piece < n_pieces
    tl.store(piece_group + piece, tl.where(real, low, 0).to(tl.int32), mask=inside)
    tl.store(piece_first + piece, tl.where(real, first, 0), mask=inside)
    tl.store(piece_last + piece, tl.where(real, tl.minimum(first + size, end), 0), mask=inside)
