"""Eight rows less a centre, and the squares of that, added to sums by feature, in whole vectors.

LLVM finds these vectors by itself where there are sixteen features at least, and asks for every eight rows whether
arrays lie too near each other (`jit`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numba import config
from numba.core import types
from numba.extending import intrinsic

from ..parts.vectors import AS_WRITTEN, Vectors, require_alike

#: Rows that are taken together.
ROWS = 8


def _in_pairs(builder: Any, values: list[Any]) -> Any:
    """The sum of values, two by two."""
    while len(values) > 1:
        values = [builder.fadd(a, b, flags=AS_WRITTEN) for a, b in zip(values[::2], values[1::2], strict=True)]
    return values[0]


def _emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """A loop over whole vectors of features, and the rest of them."""
    v = Vectors(context, builder, signature.args[0].dtype)
    rows, centre, sums = (v.array(signature.args[k], arguments[k]) for k in (0, 2, 3))
    eight = [v.beyond(arguments[1], r) for r in range(ROWS)]
    n_features = builder.extract_value(rows.shape, 1)

    def add(first: Any, wanted: Any) -> None:
        middle = v.load(centre, None, first)
        values = [v.load_where(rows, v.number, row, first, wanted) for row in eight]
        differences = [builder.fsub(value, middle, flags=AS_WRITTEN) for value in values]
        squares = [builder.fmul(difference, difference) for difference in differences]
        for k, terms in enumerate((differences, squares)):
            total = builder.fadd(v.load(sums, v.index(k), first), _in_pairs(builder, terms), flags=AS_WRITTEN)
            v.store(total, sums, v.index(k), first)

    def add_whole(first: Any, _: list[Any]) -> list[Any]:
        add(first, None)
        return []

    whole = builder.and_(n_features, v.index(-v.width))
    v.loop(whole, v.width, [], add_whole, perhaps_none=True)
    n_left = builder.sub(n_features, whole)
    with builder.if_then(builder.icmp_signed("<", v.index(0), n_left)):
        add(whole, v.first_lanes(n_left))
    return context.get_dummy_value()


def _typed(_typing: Any, rows: Any, _n: Any, centre: Any, sums: Any) -> Any:
    """As `_plainly`, where it is compiled."""
    require_alike(rows, centre, sums)
    return types.void(rows, types.int64, centre, sums), _emit


def _plainly(rows: np.ndarray, n: int, centre: np.ndarray, sums: np.ndarray) -> None:
    """The same in plain Python."""
    n_features = rows.shape[1]
    differences = rows[n : n + ROWS] - centre[:n_features]
    sums[0, :n_features] += differences.sum(axis=0)
    sums[1, :n_features] += (differences * differences).sum(axis=0)


#: add_eight_rows(rows, n, centre, sums): sums[0] += t and sums[1] += t^2 for t = rows[n + r] - centre, r < ROWS.
#: All are C-ordered and of one type; centre, (W,), and sums, (2, W), have room for whole vectors, and the centre
#: is 0 beyond the features.  Nobody checks that they are large enough.
add_eight_rows: Callable[..., None]
add_eight_rows = _plainly if cast("Any", config).DISABLE_JIT else cast("Any", intrinsic(_typed))
