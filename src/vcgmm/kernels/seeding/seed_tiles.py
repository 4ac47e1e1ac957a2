"""Squared distances of a few candidates for seeds to a block of rows, and what each would save, in registers.

A batch of candidates is as few as three rows: BLAS would spend as long on the call as on the product, and what it
writes would have to be read twice, for distances and for what they save.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba import config
from numba.core import types
from numba.extending import intrinsic

from ..jit import part
from ..nearest.nearest_tiles import HEIGHT, VECTORS
from ..parts.vectors import VECTOR_BYTES, Vectors, lanes

#: Distances below this share of the squared norms are rounding, in float32: they are to be taken anew, directly.
CANCELLED = 1e-5


def _emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """A loop over tiles of candidates, for VECTORS vectors of rows."""
    v = Vectors(context, builder, signature.args[0].dtype)
    chosen, chosen_squares, columns, squares, masses, distances, out, saved, flags = (
        v.array(signature.args[k], arguments[k]) for k in (0, 1, 2, 3, 4, 5, 8, 9, 10)
    )
    places = [v.beyond(arguments[6], k * v.width) for k in range(VECTORS)]
    rows = [builder.add(arguments[7], place) for place in places]
    zero, minus_two, tiny = v.constant(0.0), v.constant(-2.0), v.constant(CANCELLED)
    row_squares, row_masses, costs = ([v.load(a, None, r) for r in rows] for a in (squares, masses, distances))

    def savings_of_tile(first: Any, _: list[Any]) -> list[Any]:
        tile = [v.beyond(first, r) for r in range(HEIGHT)]
        sums = v.tile(chosen, tile, columns, places)
        for r, candidate in enumerate(tile):
            square = v.loaded_spread(chosen_squares, None, candidate)
            gained, rounded = v.load(saved, candidate, v.index(0)), None
            for k in range(VECTORS):
                both = builder.fadd(square, row_squares[k])
                value = v.multiply_add(sums[r][k], minus_two, both)
                v.store(value, out, candidate, rows[k])
                lost = builder.fcmp_ordered("<", value, builder.fmul(tiny, both))
                rounded = lost if rounded is None else builder.or_(rounded, lost)
                less = v.greatest(builder.fsub(costs[k], value), zero)
                gained = v.multiply_add(row_masses[k], builder.select(lost, zero, less), gained)
            v.store(gained, saved, candidate, v.index(0))
            bits = builder.zext(builder.bitcast(rounded, ir.IntType(v.width)), v.whole)
            address = v.address(flags, v.whole, None, candidate)
            builder.store(builder.or_(builder.load(address, align=8), bits), address, align=8)
        return []

    v.loop(builder.extract_value(chosen_squares.shape, 0), HEIGHT, [], savings_of_tile)
    return context.get_dummy_value()


def _typed(
    _typing: Any, chosen: Any, chosen_squares: Any, columns: Any, squares: Any, masses: Any, distances: Any,
    _j: Any, _low: Any, out: Any, saved: Any, flags: Any,
) -> Any:  # fmt: skip
    """As `_plainly`, where it is compiled."""
    arrays = (chosen, chosen_squares, columns, squares, masses, distances)
    return types.void(*arrays, types.int64, types.int64, out, saved, flags), _emit


def _plainly(
    chosen: np.ndarray, chosen_squares: np.ndarray, columns: np.ndarray, squares: np.ndarray, masses: np.ndarray,
    distances: np.ndarray, j: int, low: int, out: np.ndarray, saved: np.ndarray, flags: np.ndarray,
) -> None:  # fmt: skip
    """The same in plain Python."""
    n = VECTORS * lanes(out.itemsize)
    here = slice(low + j, low + j + n)
    both = chosen_squares[:, None] + squares[here]
    values = both - 2 * (chosen @ columns[:, j : j + n])
    out[:, here] = values
    lost = values < CANCELLED * both
    flags[: len(chosen)] |= lost.any(axis=1)
    gained = masses[here] * np.where(lost, 0, np.maximum(distances[here] - values, 0))
    saved[: len(chosen)] += gained.reshape(len(chosen), VECTORS, -1).sum(axis=1)


#: Of as many columns as a tile has, from j on, which are rows low + j...  Nobody checks that arrays are large
#: enough.
_distances_of_tile: Any = _plainly if cast("Any", config).DISABLE_JIT else intrinsic(_typed)


@part
def distances_and_savings(
    chosen: np.ndarray,
    chosen_squares: np.ndarray,
    columns: np.ndarray,
    squares: np.ndarray,
    masses: np.ndarray,
    distances: np.ndarray,
    low: int,
    out: np.ndarray,
    saved: np.ndarray,
    flags: np.ndarray,
) -> None:
    """out[b, low + j] = ||chosen[b] - columns[:, j]||^2 for all candidates b and columns j, as products tell.

    Parameters
    ----------
    chosen : (m, D) float, IN, m a multiple of HEIGHT
    chosen_squares : (m,) float, IN, their squared norms
    columns : (D, n) float, IN, n a multiple of VECTORS * lanes
    squares, masses, distances : (>= low + n,) float, IN, of the columns: squared norms, and what they weigh and
        cost now
    low : int, IN
    out : (m, >= low + n) float, OUT
    saved : (>= m, lanes) float, IN/OUT, by how much a candidate lowers the cost, all lanes together; distances
        that rounding has spoilt are left out, since what they are off by may be more than all else
    flags : (>= m,) int64, IN/OUT, not 0 where rounding has spoilt a distance
    """
    for j in range(0, columns.shape[1], VECTORS * VECTOR_BYTES // out.itemsize):
        _distances_of_tile(chosen, chosen_squares, columns, squares, masses, distances, j, low, out, saved, flags)
