"""Costs of candidates for points by products, tile by tile in registers.

BLAS is made for large products.  A block of some dozen points against its candidates is a small one: OpenBLAS does
it at full speed at some sizes, at half of it at others, and on some processors at none.  So these products are our
own.  The sums of a tile of candidates x points stay in registers while the features go by, each a vector of points
times one number of every candidate, and what is stored in the end are costs, not products.

A tile is as large as the registers of the processor allow: with 32 of them (AVX-512, ARM) eight candidates times
two vectors of points, with 16 four times two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import binding, ir
from numba import config
from numba.core import cgutils, types
from numba.extending import intrinsic

from .jit import part


def _registers() -> tuple[int, int]:
    """Bytes in a vector register of this processor, and how many there are."""
    features = cast("Any", binding).get_host_cpu_features()
    if features.get("avx512f"):
        return 64, 32
    return (32, 16) if features.get("avx") else (16, 32 if features.get("neon") else 16)


VECTOR_BYTES, _N_REGISTERS = _registers()

#: Candidates are filled up to a multiple of so many, on every machine.
ROWS = 8

#: Candidates and vectors of points in a tile.
HEIGHT, VECTORS = (ROWS if _N_REGISTERS == 32 else ROWS // 2), 2


def lanes(itemsize: int) -> int:
    """Points in a vector."""
    return VECTOR_BYTES // itemsize


def _tile(vectors: int) -> Any:
    """A tile of so many vectors, as numba wants an intrinsic."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _emit(vectors, context, builder, signature, arguments)

    def typed(
        _typing: Any, left: Any, _i: Any, columns: Any, _j: Any, constants: Any, norms: Any, out: Any, _more: Any,
        _last: Any,
    ) -> Any:  # fmt: skip
        """As `tile_costs`, where it is compiled."""
        number, truth = types.int64, types.boolean
        return types.void(left, number, columns, number, constants, norms, out, truth, truth), emit

    return typed


def _emit(vectors: int, context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """A loop over features that holds the sums of a tile, and the costs that come of them."""
    arrays = [context.make_array(signature.args[k])(context, builder, arguments[k]) for k in (0, 2, 4, 5, 6)]
    left, columns, constants, norms, out = arrays
    i, j, more, last = (arguments[k] for k in (1, 3, 7, 8))
    number = context.get_value_type(signature.args[0].dtype)
    size = number.get_abi_size(context.target_data)
    width = lanes(size)
    vector, whole = ir.VectorType(number, width), ir.IntType(64)

    def address(array: Any, kind: Any, row: Any, column: Any) -> Any:
        """Where number [row, column] of a C-ordered matrix, or [column] of a vector, is."""
        offset = builder.mul(column, ir.Constant(whole, size))
        if row is not None:
            offset = builder.add(offset, builder.mul(row, builder.extract_value(array.strides, 0)))
        bytes_ = builder.gep(builder.bitcast(array.data, ir.IntType(8).as_pointer()), [offset])
        return builder.bitcast(bytes_, kind.as_pointer())

    def load(array: Any, kind: Any, row: Any, column: Any) -> Any:
        return builder.load(address(array, kind, row, column), align=size)

    def spread(value: Any) -> Any:
        """A vector of one number."""
        none = ir.Constant(vector, ir.Undefined)
        first = builder.insert_element(none, value, ir.Constant(ir.IntType(32), 0))
        return builder.shuffle_vector(first, none, ir.Constant(ir.VectorType(ir.IntType(32), width), [0] * width))

    def beyond(value: Any, offset: int) -> Any:
        return builder.add(value, ir.Constant(whole, offset))

    rows = [beyond(i, r) for r in range(HEIGHT)]
    places = [beyond(j, v * width) for v in range(vectors)]
    cells = [(r, v) for r in range(HEIGHT) for v in range(vectors)]
    zero = ir.Constant(vector, [0.0] * width)
    begun = {(r, v): builder.select(more, load(out, vector, rows[r], places[v]), zero) for r, v in cells}
    before, loop, after = builder.block, builder.append_basic_block(), builder.append_basic_block()
    builder.branch(loop)

    builder.position_at_end(loop)
    feature = builder.phi(whole)
    feature.add_incoming(ir.Constant(whole, 0), before)
    held = {cell: builder.phi(vector) for cell in cells}
    points = [load(columns, vector, feature, place) for place in places]
    kind = ir.FunctionType(vector, [vector] * 3)
    name = f"llvm.fma.v{width}f{8 * size}"
    multiply_add = cast("Any", cgutils).get_or_insert_function(builder.module, kind, name)
    added = {}
    for r in range(HEIGHT):
        candidate = spread(load(left, number, rows[r], feature))
        for v in range(vectors):
            added[r, v] = builder.call(multiply_add, [candidate, points[v], held[r, v]])
    for cell in cells:
        held[cell].add_incoming(begun[cell], before)
        held[cell].add_incoming(added[cell], loop)
    following = beyond(feature, 1)
    feature.add_incoming(following, loop)
    n_features = builder.extract_value(columns.shape, 0)
    builder.cbranch(builder.icmp_signed("<", following, n_features), loop, after)

    builder.position_at_end(after)
    for r in range(HEIGHT):
        constant = spread(load(constants, number, None, rows[r]))
        for v in range(vectors):
            square = builder.fadd(constant, load(norms, vector, None, places[v]))
            cost = builder.fsub(square, builder.fadd(added[r, v], added[r, v]))
            cost = builder.select(builder.fcmp_ordered(">", cost, zero), cost, zero)
            value = builder.select(last, cost, added[r, v])
            builder.store(value, address(out, vector, rows[r], places[v]), align=size)
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
