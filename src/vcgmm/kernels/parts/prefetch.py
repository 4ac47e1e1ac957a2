"""A hint to the processor: these bytes will be read soon.

Where little is computed for every byte, loops wait for memory and memory for loops; a hint some lines ahead lets
both work at the same time (the coreset's passes: 8 GB/s a thread without, 13 with it).  It changes no result, and
may point beyond the end of an array: what cannot be fetched is not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba import config
from numba.core import cgutils, types
from numba.extending import intrinsic

from ..jit import part

#: Bytes that are fetched at once.
LINE = 64

#: Bytes between what is computed with and what is fetched: less comes too late, and 4,096, which falls into the
#: same places of the cache, is no better.
AHEAD = 3072


def emit_hint(builder: Any, begin: Any, offset: Any) -> None:
    """LLVM's own hint, for reading, to be kept in all caches: so many bytes after a pointer."""
    pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
    place = builder.gep(builder.bitcast(begin, pointer), [offset])
    kind = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
    hint = cast("Any", cgutils).get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
    builder.call(hint, [place, *(ir.Constant(number, value) for value in (0, 3, 1))])


def _emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    emit_hint(builder, array.data, arguments[1])
    return context.get_dummy_value()


def _hint(_typing: Any, array: Any, offset: Any) -> Any:
    """As `prefetch`, where it is compiled."""
    return types.void(array, offset), _emit


def _nothing(array: np.ndarray, offset: int) -> None:
    """Plain Python has no such hint."""


#: prefetch(array, offset): the line of memory `offset` bytes after the beginning of an array will be read soon.
prefetch: Callable[[np.ndarray, int], None] = (
    _nothing if cast("Any", config).DISABLE_JIT else cast("Any", intrinsic(_hint))
)


@part
def hint_row(array: np.ndarray, row: int) -> None:
    """All of a row of a C-ordered matrix will be read soon."""
    hint_columns(array, row, int(np.int64(0)), array.shape[1])


@part
def hint_columns(array: np.ndarray, row: int, first: int, last: int) -> None:
    """Columns first..last-1 of a row of a C-ordered matrix will be read soon, of which there are some."""
    begin = (row * array.shape[1] + first) * array.itemsize
    end = (row * array.shape[1] + last) * array.itemsize
    for offset in range(begin, end, LINE):
        prefetch(array, offset)
    prefetch(array, end - 1)
