"""`survey` of wide rows by short integers: who is among those of least cost, and what these cost as floats.

Every row is rounded in steps of its own, 1 / LARGEST of its norm, so none is too long or too short for it.  A cost
is then off by some 3e-5 of the product of both norms, about as much as keys leave away of it.  By so much may a
candidate that was left out cost less than one that was found.  Costs of those found, and of old winners, are taken
directly: nothing else is rounded, and an old winner still gives way only to what costs no more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numba import config
from numba.core import types
from numba.extending import intrinsic

from ..cells.costs import dearest
from ..jit import part
from ..parts.selection import FEW, LANES, pack
from ..parts.shorts import NOTHING, shorten_row
from ..parts.transpose import transpose
from ..parts.vectors import VECTOR_BYTES, VECTORS, Vectors, lanes
from .direct import square_to, squares_to_few
from .survey import least_keys
from .upcoming import Upcoming

#: Norm of every row, in its steps: products of pairs, and of rows, fit into 32 bits, and every feature into 16.
LARGEST = 32_000.0

#: Of fewer features products are too small a part of the time: what is saved goes into rounding, and into costs.
FEATURES = 48


def pays(dtype: np.dtype[Any], n_features: int, n_winners: int) -> bool:
    """Whether rows of a type are worth being searched in this way, where costs are distances."""
    return dtype == np.float32 and n_features >= FEATURES and n_winners <= FEW


def _emit(vectors: int, context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Products of pairs, which become floats before they become costs."""
    v, pairs = (Vectors(context, builder, kind) for kind in (signature.args[2].dtype, types.int32))
    rows, columns, constants, norms, row_units, units, indices, best, source, order = (
        v.array(kind, value) for kind, value in zip(signature.args[:10], arguments[:10], strict=True)
    )
    here = [v.index(k * v.width) for k in range(vectors)]
    places = [v.beyond(arguments[10], k * v.width) for k in range(vectors)]
    rows_to_come = Upcoming(
        v, source, order, context.get_value_type(signature.args[9].dtype), arguments[11],
        builder.extract_value(constants.shape, 0), vectors * v.width,
    )  # fmt: skip
    zero, minus_two = v.constant(0.0), v.constant(-2.0)
    squares = [v.load(norms, None, place) for place in places]
    factors = [builder.fmul(v.load(units, None, place), minus_two) for place in places]

    def costs_of(slots: list[Any]) -> list[list[Any]]:
        products = pairs.tile(rows, slots, columns, here, rows_to_come.beside(slots[0]))
        found = []
        for r, slot in enumerate(slots):
            constant, unit = (v.loaded_spread(array, None, slot) for array in (constants, row_units))
            of_row = []
            for product, factor, square in zip(products[r], factors, squares, strict=True):
                times = builder.fmul(factor, unit)
                cost = v.multiply_add(builder.sitofp(product, v.kind), times, builder.fadd(constant, square))
                of_row.append(v.greatest(cost, zero))
            found.append(of_row)
        return found

    least_keys(v, indices, context.get_value_type(signature.args[6].dtype), best, places, costs_of)
    return context.get_dummy_value()


