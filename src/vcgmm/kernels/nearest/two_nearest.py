"""The nearest of all centres among short integers, and whether what was rounded leaves a doubt about it.

A row and a centre are each some way off what they are rounded to (`shorts`).  A centre that is farther than the
nearest by more than twice both ways, as the rounded ones lie, is no nearer in truth; so with the two nearest of
the rounded ones it is known whether the nearest is the nearest of the true ones.  It mostly is.
"""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba import config
from numba.core import types
from numba.extending import intrinsic

from ..jit import kernel, part
from ..parts.selection import LANES
from ..parts.shorts import LARGEST, short_square, shorten, shorten_centres
from ..parts.transpose import transpose_rows
from ..parts.vectors import Vectors, lanes
from .nearest_tiles import HEIGHT, VECTORS

#: Centres that are compared with all rows in hand while they lie in the nearest cache.
PANEL = 64

#: Rows of a tile.
WIDTH = VECTORS * lanes(4)

#: The largest of the integers.
FARTHEST = np.int32(0x7FFFFFFF)

#: A float32 is off by so much where it is a number of steps, and a way as it is added up.
SLACK = 0.01
SHARE_OF_SLACK = 1.01


def _emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """A loop over tiles of centres that holds the two nearest of VECTORS vectors of rows."""
    v = Vectors(context, builder, signature.args[5].dtype)
    centres, squares, columns, best, second, ids = (
        v.array(signature.args[k], arguments[k]) for k in (0, 1, 2, 5, 6, 7)
    )
    place, low = arguments[3:5]
    places = [v.beyond(place, k * v.width) for k in range(VECTORS)]

    def nearest_with(first: Any, held: list[Any]) -> list[Any]:
        rows = [v.beyond(first, r) for r in range(HEIGHT)]
        least, next_, which = (list(held[k * VECTORS : (k + 1) * VECTORS]) for k in range(3))
        sums = v.tile(centres, rows, columns, places)
        for r, row in enumerate(rows):
            square = v.loaded_spread(squares, None, row)
            name = v.spread(builder.trunc(builder.add(low, row), ir.IntType(32)))
            for k, total in enumerate(sums[r]):
                value = v.minus(square, v.plus(total, total))
                nearer = v.is_below(value, least[k])
                passed = builder.select(nearer, least[k], value)  # the farther of the two
                next_[k] = builder.select(v.is_below(passed, next_[k]), passed, next_[k])
                least[k] = builder.select(nearer, value, least[k])
                which[k] = builder.select(nearer, name, which[k])
        return least + next_ + which

    so_far = [v.load(array, None, here) for array in (best, second, ids) for here in places]
    found = v.loop(builder.extract_value(squares.shape, 0), HEIGHT, so_far, nearest_with)
    for k, array in enumerate((best, second, ids)):
        for i, here in enumerate(places):
            v.store(found[k * VECTORS + i], array, None, here)
    return context.get_dummy_value()


def _typed(
    _typing: Any, centres: Any, squares: Any, columns: Any, _j: Any, _low: Any, best: Any, second: Any, ids: Any
) -> Any:
    """As `_plainly`, where it is compiled."""
    return types.void(centres, squares, columns, types.int64, types.int64, best, second, ids), _emit


def _plainly(
    centres: np.ndarray, squares: np.ndarray, columns: np.ndarray, j: int, low: int, best: np.ndarray,
    second: np.ndarray, ids: np.ndarray,
) -> None:  # fmt: skip
    """The same in plain Python."""
    here = slice(j, j + VECTORS * lanes(best.itemsize))
    left, right = (np.ascontiguousarray(a).view(np.int16).astype(np.int64) for a in (centres, columns[:, here].T))
    for i, values in enumerate(squares[:, None] - 2 * (left @ right.T)):
        nearer = values < best[here]
        second[here] = np.minimum(second[here], np.where(nearer, best[here], values))
        ids[here] = np.where(nearer, low + i, ids[here])
        best[here] = np.where(nearer, values, best[here])


