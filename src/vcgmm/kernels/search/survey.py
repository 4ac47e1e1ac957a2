"""Costs of candidates for points by products, and the five least of them, tile by tile in registers.

BLAS is made for large products.  A block of some dozen points against its candidates is a small one: OpenBLAS does
it at full speed at some sizes and at half of it at others.  So these products are our own.  The sums of a tile of
candidates x points stay in registers while the features go by, each a vector of points times one number of every
candidate.  Before they leave, they become costs, and keys of them (`selection`) meet the five least so far.

A tile is as large as the registers of the processor allow: with 32 of them (AVX-512, ARM) eight candidates times
two vectors of points, with 16 four times two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba import config
from numba.core import types
from numba.extending import intrinsic

from ..jit import part
from ..parts.selection import AT_ONCE, FEW, LANES, pack
from ..parts.transpose import transpose
from ..parts.vectors import HEIGHT, VECTOR_BYTES, VECTORS, Vectors, lanes

#: Four keys are in order after these comparisons, each of which puts the lesser first.
SORT_FOUR = ((0, 1), (2, 3), (0, 2), (1, 3), (1, 2))

#: Five that rise and then fall are in order after these.
SORT_FIVE = ((0, 4), (1, 3), (2, 4), (1, 2), (3, 4))


def _merged(v: Vectors, best: list[Any], keys: list[Any]) -> list[Any]:
    """The five least of five that are in order and four others, in order.

    Put the four in order as well, and compare them, the least first, with the five, the last first: the lesser of
    each pair, and the first of the five, are the five least of all.  They rise, and then fall.
    """
    keys, best = list(keys), list(best)
    for i, j in SORT_FOUR:
        keys[i], keys[j] = v.least(keys[i], keys[j]), v.greatest(keys[i], keys[j])
    for k in range(AT_ONCE):
        best[FEW - 1 - k] = v.least(best[FEW - 1 - k], keys[k])
    for i, j in SORT_FIVE:
        best[i], best[j] = v.least(best[i], best[j]), v.greatest(best[i], best[j])
    return best


#: Costs, of which there are whole vectors of points, of candidates whose places are given: as [r][k].
CostsOf = Callable[[list[Any]], list[list[Any]]]


def least_keys(v: Vectors, indices: Any, kind: Any, best: Any, places: list[Any], costs_of: CostsOf) -> None:
    """A loop over tiles of candidates that holds the least keys of some vectors of points, and writes them.

    Parameters
    ----------
    v : Vectors
    indices, kind : array and LLVM's type of its numbers, from `selection.key_indices`
    best : array of the same, OUT
    places : of the first points of every vector
    costs_of : tells the costs of some candidates for all those points
    """
    builder = v.builder
    n_slots = builder.sub(builder.extract_value(indices.shape, 0), v.index(2))
    whole = ir.DoubleType() if kind.width == 64 else ir.FloatType()  # the float of a key's size
    keys_kind, wholes = (ir.VectorType(one, v.width) for one in (whole, kind))
    keep = v.spread(v.number_at(indices, kind, n_slots))

    def least_with(first: Any, held: list[Any]) -> list[Any]:
        slots = [v.beyond(first, r) for r in range(HEIGHT)]
        costs = costs_of(slots)
        least = [held[k * FEW : (k + 1) * FEW] for k in range(len(places))]
        for some in range(0, HEIGHT, AT_ONCE):
            found: list[list[Any]] = [[] for _ in places]
            for r in range(some, some + AT_ONCE):
                index = v.spread(v.number_at(indices, kind, slots[r]))
                for k, cost in enumerate(costs[r]):
                    wide = cost if keys_kind == v.kind else builder.fpext(cost, keys_kind)
                    bits = builder.or_(builder.and_(builder.bitcast(wide, wholes), keep), index)
                    found[k].append(builder.bitcast(bits, keys_kind))
            least = [_merged(v, best_, keys) for best_, keys in zip(least, found, strict=True)]
        return [key for keys in least for key in keys]

    nothing = ir.Constant(keys_kind, [float("inf")] * v.width)
    keys = iter(v.loop(n_slots, HEIGHT, [nothing] * (len(places) * FEW), least_with))
    for place in places:
        for k in range(FEW):
            v.store(builder.bitcast(next(keys), wholes), best, None, v.beyond(place, k * LANES))


def _emit(vectors: int, context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Products as floats."""
    v = Vectors(context, builder, signature.args[0].dtype)
    rows, columns, constants, norms, indices, costs, best = (
        v.array(kind, value) for kind, value in zip(signature.args[:7], arguments[:7], strict=True)
    )
    here = [v.index(k * v.width) for k in range(vectors)]
    places = [v.beyond(arguments[7], k * v.width) for k in range(vectors)]
    zero, minus_two = v.constant(0.0), v.constant(-2.0)
    squares = [v.load(norms, None, place) for place in places]

    def costs_of(slots: list[Any]) -> list[list[Any]]:
        found = v.tile(rows, slots, columns, here)
        for r, slot in enumerate(slots):
            constant = v.loaded_spread(constants, None, slot)
            for k, place in enumerate(places):
                cost = v.multiply_add(found[r][k], minus_two, builder.fadd(constant, squares[k]))
                found[r][k] = v.greatest(cost, zero)
                v.store(found[r][k], costs, slot, place)
        return found

    least_keys(v, indices, context.get_value_type(signature.args[4].dtype), best, places, costs_of)
    return context.get_dummy_value()


