"""Lists without repetitions."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def first_distinct(
    ids,
    n_places,
    found,
    count,
    PLACES: tl.constexpr,
    COUNT: tl.constexpr,
    AT_ONCE: tl.constexpr,
):
    """The first `count` different ids of a row, in the order in which they come.

    Parameters
    ----------
    ids : (n, n_places) int, IN, -1: none
    found : (n, count) int, OUT, -1 where a row has fewer
    PLACES, COUNT : constexpr, powers of two from n_places and from count on
    AT_ONCE : constexpr, ids that all are compared with at a time
    """
    here = ids + tl.program_id(0).to(tl.int64) * n_places
    target = found + tl.program_id(0).to(tl.int64) * count
    place = tl.arange(0, PLACES)
    own = tl.load(here + place, mask=place < n_places, other=-1)
    n_before = tl.zeros((PLACES,), tl.int32)
    for begin in range(0, n_places, AT_ONCE):
        earlier = begin + tl.arange(0, AT_ONCE)
        other = tl.load(here + earlier, mask=earlier < n_places, other=-1)
        same = (own[:, None] == other[None, :]) & (earlier[None, :] < place[:, None])
        n_before += tl.sum(same.to(tl.int32), axis=1)
    is_first = ((n_before == 0) & (own >= 0)).to(tl.int32)
    rank = tl.cumsum(is_first, axis=0) - 1
    tl.store(target + rank, own, mask=(is_first > 0) & (rank < count))
    # Places that nobody has come to.
    column = tl.arange(0, COUNT)
    tl.store(target + column, tl.full((COUNT,), -1, found.dtype.element_ty),
             mask=(column >= tl.sum(is_first, axis=0)) & (column < count))  # fmt: skip