#: Of as many columns as a tile has, from j on; centres are called low, low + 1 ...  Nobody checks that arrays are
#: large enough.
_two_nearest_of_tile: Any = _plainly if cast("Any", config).DISABLE_JIT else cast("Any", intrinsic(_typed))


@part
def way_of_rounding(rows: np.ndarray, i: int, factor: float) -> float:
    """How far, in steps, row i is at most from what it is rounded to."""
    square = np.float32(0)
    for d in range(rows.shape[1]):
        number = np.float32(rows[i, d] * factor)
        way = number - np.rint(number)
        square += way * way
    return SHARE_OF_SLACK * math.sqrt(square) + SLACK * math.sqrt(rows.shape[1])


@kernel
def round_centres(centres: np.ndarray, steps: float, pairs: np.ndarray, squares: np.ndarray) -> float:
    """Centres as short integers; returns how far they are at most from those.

    Parameters
    ----------
    centres : (C, D) float, IN, with norms of at most `LARGEST` steps
    steps : float64, IN, a unit's
    pairs : (m, (D + 1) // 2) float32, OUT, bits of pairs, m a multiple of HEIGHT; 0 beyond C
    squares : (m,) int32, OUT, squared norms; the largest number beyond C
    """
    shorten_centres(centres.shape[0], centres, steps, pairs, squares)
    largest, factor = 0.0, centres.dtype.type(steps)
    for i in range(centres.shape[0]):
        largest = max(largest, np.float64(way_of_rounding(centres, i, factor)))
    return largest


@part
def look(
    n: int,
    rows: np.ndarray,
    row_squares: np.ndarray,
    steps: float,
    short_centres: np.ndarray,
    short_squares: np.ndarray,
    way_of_centres: float,
    pairs: np.ndarray,
    columns: np.ndarray,
    best: np.ndarray,
    second: np.ndarray,
    ids: np.ndarray,
    certain: np.ndarray,
) -> int:
    """The nearest centres of the first n rows, as far as short integers tell; returns how many are certain.

    Parameters
    ----------
    n : int, IN
    rows : (>= n, D) float, IN
    row_squares : (>= n,) float, IN, their squared norms
    steps, short_centres, short_squares, way_of_centres : IN, as `round_centres` has them
    pairs : (whole blocks, (D + 1) // 2) float32, scratch
    columns : (blocks, (D + 1) // 2, LANES) float32, scratch
    best, second : (whole blocks,) int32, scratch
    ids : (whole blocks,) int32, OUT
    certain : (>= n,) bool, OUT
    """
    shorten(n, rows, steps, pairs)
    longest, factor, nothing = 2.0 * LARGEST / steps, rows.dtype.type(steps), np.float32(0)
    for i in range(n):
        certain[i] = row_squares[i] <= longest * longest
        if not certain[i]:  # its numbers would be too large: it is looked at in another way
            for p in range(pairs.shape[1]):
                pairs[i, p] = nothing
    for low in range(0, n, LANES):
        transpose_rows(min(LANES, n - low), pairs[low : low + LANES], columns[low // LANES])
        best[low : low + LANES] = FARTHEST
        second[low : low + LANES] = FARTHEST
        ids[low : low + LANES] = 0
    for first in range(0, short_squares.shape[0], PANEL):
        panel, squares = short_centres[first : first + PANEL], short_squares[first : first + PANEL]
        for low in range(0, n, LANES):
            some, others, names = best[low : low + LANES], second[low : low + LANES], ids[low : low + LANES]
            for j in range(0, LANES, WIDTH):
                _two_nearest_of_tile(panel, squares, columns[low // LANES], j, first, some, others, names)
    n_certain = 0
    for i in range(n):
        if not certain[i]:
            continue
        square = short_square(rows, i, factor)
        ways = np.float64(way_of_rounding(rows, i, factor)) + way_of_centres
        doubtful = math.sqrt(np.float64(best[i]) + square) + 2.0 * ways
        certain[i] = np.float64(second[i]) + square > doubtful * doubtful
        n_certain += int(certain[i])
    return n_certain