def _compiled(vectors: int) -> Any:
    """A survey of so many vectors, as numba wants an intrinsic."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _emit(vectors, context, builder, signature, arguments)

    def typed(
        _typing: Any, rows: Any, columns: Any, constants: Any, norms: Any, indices: Any, costs: Any, best: Any,
        _place: Any,
    ) -> Any:  # fmt: skip
        return types.void(rows, columns, constants, norms, indices, costs, best, types.int64), emit

    return intrinsic(typed)


def _plain(vectors: int) -> Callable[..., None]:
    """The same in plain Python."""

    def survey_tiles(
        rows: np.ndarray, columns: np.ndarray, constants: np.ndarray, norms: np.ndarray, indices: np.ndarray,
        costs: np.ndarray, best: np.ndarray, place: int,
    ) -> None:  # fmt: skip
        n = vectors * lanes(costs.itemsize)
        here = slice(place, place + n)
        costs[:, here] = np.maximum(constants[:, None] + norms[here] - 2 * (rows @ columns), 0)
        for j in range(place, place + n):
            keys = sorted(pack(costs[i, j], indices[-2], index) for i, index in enumerate(indices[:-2]))
            for k in range(FEW):
                best[k * LANES + j] = keys[k]

    return survey_tiles


#: survey_tiles(rows, columns, constants, norms, indices, costs, best, place): of the points place.., one vector of
#: them or VECTORS.  Nobody checks that arrays are large enough.
_one_vector, _some_vectors = (
    (_plain if cast("Any", config).DISABLE_JIT else _compiled)(vectors) for vectors in (1, VECTORS)
)


@part
def survey(
    n: int,
    statistics: np.ndarray,
    rows: np.ndarray,
    constants: np.ndarray,
    norms: np.ndarray,
    indices: np.ndarray,
    scratch: np.ndarray,
    costs: np.ndarray,
    best: np.ndarray,
) -> None:
    """costs[i, j] = max(constants[i] + norms[j] - 2 <rows[i], statistics[j]>, 0), and the least keys of points.

    Points are turned into columns, a few vectors at a time, which stay in cache while all candidates go by.

    Parameters
    ----------
    n : int, IN, points, with some that are none to make their number a multiple of `vectors.lanes`
    statistics : (>= n, >= K) float, IN, whatever lies in those that are none
    rows : (m, K) float, IN, m a multiple of `vectors.ROWS`
    constants : (m,) float, IN, finite
    norms : (>= n,) float, IN, finite
    indices : (m + 2,) int32 or int64, IN, from `selection.key_indices`
    scratch : (>= VECTORS lanes K,) float
    costs : (m, LANES) float, OUT
    best : (>= FEW LANES,) int32 or int64, OUT, keys: the k-th least of point j is best[k * LANES + j]
    """
    width, n_statistics = VECTOR_BYTES // costs.itemsize, rows.shape[1]
    for j in range(0, n, VECTORS * width):
        n_columns = VECTORS * width if n - j > width else width
        columns = scratch[: n_statistics * n_columns].reshape(n_statistics, n_columns)
        transpose(n_columns, statistics[j:], int(np.int64(0)), columns)
        if n_columns > width:
            _some_vectors(rows, columns, constants, norms, indices, costs, best, j)
        else:
            _one_vector(rows, columns, constants, norms, indices, costs, best, j)
