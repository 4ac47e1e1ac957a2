"""Numbers of an array fetched one by one.

Where a loop reads numbers that lie anywhere, LLVM has many of them fetched by one instruction.  That may take
longer than to fetch them one after the other: up to three times as long on Cascade Lake, where it was measured.  A
loop with one such fetch in it stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba import config
from numba.core import types
from numba.extending import intrinsic

from .vectors import Vectors, require_alike


def _emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """As if another thread might write it: by the same instruction, but LLVM leaves the loop around it alone."""
    v = Vectors(context, builder, signature.args[0].dtype)
    address = v.address(v.array(signature.args[0], arguments[0]), v.number, None, arguments[1])
    whole = ir.IntType(8 * v.size)
    value = builder.load_atomic(builder.bitcast(address, whole.as_pointer()), "monotonic", v.size)
    return builder.bitcast(value, v.number)


def _typed(_typing: Any, array: Any, _place: Any) -> Any:
    """As `fetch`, where it is compiled."""
    require_alike(array)
    return array.dtype(array, types.int64), _emit


def _plainly(array: np.ndarray, place: int) -> Any:
    """The same in plain Python."""
    return array.reshape(-1)[place]


#: fetch(array, place): the number at a place of a C-ordered array, counted through its rows; nobody checks that it
#: is there.
fetch: Callable[[np.ndarray, Any], Any] = (
    _plainly if cast("Any", config).DISABLE_JIT else cast("Any", intrinsic(_typed))
)
