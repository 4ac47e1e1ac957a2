"""What kernels that work on tiles of points begin with: which points, and which centres they look at."""

from __future__ import annotations

import triton
import triton.language as tl

from .selection import NOWHERE


@triton.jit
def this_tile(tiles):
    """Number, cell, first place and the one behind the last of this program's tile; no less if it is empty.

    `tiles` are those of `search.search_tiles`.
    """
    tile = tl.program_id(0).to(tl.int64)
    return tile, tl.load(tiles + tile * 3), tl.load(tiles + tile * 3 + 1), tl.load(tiles + tile * 3 + 2)


@triton.jit
def points_of(order, first, last, PER_ROW: tl.constexpr, POINTS: tl.constexpr):
    """Places (POINTS,) of a tile, whether they are in it, and the rows there; PER_ROW as in `search_tiles`."""
    place = first + tl.arange(0, POINTS)
    inside = place < last
    return place, inside, tl.load(order + place, mask=inside, other=0) // PER_ROW


@triton.jit
def list_of(list_start, cell):
    """Where the list of a cell begins, and how long it is, int32."""
    begun = tl.load(list_start + cell)
    return begun, (tl.load(list_start + cell + 1) - begun).to(tl.int32)


@triton.jit
def nearest_so_far(costs, slot, nearest, least):
    """The nearest (P,) of all so far and its cost, of which among equals the first.

    Parameters
    ----------
    costs : (P, K) float32, those of some more
    slot : (K,) int32, their places, behind all before
    nearest, least : (P,) int32 and float32
    """
    here = tl.min(costs, axis=1)
    at = tl.min(tl.where(costs == here[:, None], slot[None, :], NOWHERE), axis=1)
    return tl.where(here < least, at, nearest), tl.minimum(least, here)
