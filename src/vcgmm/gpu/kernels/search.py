"""The E-step: a tile of points of one cell against the cell's list of centres, on the tensor cores.

All points of a tile share one list, so distances are matrix products, in coordinates local to the cell: there even
few bits rank near ties soundly.  The C' nearest are selected in registers.  Where clusters have weights and
variances of their own, costs take the place of distances: -log p(c, y) up to a constant.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .forms import LARGEST, as_multiplied, costs_of, pair_costs, precisions_of, products_of
from .launching import launched
from .selection import NOWHERE, merge_nearest, select_nearest
from .tiles import list_of, points_of, this_tile

#: Responsibilities below this share of a point's weight do not move a mean.
NEGLIGIBLE = tl.constexpr(1e-9)


@triton.jit
def listed_costs(
    points,
    stride,
    n_features,
    scale,
    row,
    inside,
    origin,
    centres,
    centre_stride,
    centre,
    listed,
    precisions,
    offsets,
    POINTS: tl.constexpr,
    CENTRES: tl.constexpr,
    FEATURES: tl.constexpr,
    MODE: tl.constexpr,
    FORM: tl.constexpr,
):
    """Squared distances, or costs of a FORM, of rows (POINTS,) and centres (CENTRES,): infinite if not `listed`.

    Products are of coordinates about an origin (D,), on the tensor cores.
    """
    products = tl.zeros((POINTS, CENTRES), tl.float32)
    row_squares = tl.zeros((POINTS,), tl.float32)
    centre_squares = tl.zeros((CENTRES,), tl.float32)
    for begin in range(0, n_features, FEATURES):
        feature = begin + tl.arange(0, FEATURES)
        wide = feature < n_features
        zero = tl.load(origin + feature, mask=wide, other=0.0)[None, :]
        y = tl.load(
            points + row[:, None] * stride + feature[None, :], mask=inside[:, None] & wide[None, :], other=0
        )
        there = listed[:, None] & (feature < centre_stride)[None, :]  # 0 beyond the features
        m = tl.load(centres + centre[:, None] * centre_stride + feature[None, :], mask=there, other=0.0)
        there = listed[:, None] & wide[None, :]
        p = precisions_of(precisions, centre, feature, n_features, there, wide, FORM)
        y = as_multiplied(y.to(tl.float32) * scale - zero, p, MODE, FORM)
        m = as_multiplied(m - zero, p, MODE, FORM)
        products, row_squares, centre_squares = products_of(
            y, m, p, products, row_squares, centre_squares, MODE, FORM
        )
    distances = costs_of(products, row_squares, centre_squares, precisions, offsets, centre, listed, FORM)
    return tl.where(listed[None, :], distances, float("inf"))


@launched
@triton.jit
def search_tiles(
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
    precisions,
    offsets,
    old,
    extra,
    weights,
    precision,
    winners,
    near,
    shares,
    keys,
    n_centres,
    facts,
    N_BEST: tl.constexpr,
    COLUMNS: tl.constexpr,
    POINTS: tl.constexpr,
    CENTRES: tl.constexpr,
    FEATURES: tl.constexpr,
    GRAIN: tl.constexpr,
    MODE: tl.constexpr,
    FORM: tl.constexpr,
    HAS_OLD: tl.constexpr,
    POSTERIOR: tl.constexpr,
    PER_ROW: tl.constexpr,
    BY_PLACE: tl.constexpr,
    TOLD: tl.constexpr,
):
    """The N_BEST nearest centres of every point, and with POSTERIOR what the M-step and the bound need of them.

    Near means a small squared distance, or with another FORM (see `forms`) a small cost.

    Parameters
    ----------
    points : (N, >= D) any float or 8-bit integer, IN, rows `stride` apart; scale times a row are its coordinates
    order : (n,) int64, IN, PER_ROW times the rows, or a bit more
    tiles : (n_tiles, 3) int64, IN, cell, first and last: a tile holds the rows order[first:last] of a cell
    origins : (n_cells, D) float32, IN, what coordinates of a cell are taken about
    lists : (...,) int32, IN, the list of a cell goes from list_start[cell] to list_start[cell + 1] - 1
    centres : (C, D) float32, IN
    precisions, offsets : IN, as in `forms`
    old : (N, N_BEST) int32, IN, winners of before, -1 for none; may be the same as `winners`
    extra : (N, N_BEST) float32, IN, their squared distances where they are not on the list, else infinite
    weights : (N,) float32, IN
    precision : float, IN, 1 / (2 sigma^2), or 1 for costs; negative: the nearest takes all.  With TOLD
        (1,) float64, sigma^2; negative: nothing is done
    winners : (N, N_BEST) int32, OUT, nearest first
    near : (N, N_BEST) float32, OUT without POSTERIOR, squared distances
    shares : (N, N_BEST) float32, OUT with POSTERIOR, gamma s; 0 where negligible
    keys : (N, N_BEST) int16 or int32, OUT with POSTERIOR, the nearest winner first, then n_centres more than the
        others, or 2 n_centres where the share is 0
    facts : (n_tiles, 4) float64, OUT with POSTERIOR, sums of gamma log sum exp(-d^2 precision), of gamma s d^2, of
        gamma d^2 of the nearest, or for costs of gamma, and the number of old winners that were not listed
    BY_PLACE : constexpr, winners and near are in the order of `order`, not of the points (without old winners)
    """
    stride = stride // GRAIN * GRAIN  # that they are multiples, the compiler cannot know
    n_features = n_features // GRAIN * GRAIN
    if TOLD:
        variance = tl.load(precision)
        if variance < 0.0:
            return
        precision = tl.minimum(0.5 / variance, LARGEST).to(tl.float32)  # equal points: hardly any variance
    tile, cell, first, last = this_tile(tiles)
    if first >= last:  # between two cells
        if POSTERIOR:
            tl.store(facts + tile * 4 + tl.arange(0, 4), tl.zeros((4,), tl.float64))
        return
    place, inside, row = points_of(order, first, last, PER_ROW, POINTS)
    column = tl.arange(0, COLUMNS)[None, :]
    begun, length = list_of(list_start, cell)
    here = lists + begun
    best = tl.full((POINTS, COLUMNS), float("inf"), tl.float32)
    places = tl.full((POINTS, COLUMNS), NOWHERE, tl.int32)
    if HAS_OLD:
        known = inside[:, None] & (column < N_BEST)
        best = tl.load(extra + row[:, None] * N_BEST + column, mask=known, other=float("inf"))
        places = tl.where(best < float("inf"), length + column, NOWHERE)
        if POSTERIOR:
            n_unlisted = tl.sum(tl.sum((best < float("inf")).to(tl.int32), axis=1), axis=0)
            tl.store(facts + tile * 4 + 3, n_unlisted.to(tl.float64))
    elif POSTERIOR:
        tl.store(facts + tile * 4 + 3, 0.0)
    for block in range(0, length, CENTRES):
        slot = block + tl.arange(0, CENTRES)
        listed = slot < length
        centre = tl.load(here + slot, mask=listed, other=0).to(tl.int64)
        distances = listed_costs(
            points, stride, n_features, scale, row, inside, origins + cell * origin_stride, centres, centre_stride,
            centre, listed, precisions, offsets, POINTS, CENTRES, FEATURES, MODE, FORM,
        )  # fmt: skip
        nearest, slots = select_nearest(distances, column, block, N_BEST, CENTRES, COLUMNS)
        best, places = merge_nearest(nearest, slots, best, places, column, N_BEST)

    found = inside[:, None] & (column < N_BEST)
    slot = places
    distance = best
    listed = slot < length
    winner = tl.load(here + slot, mask=found & listed, other=0)
    target = (place if BY_PLACE else row)[:, None] * N_BEST
    if HAS_OLD:
        kept = tl.load(
            old + target + (slot - length), mask=found & (slot >= length) & (slot < length + N_BEST), other=0
        )
        winner = tl.where(listed, winner, kept)
        tl.debug_barrier()  # all have read what is overwritten now
    tl.store(winners + target + column, winner, mask=found)
    if POSTERIOR:
        weight = tl.load(weights + row, mask=inside, other=0.0)
        nearest = tl.min(tl.where(found, distance, float("inf")), axis=1)
        nearest = tl.where(inside, nearest, 0.0)
        distance = tl.where(found, distance, nearest[:, None])
        share = tl.exp(tl.minimum((nearest[:, None] - distance) * precision, 0.0))
        share = tl.where(found, share, 0.0)
        if not TOLD:
            share = tl.where((precision >= 0) | (column == 0), share, 0.0)
        total = tl.where(inside, tl.sum(share, axis=1), 1.0)
        part = tl.where(share > NEGLIGIBLE, share * (weight / total)[:, None], 0.0)
        tl.store(shares + target + column, part, mask=found)
        key = tl.where(part > 0.0, winner + n_centres, 2 * n_centres)
        key = tl.where(column == 0, winner, key).to(keys.dtype.element_ty)
        tl.store(keys + target + column, key, mask=found)
        wide_weight = weight.to(tl.float64)
        bound = wide_weight * (tl.log(total) - nearest * precision).to(tl.float64)
        tl.store(facts + tile * 4, tl.sum(bound, axis=0))
        scatter = tl.sum(part.to(tl.float64) * distance.to(tl.float64), axis=1)
        tl.store(facts + tile * 4 + 1, tl.sum(scatter, axis=0))
        if FORM == "distance":
            wide_weight *= nearest.to(tl.float64)
        tl.store(facts + tile * 4 + 2, tl.sum(wide_weight, axis=0))
    else:
        tl.store(near + target + column, distance, mask=found)


@launched
@triton.jit
def unlisted_costs(
    points,
    stride,
    n_features,
    scale,
    n_points,
    old,
    table,
    length,
    centres,
    centre_stride,
    precisions,
    offsets,
    found,
    extra,
    N_BEST: tl.constexpr,
    COLUMNS: tl.constexpr,
    MARKED: tl.constexpr,
    STEPS: tl.constexpr,
    POINTS: tl.constexpr,
    PAIRS: tl.constexpr,
    FEATURES: tl.constexpr,
    FORM: tl.constexpr,
):
    """Squared distances, or costs of a FORM, of winners of before that are not on the list of their point's cell.

    They are few: a program first finds those of its points, then compares some at a time.  Difference by
    difference, so that there is nothing to cancel.

    Parameters
    ----------
    points, stride, n_features, scale, centres, centre_stride, precisions, offsets : IN, as in `search_tiles`
    old : (N, N_BEST) int32, IN, -1 for none; the cell of a point is the first
    table : (n_cells, length) int32, IN, the lists in ascending order; with MARKED a bit for every centre, 32 of
        them a number, that is set if it is listed
    found : (N, N_BEST) int32, scratch
    extra : (N, N_BEST) float32, OUT, infinite for those that are listed
    STEPS : constexpr, 2^STEPS is more than `length`; without MARKED
    """
    first = tl.program_id(0).to(tl.int64) * POINTS
    place = tl.arange(0, POINTS * COLUMNS)
    row = first + place // COLUMNS
    column = place % COLUMNS
    inside = (row < n_points) & (column < N_BEST)
    cell = tl.load(old + row * N_BEST, mask=inside, other=0).to(tl.int64)
    winner = tl.load(old + row * N_BEST + column, mask=inside, other=-1)
    known = inside & (winner >= 0)
    here = table + cell * length
    if MARKED:
        marks = tl.load(here + winner // 32, mask=known, other=0)
        there = ((marks >> (winner % 32)) & 1) > 0
    else:
        low = tl.zeros((POINTS * COLUMNS,), tl.int32)
        high = tl.zeros((POINTS * COLUMNS,), tl.int32) + length
        for _ in range(STEPS):  # bisection: the first place whose centre is not smaller
            middle = (low + high) // 2
            smaller = tl.load(here + middle, mask=known & (low < high), other=0) < winner
            low, high = tl.where(smaller & (low < high), middle + 1, low), tl.where(smaller, high, middle)
        there = tl.load(here + low, mask=known & (low < length), other=-1) == winner
    listed = there | (winner < 0)
    tl.store(extra + row * N_BEST + column, float("inf"), mask=inside & listed)
    unlisted = (inside & ~listed).to(tl.int32)
    rank = tl.cumsum(unlisted, axis=0) - 1
    tl.store(found + first * N_BEST + rank, place, mask=unlisted > 0)
    tl.debug_barrier()  # all are found before any is compared
    n_found = tl.sum(unlisted, axis=0)
    for begin in range(0, n_found, PAIRS):
        number = begin + tl.arange(0, PAIRS)
        at = tl.load(found + first * N_BEST + number, mask=number < n_found, other=0)
        point = first + at // COLUMNS
        target = point * N_BEST + at % COLUMNS
        centre = tl.load(old + target, mask=number < n_found, other=0).to(tl.int64)
        total = pair_costs(
            points, stride, n_features, scale, point, centre, number < n_found, centres, centre_stride,
            precisions, offsets, PAIRS, FEATURES, FORM,
        )  # fmt: skip
        tl.store(extra + target, total, mask=number < n_found)
