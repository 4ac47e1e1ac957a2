"""Rows less an origin, and their squared norms, in whole vectors.

LLVM finds these vectors by itself, but asks whether arrays lie too near each other, and what is left over, for
every row; and a sum in a loop that writes may be taken in another order (`jit`).  These are always the same.

Of fewer features than a vector holds the norm is added up one by one, as products in tiles are (`Vectors.tile`):
so the distance of equal rows, as such a product tells it, is 0 and no rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numba import config
from numba.core import types
from numba.extending import intrinsic

from .vectors import AS_WRITTEN, FUSED, Vectors, require_alike


def _emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """A loop over whole vectors, and the rest of the row number by number."""
    v = Vectors(context, builder, signature.args[0].dtype)
    source, origin, out = (v.array(signature.args[k], arguments[k]) for k in (0, 2, 3))
    row, j = arguments[1], arguments[4]
    n_features = builder.extract_value(origin.shape, 0)

    def subtracted(first: Any, held: list[Any]) -> list[Any]:
        difference = builder.fsub(v.load(source, row, first), v.load(origin, None, first), flags=AS_WRITTEN)
        v.store(difference, out, j, first)
        return [v.multiply_add(difference, difference, held[0])]

    whole = builder.and_(n_features, v.index(-v.width))
    (squares,) = v.loop(whole, v.width, [v.constant(0.0)], subtracted, perhaps_none=True)

    def rest(after: Any, held: list[Any]) -> list[Any]:
        place = builder.add(whole, after)
        here, there, at = (v.address(a, v.number, r, place) for a, r in ((source, row), (origin, None), (out, j)))
        values = (builder.load(address, align=v.size) for address in (here, there))
        difference = builder.fsub(*values, flags=AS_WRITTEN)
        builder.store(difference, at, align=v.size)
        return [builder.fadd(held[0], builder.fmul(difference, difference, flags=FUSED), flags=FUSED)]

    (total,) = v.loop(builder.sub(n_features, whole), 1, [v.total(squares)], rest, perhaps_none=True)
    return total


def _typed(_typing: Any, source: Any, _row: Any, origin: Any, out: Any, _j: Any) -> Any:
    """As `_plainly`, where it is compiled."""
    require_alike(source, origin, out)
    return out.dtype(source, types.int64, origin, out, types.int64), _emit


def _plainly(source: np.ndarray, row: int, origin: np.ndarray, out: np.ndarray, j: int) -> float:
    """The same in plain Python."""
    difference = source[row] - origin
    out[j, : len(origin)] = difference
    return cast("float", (difference * difference).sum())


#: subtract(source, row, origin, out, j): out[j, :D] = source[row] - origin for an origin of D features, and the
#: squared norm of that.  All are C-ordered and of one type; nobody checks that they are large enough.
subtract: Callable[..., float] = _plainly if cast("Any", config).DISABLE_JIT else cast("Any", intrinsic(_typed))
