"""Members by group in the order in which they came: a sort by counting, in three kernels.

The host tells the device of three kernels faster than of a radix sort, which is ten.  All counts are integers, so
whoever is first makes no difference.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .launching import launched


@launched
@triton.jit
def rank_in_tiles(
    labels,
    stride,
    n,
    n_groups,
    counts,
    width,
    ranks,
    n_done,
    TILE: tl.constexpr,
    CHUNK: tl.constexpr,
    CLEARED: tl.constexpr,
):
    """How many members of its group each one has before it in its tile, and how many there are; a program a tile.

    Some members at a time are compared with one another; how many there were before is kept in memory.

    Parameters
    ----------
    labels : (n,) int, IN, `stride` apart; from n_groups on all are the same
    counts : (n_tiles, width) int32, OUT, members of every group, and of none, in each tile; width > n_groups
    ranks : (n,) int32, OUT
    n_done : (1,) int32, OUT, 0
    TILE, CHUNK : constexpr, members of a tile, and at a time
    CLEARED : constexpr, counts that are set to 0 at a time
    """
    tile = tl.program_id(0).to(tl.int64)
    if tile == 0:
        tl.store(n_done, 0)
    row = counts + tile * width
    for begin in range(0, width, CLEARED):
        group = begin + tl.arange(0, CLEARED)
        tl.store(row + group, tl.zeros((CLEARED,), tl.int32), mask=group < width)
    tl.debug_barrier()
    here = tl.arange(0, CHUNK)
    for begin in range(0, TILE, CHUNK):
        place = tile * TILE + begin + here
        inside = place < n
        label = tl.load(labels + place * stride, mask=inside, other=0).to(tl.int32)
        label = tl.where(inside, tl.minimum(label, n_groups), -1)
        before = tl.load(row + label, mask=inside, other=0)
        # Those before it count for both halves of a number, all for the lower one.
        weight = tl.where(here[None, :] < here[:, None], 65537, 1)
        same = tl.sum(tl.where(label[None, :] == label[:, None], weight, 0), axis=1)
        tl.store(ranks + place, before + (same >> 16), mask=inside)
        tl.debug_barrier()  # all have read what is overwritten now
        tl.store(row + label, before + (same & 65535), mask=inside)  # all of a group the same
        tl.debug_barrier()


@launched
@triton.jit
def begin_groups(
    counts,
    n_tiles,
    width,
    n_groups,
    start,
    n_done,
    TILES: tl.constexpr,
    GROUPS: tl.constexpr,
    AT_ONCE: tl.constexpr,
):
    """Where the members of every group begin, and those of each tile among them; some groups a program.

    The program that is the last to be done adds up what all have counted.

    Parameters
    ----------
    counts : (n_tiles, width) int32, IN as of `rank_in_tiles`, OUT members of the group in all tiles before
    start : (n_groups + 1,) int64, OUT
    n_done : (1,) int32, IN and OUT, programs that are done
    TILES, GROUPS : constexpr, tiles and groups that are looked at at a time
    AT_ONCE : constexpr, groups that the last program looks at at a time
    """
    group = tl.program_id(0) * GROUPS + tl.arange(0, GROUPS)
    total = tl.zeros((GROUPS,), tl.int32)
    for begin in range(0, n_tiles, TILES):
        tile = begin + tl.arange(0, TILES).to(tl.int64)
        mask = (tile < n_tiles)[:, None] & (group < width)[None, :]
        place = counts + tile[:, None] * width + group[None, :]
        count = tl.load(place, mask=mask, other=0)
        tl.store(place, total[None, :] + tl.cumsum(count, axis=0) - count, mask=mask)
        total += tl.sum(count, axis=0)
    tl.store(start + 1 + group, total.to(tl.int64), mask=group < n_groups)
    tl.debug_barrier()
    if tl.atomic_add(n_done, 1, sem="acq_rel") == tl.num_programs(0) - 1:
        tl.store(start, tl.zeros((), tl.int64))
        before = tl.zeros((), tl.int64)
        for begin in range(0, n_groups, AT_ONCE):
            other = begin + tl.arange(0, AT_ONCE)
            found = tl.load(start + 1 + other, mask=other < n_groups, other=0, cache_modifier=".cg")
            tl.store(start + 1 + other, before + tl.cumsum(found, axis=0), mask=other < n_groups)
            before += tl.sum(found, axis=0)


@launched
@triton.jit
def put_by_group(
    labels, stride, n, n_groups, counts, width, ranks, start, order, TILE: tl.constexpr, MEMBERS: tl.constexpr
):
    """Every member to its place.

    Parameters
    ----------
    labels, stride, n, n_groups, width, ranks : IN, as in `rank_in_tiles`
    counts, start : IN, from `begin_groups`
    order : (n,) int64, OUT
    """
    place = tl.program_id(0).to(tl.int64) * MEMBERS + tl.arange(0, MEMBERS)
    inside = place < n
    label = tl.minimum(tl.load(labels + place * stride, mask=inside, other=0).to(tl.int32), n_groups)
    target = tl.load(start + label, mask=inside, other=0) + tl.load(ranks + place, mask=inside, other=0)
    target += tl.load(counts + place // TILE * width + label, mask=inside, other=0)
    tl.store(order + target, place, mask=inside)