def _compiled(vectors: int) -> Any:
    """A survey of so many vectors, as numba wants an intrinsic."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _emit(vectors, context, builder, signature, arguments)

    def typed(
        _typing: Any, rows: Any, columns: Any, constants: Any, norms: Any, row_units: Any, units: Any,
        indices: Any, best: Any, source: Any, order: Any, _place: Any, _after: Any,
    ) -> Any:  # fmt: skip
        arrays = rows, columns, constants, norms, row_units, units, indices, best, source, order
        return types.void(*arrays, types.int64, types.int64), emit

    return intrinsic(typed)


def _plain(vectors: int) -> Callable[..., None]:
    """The same in plain Python."""

    def survey_tiles(
        rows: np.ndarray, columns: np.ndarray, constants: np.ndarray, norms: np.ndarray, row_units: np.ndarray,
        units: np.ndarray, indices: np.ndarray, best: np.ndarray, _source: np.ndarray, _order: np.ndarray,
        place: int, _after: int,
    ) -> None:  # fmt: skip
        n = vectors * lanes(norms.itemsize)
        here = slice(place, place + n)
        left, right = (np.ascontiguousarray(a).view(np.int16).astype(np.int64) for a in (rows, columns.T))
        products = (left @ right.T).astype(np.float32) * (-2 * units[here] * row_units[:, None])
        costs = np.maximum(constants[:, None] + norms[here] + products, 0)
        for j in range(n):
            keys = sorted(pack(costs[i, j], indices[-2], index) for i, index in enumerate(indices[:-2]))
            for k in range(FEW):
                best[k * LANES + place + j] = keys[k]

    return survey_tiles


#: As those of `survey`, without costs: survey_tiles(rows, columns, constants, norms, row_units, units, indices,
#: best, source, order, place, after), rows and columns of bits of pairs.
_one_vector, _some_vectors = (
    (_plain if cast("Any", config).DISABLE_JIT else _compiled)(vectors) for vectors in (1, VECTORS)
)


@part
def are_in_reach(n: int, squares: np.ndarray) -> bool:
    """Whether squared norms of the first n rows are so small that no distance to one comes near the largest float.

    A candidate beyond would cost infinitely much, or more than one that is none.
    """
    limit, are = squares.dtype.type(dearest(squares.itemsize) / 16), True
    for i in range(n):
        are &= squares[i] <= limit
    return are


@part
def shorten_each(n: int, rows: np.ndarray, squares: np.ndarray, pairs: np.ndarray, units: np.ndarray) -> None:
    """The first n rows in steps of their own, which there are for squared norms `are_in_reach`.

    Parameters
    ----------
    n : int, IN
    rows : (>= n, >= D) float32, IN, 0 from feature D on
    squares : (>= n,) float32, IN, their squared norms
    pairs : (>= n, >= (D + 1) // 2) float32, OUT, bits of pairs; what comes after an odd D is left as it is
    units : (>= n,) float32, OUT, a step of each
    """
    for i in range(n):
        norm = math.sqrt(max(squares[i], np.float32(NOTHING)))
        units[i] = norm / LARGEST
        shorten_row(rows, i, np.float32(LARGEST / norm), pairs)


@part
def survey_in_steps(
    n: int,
    n_winners: int,
    points: np.ndarray,
    rows: np.ndarray,
    constants: np.ndarray,
    norms: np.ndarray,
    row_pairs: np.ndarray,
    row_units: np.ndarray,
    units: np.ndarray,
    indices: np.ndarray,
    scratch: np.ndarray,
    near: np.ndarray,
    best: np.ndarray,
    source: np.ndarray,
    order: np.ndarray,
    after: int,
) -> None:
    """The least keys of points by costs that are rounded, and the costs of those directly.

    Parameters
    ----------
    n : int, IN, points; with some that are none it is a multiple of `vectors.lanes`
    n_winners : int, IN, of how many of the least the costs are asked for, FEW at most
    points : (>= n, W) float32, IN, 0 from feature D on; W is even
    rows : (m, D) float32, IN, m a multiple of `vectors.ROWS`
    constants, norms : (m,) and (>= n,) float32, IN, squared norms of both; of rows that are none more than all
    row_pairs, row_units : (m, P) and (m,) float32, IN, rows as `shorten_each` has them, 0 of those that are none
    units : (>= n,) float32, scratch
    indices : (m + 2,) int32 or int64, IN, from `selection.key_indices`
    scratch : (>= VECTORS lanes (P + W / 2),) float32
    near : (n_winners, LANES) float32, OUT, costs of those asked for
    best : (>= FEW LANES,) int32 or int64, OUT, as in `survey`
    source : (N', D) float32, IN, where rows to come are fetched from (`upcoming`)
    order : (N',) int, IN
    after : int, IN, rows order[after + j] are wanted next
    """
    width, n_pairs, room = VECTOR_BYTES // norms.itemsize, row_pairs.shape[1], points.shape[1] // 2
    for j in range(0, n, VECTORS * width):
        n_columns = VECTORS * width if n - j > width else width
        size = n_pairs * n_columns
        columns = scratch[:size].reshape(n_pairs, n_columns)
        pairs = scratch[size : size + n_columns * room].reshape(n_columns, room)
        shorten_each(min(n_columns, n - j), points[j:], norms[j:], pairs, units[j:])
        transpose(n_columns, pairs, int(np.int64(0)), columns)
        if n_columns > width:
            _some_vectors(
                row_pairs, columns, constants, norms, row_units, units, indices, best, source, order, j, after + j
            )
        else:
            _one_vector(
                row_pairs, columns, constants, norms, row_units, units, indices, best, source, order, j, after + j
            )
    mask = ~indices[-2]
    for j in range(n):
        if n_winners == FEW:
            squares_to_few(rows, points, j, best, mask, near)
            continue
        for k in range(n_winners):
            near[k, j] = square_to(rows, np.int64(best[k * LANES + j] & mask), points, j)
