"""Lloyd steps inside many cells at once, each cell by one program from its first step to its last."""

from __future__ import annotations

import triton
import triton.language as tl

from .rounding import add_products, rounded

#: Greater than every number of a centre.
NOBODY = tl.constexpr(0x7FFFFFFF)


@triton.jit
def lloyd_in_cells(
    points,
    stride,
    n_features,
    scale,
    weights,
    order,
    cell_start,
    centre_start,
    origins,
    centres,
    n_steps,
    ROWS: tl.constexpr,
    CENTRES: tl.constexpr,
    FEATURES: tl.constexpr,
    MODE: tl.constexpr,
):
    """Move the centres of a cell to the weighted means of its rows that are nearest to them, so many times.

    Parameters
    ----------
    points, stride, n_features, scale, weights : IN, as in `search.search_tiles`
    order : (n,) int64, IN, rows
    cell_start, centre_start : (n_cells + 1,) int64, IN, where rows and centres of each cell begin
    origins : (n_cells, D) float32, IN, what coordinates of a cell are taken about
    centres : (C, D) float32, IN and OUT; one that no row is nearest to stays where it is
    CENTRES, FEATURES : constexpr, powers of two from 16 on, not less than the centres of a cell and than D
    """
    cell = tl.program_id(0).to(tl.int64)
    first = tl.load(cell_start + cell)
    last = tl.load(cell_start + cell + 1)
    first_centre = tl.load(centre_start + cell)
    n_centres = (tl.load(centre_start + cell + 1) - first_centre).to(tl.int32)
    feature = tl.arange(0, FEATURES)
    wide = (feature < n_features)[None, :]
    number = tl.arange(0, CENTRES)
    real = number < n_centres
    place = centres + (first_centre + number)[:, None] * n_features + feature[None, :]
    origin = tl.load(origins + cell * n_features + feature, mask=feature < n_features, other=0.0)[None, :]
    m = tl.where(real[:, None] & wide, tl.load(place, mask=real[:, None] & wide, other=0.0) - origin, 0.0)
    for _ in range(n_steps):
        used = rounded(m, MODE)
        wide_used = used.to(tl.float32)
        squares = tl.where(real, tl.sum(wide_used * wide_used, axis=1), float("inf"))
        sums = tl.zeros((CENTRES, FEATURES), tl.float32)
        mass = tl.zeros((CENTRES,), tl.float32)
        for begin in range(first, last, ROWS):
            entry = begin + tl.arange(0, ROWS)
            inside = entry < last
            row = tl.load(order + entry, mask=inside, other=0)
            there = inside[:, None] & wide
            y = tl.load(points + row[:, None] * stride + feature[None, :], mask=there, other=0).to(tl.float32)
            y = tl.where(there, y * scale - origin, 0.0)
            weight = tl.load(weights + row, mask=inside, other=0.0)
            products = add_products(rounded(y, MODE), used, tl.zeros((ROWS, CENTRES), tl.float32), MODE)
            # Less the square of the row itself: that changes no ranking.
            distances = squares[None, :] - 2.0 * products
            least = tl.min(distances, axis=1)
            nearest = tl.min(tl.where(distances == least[:, None], number[None, :], NOBODY), axis=1)
            share = tl.where(number[None, :] == nearest[:, None], weight[:, None], 0.0)
            mass += tl.sum(share, axis=0)
            sums = tl.dot(tl.trans(share), y, sums, input_precision="tf32x3")
        m = tl.where((mass > 0.0)[:, None], sums / tl.where(mass > 0.0, mass, 1.0)[:, None], m)
    tl.store(place, m + origin, mask=real[:, None] & wide)
