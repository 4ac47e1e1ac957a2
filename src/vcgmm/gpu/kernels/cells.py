"""Groups cut into pieces, without asking the device how many there are."""

from __future__ import annotations

import triton
import triton.language as tl

from .launching import launched


@triton.jit
def members_before(start, group, n_groups, HALVES: tl.constexpr):
    """How many members the groups before this one have.

    With HALVES some of a group's members are start[group]..start[group + 1] - 1, and the others are found in the
    same way n_groups farther on.
    """
    before = tl.load(start + group)
    if HALVES:
        before += tl.load(start + n_groups + group) - tl.load(start + n_groups)
    return before


@triton.jit
def first_piece(start, group, size, n_groups, HALVES: tl.constexpr):
    """The number of the first piece of a group, of members as in `members_before`.

    No group before it has more pieces than this allows for, so no sum over them is needed; numbers that are left
    over between two groups are of pieces that hold nothing.
    """
    return members_before(start, group, n_groups, HALVES) // size + group


@triton.jit
def members_of(start, n_groups, size, piece, STEPS: tl.constexpr, HALVES: tl.constexpr):
    """The group of a piece, or of some, its first member and the one behind the last: no less if it is empty.

    `start`, `n_groups`, `size` and STEPS are those of `fill_pieces`; members are counted from the first group on.
    """
    low = piece * 0
    high = low + n_groups
    for _ in range(STEPS):  # bisection: the last group whose first piece is not behind this one
        middle = (low + high) // 2
        begun = first_piece(start, middle, size, n_groups, HALVES) <= piece
        low, high = tl.where(begun, middle, low), tl.where(begun, high, middle)
    first = members_before(start, low, n_groups, HALVES)
    first += (piece - first_piece(start, low, size, n_groups, HALVES)) * size
    return low, first, tl.minimum(first + size, members_before(start, low + 1, n_groups, HALVES))


@launched
@triton.jit
def fill_pieces(start, n_groups, size, n_pieces, pieces, STEPS: tl.constexpr, PIECES: tl.constexpr):
    """The group of every piece and its members.

    Parameters
    ----------
    start : (n_groups + 1,) int64, IN, members of each group
    size : int, IN, members of a piece
    pieces : (n_pieces, 3) int64, OUT, group, first member and the one behind the last; no less for those without
    STEPS : constexpr, 2^STEPS is more than n_groups
    """
    piece = tl.program_id(0).to(tl.int64) * PIECES + tl.arange(0, PIECES)
    group, first, last = members_of(start, n_groups, size, piece, STEPS, False)
    inside = piece < n_pieces
    tl.store(pieces + piece * 3, group, mask=inside)
    tl.store(pieces + piece * 3 + 1, first, mask=inside)
    tl.store(pieces + piece * 3 + 2, last, mask=inside)
