"""Short rows, all features at once: who of a cell's centres is nearest, and sums by that.

A tile holds its points' coordinates from beginning to end, where `search.search_tiles` reads them again for every
few centres.  Row squares are left out of what is compared: they are the same for all centres.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .launching import launched
from .rounding import add_products, rounded
from .tiles import list_of, nearest_so_far, points_of, this_tile


@triton.jit
def short_rows(points, stride, n_features, scale, row, inside, origin, feature):
    """Coordinates of rows (P,) about an origin (D,), all features (F,) of them: (P, F) float32.

    Beyond the features they are 0, and those that are not `inside` are of no meaning.
    """
    wide = feature < n_features
    zero = tl.load(origin + feature, mask=wide, other=0.0)
    y = tl.load(points + row[:, None] * stride + feature[None, :], mask=inside[:, None] & wide[None, :], other=0)
    return y.to(tl.float32) * scale - zero[None, :]


@triton.jit
def nearest_of_cell(
    y,
    origin,
    n_features,
    ids,
    begun,
    length,
    centres,
    centre_stride,
    feature,
    POINTS: tl.constexpr,
    CENTRES: tl.constexpr,
    MODE: tl.constexpr,
    LISTED: tl.constexpr,
):
    """Place on a cell's list of the centre nearest to each of some points, and by how much its square is less.

    Parameters
    ----------
    y : (POINTS, F), rounded coordinates about the origin
    ids : (...,) int32, the list of the cell is ids[begun:begun + length]; without LISTED it is begun, begun + 1, …

    Returns
    -------
    nearest : (POINTS,) int32, among equals the first
    least : (POINTS,) float32, its squared distance less the square of y
    """
    zero = tl.load(origin + feature, mask=feature < n_features, other=0.0)[None, :]
    nearest = tl.zeros((POINTS,), tl.int32)
    least = tl.full((POINTS,), float("inf"), tl.float32)
    for block in range(0, length, CENTRES):
        slot = block + tl.arange(0, CENTRES)
        listed = slot < length
        centre = begun + slot
        if LISTED:
            centre = tl.load(ids + centre, mask=listed, other=0).to(tl.int64)
        there = listed[:, None] & (feature < centre_stride)[None, :]  # 0 beyond the features
        m = tl.load(centres + centre[:, None] * centre_stride + feature[None, :], mask=there, other=0.0)
        m = rounded(m - zero, MODE)
        wide_m = m.to(tl.float32)
        squares = tl.where(listed, tl.sum(wide_m * wide_m, axis=1), float("inf"))
        products = add_products(y, m, tl.zeros((POINTS, CENTRES), tl.float32), MODE)
        costs = squares[None, :] - 2.0 * products
        nearest, least = nearest_so_far(costs, slot, nearest, least)
    return nearest, least


@launched
@triton.jit
def nearest_of_tiles(
    points,
    stride,
    n_features,
    scale,
    order,
    tiles,
    origins,
    origin_stride,
    lists,
    list_start,
    centres,
    centre_stride,
    winners,
    near,
    POINTS: tl.constexpr,
    CENTRES: tl.constexpr,
    FEATURES: tl.constexpr,
    GRAIN: tl.constexpr,
    MODE: tl.constexpr,
    BY_PLACE: tl.constexpr,
):
    """The nearest centre of every point, and how far it is: what `search.search_tiles` finds with N_BEST = 1.

    Parameters
    ----------
    points, stride, n_features, scale, order, tiles, origins, origin_stride, lists, list_start, centres,
    centre_stride, winners, near, GRAIN, MODE, BY_PLACE
        As there, without old winners; near is OUT.
    FEATURES : constexpr, a power of two from the number of features on
    """
    stride = stride // GRAIN * GRAIN  # that they are multiples, the compiler cannot know
    n_features = n_features // GRAIN * GRAIN
    _, cell, first, last = this_tile(tiles)
    if first >= last:  # between two cells
        return
    place, inside, row = points_of(order, first, last, 1, POINTS)
    begun, length = list_of(list_start, cell)
    origin = origins + cell * origin_stride
    feature = tl.arange(0, FEATURES)
    y = rounded(short_rows(points, stride, n_features, scale, row, inside, origin, feature), MODE)
    wide_y = y.to(tl.float32)
    row_squares = tl.sum(wide_y * wide_y, axis=1)
    nearest, least = nearest_of_cell(
        y, origin, n_features, lists, begun, length, centres, centre_stride, feature, POINTS, CENTRES, MODE, True
    )
    target = place if BY_PLACE else row
    winner = tl.load(lists + begun + nearest, mask=inside & (nearest < length), other=0)
    tl.store(winners + target, winner, mask=inside)
    tl.store(near + target, tl.maximum(row_squares + least, 0.0), mask=inside)


@launched
@triton.jit
def sum_tiles(
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
    """As `lloyd.sum_by_nearest`, of coordinates with 11 bits: where they lead, the first E-step makes up for it.

    Parameters
    ----------
    points, stride, n_features, scale, order, tiles, origins, origin_stride, list_start, width, centres,
    centre_stride, weights, sums, GRAIN, MODE
        As there.
    FEATURES : constexpr, a power of two from the number of features on
    """
    stride = stride // GRAIN * GRAIN  # that they are multiples, the compiler cannot know
    n_features = n_features // GRAIN * GRAIN
    tile, cell, first, last = this_tile(tiles)
    if first >= last:  # between two cells
        return
    _, inside, row = points_of(order, first, last, 1, POINTS)
    begun, length = list_of(list_start, cell)
    origin = origins + cell * origin_stride
    feature = tl.arange(0, FEATURES)
    y = short_rows(points, stride, n_features, scale, row, inside, origin, feature)
    nearest, _ = nearest_of_cell(
        rounded(y, MODE), origin, n_features, centres, begun, length, centres, centre_stride, feature, POINTS,
        CENTRES, MODE, False,
    )  # fmt: skip
    weight = tl.load(weights + row, mask=inside, other=0.0)
    away = rounded(y * weight[:, None], "tf32")
    for block in range(0, length, CENTRES):
        slot = block + tl.arange(0, CENTRES)
        mine = slot[:, None] == nearest[None, :]
        total = tl.dot(mine.to(tl.float32), away, input_precision="tf32")
        mass = tl.sum(tl.where(mine, weight[None, :], 0.0), axis=1)
        target = sums + (tile * width + slot) * (n_features + 1)
        there = (slot < length)[:, None] & (feature < n_features)[None, :]
        tl.store(target[:, None] + feature[None, :], total, mask=there)
        tl.store(target + n_features, mass, mask=slot < length)
