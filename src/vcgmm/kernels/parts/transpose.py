"""Rows as columns: small squares of a matrix are turned in registers.

Both factors of a product are to lie as they are multiplied, which in OpenBLAS is up to twice as fast at the sizes
of a block.  Number by number, turning rows takes half as long as the product itself; eight rows of eight numbers,
loaded, shuffled and stored as vectors, take a fraction of that.
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

#: Rows and columns of a square.
SIDE = 8

#: Rounds of shuffles that turn a square: vectors i and i + distance become what `low` and `high` take of the two.
#: Each is one instruction on processors with vectors of eight floats.
ROUNDS = (
    (1, (0, 8, 1, 9, 4, 12, 5, 13), (2, 10, 3, 11, 6, 14, 7, 15)),
    (2, (0, 1, 8, 9, 4, 5, 12, 13), (2, 3, 10, 11, 6, 7, 14, 15)),
    (4, (0, 1, 2, 3, 8, 9, 10, 11), (4, 5, 6, 7, 12, 13, 14, 15)),
)

#: The column that each vector holds in the end.
COLUMN = (0, 2, 1, 3, 4, 6, 5, 7)


def _emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Load eight rows, shuffle them round by round, store eight columns."""
    rows_type, _, _, columns_type, _, _ = signature.args
    rows, first, column, columns, row, place = arguments
    number = context.get_value_type(rows_type.dtype)
    size = number.get_abi_size(context.target_data)
    vector, whole = ir.VectorType(number, SIDE), ir.IntType(64)

    def address(kind: Any, value: Any, i: Any, offset: int, j: Any) -> Any:
        """Where the numbers [i + offset, j:j + SIDE] of a matrix are."""
        array = context.make_array(kind)(context, builder, value)
        stride = builder.extract_value(array.strides, 0)
        beyond = builder.mul(builder.add(i, ir.Constant(whole, offset)), stride)
        begin = builder.add(beyond, builder.mul(j, ir.Constant(whole, size)))
        bytes_ = builder.gep(builder.bitcast(array.data, ir.IntType(8).as_pointer()), [begin])
        return builder.bitcast(bytes_, vector.as_pointer())

    held = [builder.load(address(rows_type, rows, first, i, column), align=size) for i in range(SIDE)]
    for distance, low, high in ROUNDS:
        for i in (i for i in range(SIDE) if not i & distance):
            pair = held[i], held[i + distance]
            for place_, taken in ((i, low), (i + distance, high)):
                mask = ir.Constant(ir.VectorType(ir.IntType(32), SIDE), list(taken))
                held[place_] = builder.shuffle_vector(*pair, mask)
    for i in range(SIDE):
        builder.store(held[i], address(columns_type, columns, row, COLUMN[i], place), align=size)
    return context.get_dummy_value()


def _turn(_typing: Any, rows: Any, _first: Any, _column: Any, columns: Any, _row: Any, _place: Any) -> Any:
    """As `turn_square`, where it is compiled."""
    number = types.int64
    return types.void(rows, number, number, columns, number, number), _emit


def _turn_plainly(rows: np.ndarray, first: int, column: int, columns: np.ndarray, row: int, place: int) -> None:
    """The same in plain Python."""
    columns[row : row + SIDE, place : place + SIDE] = rows[first : first + SIDE, column : column + SIDE].T


#: turn_square(rows, first, column, columns, row, place): columns[row + i, place + j] = rows[first + j, column + i]
#: for i and j below SIDE.  Both matrices are C-ordered and of one type; nobody checks that they are large enough.
turn_square: Callable[[np.ndarray, int, int, np.ndarray, int, int], None] = (
    _turn_plainly if cast("Any", config).DISABLE_JIT else cast("Any", intrinsic(_turn))
)


@part
def transpose(n: int, rows: np.ndarray, first: int, columns: np.ndarray) -> None:
    """columns[d, j] = rows[j, first + d] for the first n rows and all d; what lies beyond them is left as it is.

    Parameters
    ----------
    n : int, IN
    rows : (>= n, >= first + K) float, IN
    first : int, IN
    columns : (K, >= n) float, OUT
    """
    width = columns.shape[0]
    squares, whole = width - width % SIDE, n - n % SIDE
    for d in range(0, squares, SIDE):
        for j in range(0, whole, SIDE):
            turn_square(rows, j, first + d, columns, d, j)
        for j in range(whole, n):
            for i in range(d, d + SIDE):
                columns[i, j] = rows[j, first + i]
    for d in range(squares, width):
        for j in range(n):
            columns[d, j] = rows[j, first + d]


@part
def transpose_rows(n: int, rows: np.ndarray, columns: np.ndarray) -> None:
    """columns[:, j] = rows[j] for the first n rows, and 0 beyond them."""
    transpose(n, rows, int(np.int64(0)), columns)
    for d in range(columns.shape[0]):
        for j in range(n, columns.shape[1]):
            columns[d, j] = 0
