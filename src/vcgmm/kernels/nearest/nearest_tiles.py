"""The nearest of a few dozen centres for a block of points, without a product in memory.

The sums of a tile of centres x points (`vectors`) become distances and are compared with the nearest so far while
they are in registers; all that is written is the nearest.  Numbers may be pairs of short integers (`shorts`).
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba import config
from numba.core import types
from numba.extending import intrinsic

from ..jit import part
from ..parts.vectors import N_REGISTERS, VECTOR_BYTES, Vectors, lanes

#: Centres and vectors of points in a tile: centres are few, and filled up to a multiple of the first.
HEIGHT, VECTORS = 4, (4 if N_REGISTERS == 32 else 2)


def _emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """A loop over tiles of centres that holds the nearest of VECTORS vectors of points."""
    v = Vectors(context, builder, signature.args[4].dtype)  # whatever type of as many bytes the pairs are kept as
    centres, squares, columns, best, ids = (v.array(signature.args[k], arguments[k]) for k in (0, 1, 2, 4, 5))
    places = [v.beyond(arguments[3], k * v.width) for k in range(VECTORS)]
    small = ir.IntType(32)

    def nearest_with(first: Any, held: list[Any]) -> list[Any]:
        rows = [v.beyond(first, r) for r in range(HEIGHT)]
        least, which = held[:VECTORS], held[VECTORS:]
        sums = v.tile(centres, rows, columns, places)
        for r, row in enumerate(rows):
            square, name = v.loaded_spread(squares, None, row), v.spread(builder.trunc(row, small))
            for k, total in enumerate(sums[r]):
                value = v.minus(square, v.plus(total, total))
                nearer = v.is_below(value, least[k])
                least[k] = builder.select(nearer, value, least[k])
                which[k] = builder.select(nearer, name, which[k])
        return least + which

    nowhere = v.constant(0x7FFFFFFF if v.of_integers else float("inf"))
    nobody = ir.Constant(ir.VectorType(small, v.width), [0] * v.width)
    n_centres = builder.extract_value(squares.shape, 0)
    found = v.loop(n_centres, HEIGHT, [nowhere] * VECTORS + [nobody] * VECTORS, nearest_with)
    for k, place in enumerate(places):
        v.store(found[k], best, None, place)
        v.store(found[VECTORS + k], ids, None, place)
    return context.get_dummy_value()


def _typed(_typing: Any, centres: Any, squares: Any, columns: Any, _j: Any, best: Any, ids: Any) -> Any:
    """As `_nearest_of_tile`, where it is compiled."""
    return types.void(centres, squares, columns, types.int64, best, ids), _emit


def _plainly(
    centres: np.ndarray, squares: np.ndarray, columns: np.ndarray, j: int, best: np.ndarray, ids: np.ndarray
) -> None:
    """The same in plain Python."""
    here = slice(j, j + VECTORS * lanes(best.itemsize))
    if best.dtype == np.int32:  # pairs of short integers, each 64 bits wide so that nothing overflows unseen
        left, right = (
            np.ascontiguousarray(a).view(np.int16).astype(np.int64) for a in (centres, columns[:, here].T)
        )
        sums = squares[:, None] - 2 * (left @ right.T)
        ids[here], best[here] = np.argmin(sums, axis=0), sums.min(axis=0)
        return
    with np.errstate(invalid="ignore"):
        values = squares[:, None] - 2 * (centres @ columns[:, here])
    values[np.isnan(values)] = np.inf  # of rows that are no centres
    ids[here] = np.argmin(values, axis=0)
    best[here] = values.min(axis=0)


#: Of as many columns as a tile has, from j on.  Nobody checks that arrays are large enough.
_nearest_of_tile: Any = _plainly if cast("Any", config).DISABLE_JIT else intrinsic(_typed)


@part
def padded(n: int) -> int:
    """Rows that an array of n centres needs."""
    return (n + HEIGHT - 1) // HEIGHT * HEIGHT


@part
def nearest_of_few(
    centres: np.ndarray, squares: np.ndarray, columns: np.ndarray, best: np.ndarray, ids: np.ndarray
) -> None:
    """best[j] = min_i squares[i] - 2 <centres[i], columns[:, j]> and ids[j] = its i, the lowest of equals.

    Parameters
    ----------
    centres : (m, D) float, IN, m a multiple of HEIGHT; rows that are none have infinite squares, and any numbers
    squares : (m,) float, IN
    columns : (D, n) float, IN, n a multiple of VECTORS * lanes
    best : (n,) float, OUT; int32: centres and columns are bits of D pairs, 0 in rows that are none, and squares
        are int32
    ids : (n,) int32, OUT
    """
    for j in range(0, columns.shape[1], VECTORS * VECTOR_BYTES // best.itemsize):
        _nearest_of_tile(centres, squares, columns, j, best, ids)
