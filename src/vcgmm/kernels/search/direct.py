"""Squared distances of one point to few rows, in whole vectors.

LLVM finds vectors in a loop over features by itself, but adds the last ones up number by number, and takes one row
after the other; these wait for memory together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba import config
from numba.core import types
from numba.extending import intrinsic

from ..parts.selection import FEW, LANES
from ..parts.vectors import AS_WRITTEN, Vectors, require_alike


def _squares(v: Vectors, rows: Any, slots: Sequence[Any], points: Any, j: Any) -> list[Any]:
    """||rows[slot] - points[j]||^2 of every slot; what lies beyond the last feature is not looked at."""
    builder = v.builder
    n_features = builder.extract_value(rows.shape, 1)

    def added(first: Any, held: list[Any], wanted: Any = None) -> list[Any]:
        here = v.load_where(points, v.number, j, first, wanted)
        there = [v.load_where(rows, v.number, slot, first, wanted) for slot in slots]
        ways = [builder.fsub(row, here, flags=AS_WRITTEN) for row in there]
        return [v.multiply_add(way, way, total) for way, total in zip(ways, held, strict=True)]

    whole = builder.and_(n_features, v.index(-v.width))
    rest = builder.sub(n_features, whole)
    wanted = v.first_lanes(rest)
    sums = v.loop(whole, v.width, [v.constant(0.0)] * len(slots), added, perhaps_none=True)
    sums = v.loop(rest, v.width, sums, lambda _, held: added(whole, held, wanted), perhaps_none=True)
    return [v.total(total) for total in sums]


def _emit_one(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Of one row, returned."""
    v = Vectors(context, builder, signature.args[0].dtype)
    rows, points = (v.array(signature.args[k], arguments[k]) for k in (0, 2))
    return _squares(v, rows, [arguments[1]], points, arguments[3])[0]


def _emit_few(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Of the rows that keys name."""
    v = Vectors(context, builder, signature.args[0].dtype)
    rows, points, best, near = (v.array(signature.args[k], arguments[k]) for k in (0, 1, 3, 5))
    j, mask = arguments[2], arguments[4]
    key: ir.IntType = context.get_value_type(signature.args[3].dtype)
    keys = (v.number_at(best, key, v.beyond(j, k * LANES)) for k in range(FEW))
    slots = [builder.and_(one, mask) for one in keys]
    slots = [slot if key.width == v.whole.width else builder.sext(slot, v.whole) for slot in slots]
    for k, square in enumerate(_squares(v, rows, slots, points, j)):
        builder.store(square, v.address(near, v.number, None, v.beyond(j, k * LANES)), align=v.size)
    return context.get_dummy_value()


def _typed_one(_typing: Any, rows: Any, _slot: Any, points: Any, _j: Any) -> Any:
    """As `square_to`, where it is compiled."""
    require_alike(rows, points)
    return rows.dtype(rows, types.int64, points, types.int64), _emit_one


def _typed_few(_typing: Any, rows: Any, points: Any, _j: Any, best: Any, _mask: Any, near: Any) -> Any:
    """As `squares_to_few`, where it is compiled."""
    require_alike(rows, points, near)
    return types.void(rows, points, types.int64, best, best.dtype, near), _emit_few


def _plainly(rows: np.ndarray, slot: int, points: np.ndarray, j: int) -> float:
    """The first in plain Python."""
    difference = rows[slot] - points[j, : rows.shape[1]]
    return cast("float", (difference * difference).sum())


def _few_plainly(
    rows: np.ndarray, points: np.ndarray, j: int, best: np.ndarray, mask: int, near: np.ndarray
) -> None:
    """The second in plain Python."""
    for k, slot in enumerate(best[j : FEW * LANES : LANES] & mask):
        near[k, j] = _plainly(rows, slot, points, j)


#: square_to(rows, slot, points, j) = ||rows[slot] - points[j]||^2; points may have more features, which are not
#: looked at.  Arrays are C-ordered and of one type; nobody checks that they are large enough.
square_to: Callable[..., float]

#: squares_to_few(rows, points, j, best, mask, near): the same for the rows that the FEW least keys of point j name
#: (`selection`), as near[k, j] of a (FEW, LANES) matrix.
squares_to_few: Callable[..., None]

if cast("Any", config).DISABLE_JIT:
    square_to, squares_to_few = _plainly, _few_plainly
else:
    square_to, squares_to_few = (cast("Any", intrinsic(typed)) for typed in (_typed_one, _typed_few))
