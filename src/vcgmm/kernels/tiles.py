"""Costs of candidates for points by products, tile by tile in registers.

BLAS is made for large products.  A block of some dozen points against its candidates is a small one: OpenBLAS does
it at full speed at some sizes and at half of it at others.  So these products are our own.  The sums of a tile of
candidates x points stay in registers while the features go by, each a vector of points times one number of every
candidate, and what is stored in the end are costs, not products.

A tile is as large as the registers of the processor allow: with 32 of them (AVX-512, ARM) eight candidates times
two vectors of points, with 16 four times two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numba import config
from numba.core import types
from numba.extending import intrinsic

from .jit import part
from .vectors import HEIGHT, VECTOR_BYTES, VECTORS, Vectors, lanes


def _tile(vectors: int) -> Any:
    """A tile of so many vectors, as numba wants an intrinsic."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _emit(vectors, context, builder, signature, arguments)

    def typed(
        _typing: Any, left: Any, _i: Any, columns: Any, _j: Any, constants: Any, norms: Any, out: Any, _more: Any,
        _last: Any,
    ) -> Any:  # fmt: skip
        number, truth = types.int64, types.boolean
        return types.void(left, number, columns, number, constants, norms, out, truth, truth), emit

    return typed


def _emit(vectors: int, context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """The sums of a tile, and the costs that come of them."""
    v = Vectors(context, builder, signature.args[0].dtype)
    left, columns, constants, norms, out = (v.array(signature.args[k], arguments[k]) for k in (0, 2, 4, 5, 6))
    i, j, more, last = (arguments[k] for k in (1, 3, 7, 8))
    rows = [v.beyond(i, r) for r in range(HEIGHT)]
    places = [v.beyond(j, k * v.width) for k in range(vectors)]
    zero = v.constant(0.0)
    begun = [[builder.select(more, v.load(out, row, place), zero) for place in places] for row in rows]
    sums = v.tile(left, rows, columns, places, begun)
    for r, row in enumerate(rows):
        constant = v.loaded_spread(constants, None, row)
        for place, total in zip(places, sums[r], strict=True):
            square = builder.fadd(constant, v.load(norms, None, place))
            cost = builder.fsub(square, builder.fadd(total, total))
            cost = builder.select(builder.fcmp_ordered(">", cost, zero), cost, zero)
            v.store(builder.select(last, cost, total), out, row, place)
    return context.get_dummy_value()


def _plain_tile(vectors: int) -> Callable[..., None]:
    """The same in plain Python."""

    def tile(
        left: np.ndarray, i: int, columns: np.ndarray, j: int, constants: np.ndarray, norms: np.ndarray,
        out: np.ndarray, more: bool, last: bool,
    ) -> None:  # fmt: skip
        here = slice(i, i + HEIGHT), slice(j, j + vectors * lanes(out.itemsize))
        products = left[here[0]] @ columns[:, here[1]] + (out[here] if more else 0)
        costs = np.maximum(constants[here[0], None] + norms[here[1]] - 2 * products, 0)
        out[here] = costs if last else products

    return tile


def _tiles(vectors: int) -> Any:
    return _plain_tile(vectors) if cast("Any", config).DISABLE_JIT else intrinsic(_tile(vectors))


#: tile(left, i, columns, j, constants, norms, out, more, last): the rows i.. of `left` times the columns j.. of
#: `columns`, added to what `out` has there if `more`; made costs if `last`.  All are C-ordered and of one type;
#: nobody checks that they are large enough.
_narrow_tile, _wide_tile = _tiles(1), _tiles(VECTORS)


@part
def add_products(
    left: np.ndarray,
    columns: np.ndarray,
    constants: np.ndarray,
    norms: np.ndarray,
    out: np.ndarray,
    more: bool,
    last: bool,
) -> None:
    """Fill out[i, j] = <left[i], columns[:, j]>, or add to it; after the last features make it costs.

    Parameters
    ----------
    left : (m, K) float, IN, m a multiple of ROWS
    columns : (K, n) float, IN, n a multiple of `lanes`
    constants : (m,) float, IN
    norms : (n,) float, IN
    out : (m, n) float, IN/OUT
    more : bool, IN, whether to add to what is there
    last : bool, IN, whether to make max(constants[i] + norms[j] - 2 out[i, j], 0) of it
    """
    width = VECTOR_BYTES // out.itemsize
    n = columns.shape[1]
    wide = n - n % (VECTORS * width)
    for i in range(0, left.shape[0], HEIGHT):
        for j in range(0, wide, VECTORS * width):
            _wide_tile(left, i, columns, j, constants, norms, out, more, last)
        for j in range(wide, n, width):
            _narrow_tile(left, i, columns, j, constants, norms, out, more, last)
