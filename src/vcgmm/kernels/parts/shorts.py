"""Rows as short integers, for comparisons that need not be right to the last digit.

Processors multiply pairs of 16-bit integers and add both products to a 32-bit sum in one instruction, and their
registers hold twice as many of them as floats: products take half of the time.  Older processors need two
instructions for it, by count as long as for floats.
Integers are added up without rounding, so what is compared are the true distances between rows that have been
rounded to whole steps: nothing cancels.

Two features of a row are a pair, and after an odd last one there is a 0.  A pair lies in an array of float32, of
which it is no number but the bits: so pairs are turned into columns by the same compiled code as floats are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba import config
from numba.core import types
from numba.extending import intrinsic

from ..jit import part
from .distances import squared_distance
from .vectors import AS_WRITTEN, Vectors

#: Norm of the longest row, in steps.  Of centres of up to twice that, ||c||^2 - 2 <c, x> fits into 32 bits.
LARGEST = 16_000.0

#: Rounding does not matter where rows are so many steps from their nearest centre: a squared distance is then off
#: by a third of a percent.  What rows are nearer than that, as a share of it, may come to a quarter in the mean.
FAR_ENOUGH = 256.0
SHARE = 0.75

#: Rows by which that is told.
LOOKED_AT = 64

#: Fewer features than this, or fewer products a row, are not worth the rounding.
FEATURES = 16
PRODUCTS = 48

#: Squared norms up to which the longest row may be none at all, as far as floats of 4 bytes can square it.
NOTHING = 1e-30

#: A float32 to which this is added has the whole number nearest to it at the end of its bits, as 16 of them.
MAGIC = 1.5 * 2.0**23


def _emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """A loop over whole vectors, and the rest of the row number by number."""
    v = Vectors(context, builder, signature.args[0].dtype)
    rows, pairs = (v.array(signature.args[k], arguments[k]) for k in (0, 3))
    row, factor = arguments[1:3]
    short, single, small = ir.IntType(16), ir.FloatType(), ir.IntType(32)

    def rounded(values: Any, spread: Any) -> Any:
        """Numbers, or one, as short integers: the product and the sum are rounded each, as `np.rint` has it."""
        many = isinstance(values.type, ir.VectorType)
        kinds = (ir.VectorType(kind, v.width) if many else kind for kind in (single, small, short))
        floats, bits, shorts = kinds
        product = builder.fmul(values, spread, flags=AS_WRITTEN)
        product = product if v.size == 4 else builder.fptrunc(product, floats)
        magic = ir.Constant(floats, [MAGIC] * v.width if many else MAGIC)
        return builder.trunc(builder.bitcast(builder.fadd(product, magic, flags=AS_WRITTEN), bits), shorts)

    def place(kind: Any, first: Any) -> Any:
        """Where a short integer of the row is, or a vector from there on."""
        begin = v.address(pairs, short, row, v.index(0))
        return builder.bitcast(builder.gep(begin, [first]), kind.as_pointer())

    def whole(first: Any, _: list[Any]) -> list[Any]:
        value = rounded(v.load(rows, row, first), v.spread(factor))
        builder.store(value, place(value.type, first), align=2)
        return []

    n_features = builder.extract_value(rows.shape, 1)
    n_whole = builder.and_(n_features, v.index(-v.width))
    v.loop(n_whole, v.width, [], whole, perhaps_none=True)

    def rest(after: Any, _: list[Any]) -> list[Any]:
        at = builder.add(n_whole, after)
        value = builder.load(v.address(rows, v.number, row, at), align=v.size)
        builder.store(rounded(value, factor), place(short, at), align=2)
        return []

    v.loop(builder.sub(n_features, n_whole), 1, [], rest, perhaps_none=True)
    return context.get_dummy_value()


def _typed(_typing: Any, rows: Any, _row: Any, _factor: Any, pairs: Any) -> Any:
    """As `_plainly`, where it is compiled."""
    return types.void(rows, types.int64, rows.dtype, pairs), _emit


def _plainly(rows: np.ndarray, row: int, factor: float, pairs: np.ndarray) -> None:
    """The same in plain Python."""
    numbers = np.float32(rows[row] * rows.dtype.type(factor)) + np.float32(MAGIC)
    pairs[row].view(np.int16)[: rows.shape[1]] = numbers.view(np.int32).astype(np.int16)


#: shorten_row(rows, row, factor, pairs): the first features of pairs[row] become rows[row] * factor, rounded.
#: Both are C-ordered; nobody checks that they are large enough.
shorten_row: Callable[..., None] = _plainly if cast("Any", config).DISABLE_JIT else cast("Any", intrinsic(_typed))


def may_be_short(n_features: int) -> bool | None:
    """True, or None where rows are never worth the rounding, so that nothing of it need be compiled."""
    return True if n_features >= FEATURES else None


@part
def steps_per_unit(n: int, squares: np.ndarray, n_features: int, n_products: int) -> float:
    """How many steps make a unit of rows; 0 where floats are as good.

    Parameters
    ----------
    n : int, IN
    squares : (>= n,) float, IN, squared norms of the rows
    n_features : int, IN
    n_products : int, IN, how many centres each row will be compared with in all
    """
    if n_features < FEATURES or n_products < PRODUCTS:
        return 0.0
    largest = squares.dtype.type(0)
    for i in range(n):
        largest = max(largest, squares[i])
    return LARGEST / math.sqrt(np.float64(largest)) if largest > NOTHING else 0.0


@part
def shorten(n: int, rows: np.ndarray, steps: float, pairs: np.ndarray) -> None:
    """The first n rows in whole steps.

    Parameters
    ----------
    n : int, IN
    rows : (>= n, D) float, IN
    steps : float64, IN, from `steps_per_unit`
    pairs : (>= n, (D + 1) // 2) float32, OUT, the bits of pairs
    """
    factor, nothing = rows.dtype.type(steps), np.float32(0)
    for i in range(n):
        pairs[i, pairs.shape[1] - 1] = nothing  # after an odd last feature
        shorten_row(rows, i, factor, pairs)


@part
def short_square(rows: np.ndarray, i: int, factor: float) -> float:
    """||row||^2 of row i as it is rounded: a whole number."""
    square = 0.0
    for d in range(rows.shape[1]):
        number = np.float64(np.rint(np.float32(rows[i, d] * factor)))
        square += number * number
    return square


@part
def shorten_centres(k: int, centres: np.ndarray, steps: float, pairs: np.ndarray, squares: np.ndarray) -> bool:
    """Centres in the same steps; whether none is too long for that.

    Parameters
    ----------
    k : int, IN
    centres : (>= k, D) float, IN
    steps : float64, IN
    pairs : (m, (D + 1) // 2) float32, OUT, 0 beyond k
    squares : (m,) int32, OUT, squared norms, as large as can be beyond k
    """
    factor, nothing, longest = centres.dtype.type(steps), np.float32(0), 4.0 * LARGEST * LARGEST
    for i in range(k):
        square = short_square(centres, i, factor)
        if not square <= longest:
            return False
        squares[i] = np.int32(square)
    shorten(k, centres, steps, pairs)
    for i in range(k, squares.shape[0]):
        squares[i] = np.int32(0x7FFFFFFF)
        for p in range(pairs.shape[1]):
            pairs[i, p] = nothing
    return True


@part
def steps_tell(n: int, rows: np.ndarray, centres: np.ndarray, ids: np.ndarray, steps: float) -> bool:
    """Whether most rows are far enough from their centres, as some of the first n tell.

    Parameters
    ----------
    n : int, IN
    rows : (>= n, D) float, IN
    centres : (k, D) float, IN
    ids : (>= n,) int32, IN
    steps : float64, IN
    """
    apart, seen = 0.0, 0
    for i in range(0, n, max(1, n // LOOKED_AT)):
        apart += min(steps * math.sqrt(squared_distance(rows, i, centres, ids[i])), FAR_ENOUGH)
        seen += 1
    return apart >= SHARE * FAR_ENOUGH * seen
