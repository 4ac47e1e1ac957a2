"""Which of many: comparisons of whole vectors become the bits of one integer, and are gone through bit by bit.

Where few of many are wanted, a branch for each is often guessed wrong, and a write for each takes long.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba import config
from numba.core import cgutils, types
from numba.extending import intrinsic

#: Numbers that are compared at once: as many as an integer has bits.
WORD = 64


def _emit_below(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Compare a vector of WORD numbers, which LLVM makes of as many registers as it takes."""
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    number, small = ir.IntType(32), ir.Constant(ir.IntType(32), 0)
    many = ir.VectorType(number, WORD)
    address = builder.bitcast(builder.gep(array.data, [arguments[1]]), many.as_pointer())
    nothing = ir.Constant(many, ir.Undefined)
    first = builder.insert_element(nothing, builder.trunc(arguments[2], number), small)
    limit = builder.shuffle_vector(first, nothing, ir.Constant(many, [0] * WORD))
    less = builder.icmp_signed("<", builder.load(address, align=4), limit)
    return builder.bitcast(less, ir.IntType(WORD))


def _below(_typing: Any, values: Any, _first: Any, _limit: Any) -> Any:
    """As `bits_below`, where it is compiled."""
    return types.int64(values, types.int64, types.int64), _emit_below


def _emit_lowest(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
    """LLVM's own function; told that there is a bit."""
    whole, truth = ir.IntType(WORD), ir.IntType(1)
    kind = ir.FunctionType(whole, [whole, truth])
    function = cast("Any", cgutils).get_or_insert_function(builder.module, kind, f"llvm.cttz.i{WORD}")
    return builder.call(function, [arguments[0], ir.Constant(truth, 1)])


def _lowest(_typing: Any, _bits: Any) -> Any:
    """As `lowest_bit`, where it is compiled."""
    return types.int64(types.int64), _emit_lowest


def _below_plainly(values: np.ndarray, first: int, limit: int) -> np.int64:
    """The same in plain Python."""
    which = values[first : first + WORD] < limit
    return np.int64(np.packbits(which, bitorder="little").view(np.int64)[0])


def _lowest_plainly(bits: np.int64) -> int:
    """The same in plain Python."""
    return (int(bits) & -int(bits)).bit_length() - 1


#: bits_below(values, first, limit): an int64 that has bit k where values[first + k] < limit, for k < WORD.  Values
#: are int32, and as many as that, which nobody checks.
bits_below: Callable[[np.ndarray, int, int], np.int64] = (
    _below_plainly if cast("Any", config).DISABLE_JIT else cast("Any", intrinsic(_below))
)

#: lowest_bit(bits): the place of the lowest bit of an int64 that is not 0.
lowest_bit: Callable[[np.int64], int] = (
    _lowest_plainly if cast("Any", config).DISABLE_JIT else cast("Any", intrinsic(_lowest))
)
