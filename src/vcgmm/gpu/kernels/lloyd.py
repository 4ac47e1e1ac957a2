"""Lloyd steps inside many cells at once, each by two kernels: sums by tile, then new centres from those."""

from __future__ import annotations

import triton
import triton.language as tl

from .cells import first_piece
from .launching import launched
from .rounding import rounded
from .search import listed_costs
from .selection import NOWHERE
from .tiles import list_of, nearest_so_far, points_of, this_tile


@launched
@triton.jit
def sum_by_nearest(
    points,
    stride,
    n_features,
    scale,
    order,
    tiles,
    origins,
    origin_stride,
    list_start,
    width,
    centres,
    centre_stride,
    weights,
    sums,
    POINTS: tl.constexpr,
    CENTRES: tl.constexpr,
    FEATURES: tl.constexpr,
    GRAIN: tl.constexpr,
    MODE: tl.constexpr,
):
    """Sums of the points of a tile by the nearest of their cell's centres: products with who is nearest to whom.

    Parameters
    ----------
    points, stride, n_features, scale, order, tiles, origins, origin_stride, centres, centre_stride, weights
        IN, as in `search.search_tiles`.
    list_start : (n_cells + 1,) int64, IN, cell i has the centres list_start[i]..list_start[i + 1] - 1
    width : int, IN, centres of the cell that has most
    sums : (n_tiles, width, D + 1) float32, OUT, of weight (y - origin), and of weights
    """
    stride = stride // GRAIN * GRAIN  # that they are multiples, the compiler cannot know
    n_features = n_features // GRAIN * GRAIN
    tile, cell, first, last = this_tile(tiles)
    if first >= last:  # between two cells
        return
    _, inside, row = points_of(order, first, last, 1, POINTS)
    begun, length = list_of(list_start, cell)
    origin = origins + cell * origin_stride
    least = tl.full((POINTS,), float("inf"), tl.float32)
    nearest = tl.full((POINTS,), NOWHERE, tl.int32)
    for block in range(0, length, CENTRES):
        slot = block + tl.arange(0, CENTRES)
        distances = listed_costs(
            points, stride, n_features, scale, row, inside, origin, centres, centre_stride, begun + slot,
            slot < length, centres, centres, POINTS, CENTRES, FEATURES, MODE, "distance",
        )  # fmt: skip
        nearest, least = nearest_so_far(distances, slot, nearest, least)
    weight = tl.load(weights + row, mask=inside, other=0.0)
    for block in range(0, length, CENTRES):
        slot = block + tl.arange(0, CENTRES)
        target = tile * width + slot
        nearest_here = (slot[:, None] == nearest[None, :]).to(tl.float32)
        for begin in range(0, n_features + 1, FEATURES):
            feature = begin + tl.arange(0, FEATURES)
            wide = feature < n_features
            zero = tl.load(origin + feature, mask=wide, other=0.0)[None, :]
            y = tl.load(
                points + row[:, None] * stride + feature[None, :], mask=inside[:, None] & wide[None, :], other=0
            )
            away = tl.where((feature == n_features)[None, :], 1.0, y.to(tl.float32) * scale - zero)
            away *= weight[:, None]
            # In two parts, of which tensor cores lose nothing: a 1 or a 0 has no digits to lose.
            most = rounded(away, "tf32")
            total = tl.dot(nearest_here, most, input_precision="tf32")
            total = tl.dot(nearest_here, away - most, total, input_precision="tf32")
            tl.store(
                sums + target[:, None] * (n_features + 1) + feature[None, :],
                total,
                mask=(slot < length)[:, None] & (feature <= n_features)[None, :],
            )


@launched
@triton.jit
def move_centres(
    sums,
    start,
    size,
    n_features,
    origins,
    origin_stride,
    list_start,
    width,
    centres,
    centre_stride,
    length,
    TILES: tl.constexpr,
    FEATURES: tl.constexpr,
):
    """Centres go towards the weighted means of the points that are nearest to them; those of no point stay.

    Parameters
    ----------
    sums, origins, origin_stride, list_start, width : IN, as in `sum_by_nearest`
    start : (n_cells + 1,) int64, IN, points of each cell, that tiles of `size` were cut from
    centres : (C, D) float32, IN and OUT, rows centre_stride apart
    length : float, IN, how far, as a multiple of the way there
    TILES : constexpr, tiles that are added up at a time
    """
    cell = tl.program_id(0).to(tl.int64)
    slot = tl.program_id(1)
    centre = tl.load(list_start + cell) + slot
    if centre >= tl.load(list_start + cell + 1):
        return
    first = first_piece(start, cell, size, tl.num_programs(0), False)
    n_points = tl.load(start + cell + 1) - tl.load(start + cell)
    last = first + (n_points + size - 1) // size
    for begin in range(0, n_features, FEATURES):
        feature = begin + tl.arange(0, FEATURES)
        wide = feature < n_features
        total = tl.zeros((FEATURES,), tl.float64)
        mass = tl.zeros((), tl.float64)
        for at in range(first, last, TILES):
            tile = at + tl.arange(0, TILES)
            row = tile * width + slot
            some = tl.load(sums + row * (n_features + 1) + n_features, mask=tile < last, other=0.0)
            moved = tl.load(
                sums + row[:, None] * (n_features + 1) + feature[None, :],
                mask=(tile < last)[:, None] & wide[None, :],
                other=0.0,
            )
            mass += tl.sum(some.to(tl.float64), axis=0)
            total += tl.sum(moved.to(tl.float64), axis=0)
        if mass > 0:
            origin = tl.load(origins + cell * origin_stride + feature, mask=wide, other=0.0)
            place = centres + centre * centre_stride + feature
            old = tl.load(place, mask=wide, other=0.0).to(tl.float64)
            tl.store(place, (old + length * (origin + total / mass - old)).to(tl.float32), mask=wide)
