"""Multiples of rows added to rows, in whole vectors.

LLVM finds these vectors by itself, but asks whether rows overlap, and what is left over, for every row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numba import config
from numba.core import types
from numba.extending import intrinsic

from ..jit import part
from .vectors import VECTOR_BYTES, Vectors, lanes


def _emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    v = Vectors(context, builder, signature.args[0].dtype)
    totals, rows = (v.array(signature.args[k], arguments[k]) for k in (0, 2))
    _, slot, _, row, first, factor = arguments
    added = v.multiply_add(v.load(rows, row, first), v.spread(factor), v.load(totals, slot, first))
    v.store(added, totals, slot, first)
    return context.get_dummy_value()


def _typed(_typing: Any, totals: Any, _slot: Any, rows: Any, _row: Any, _first: Any, _factor: Any) -> Any:
    """As `add_vector`, where it is compiled."""
    number = types.int64
    return types.void(totals, number, rows, number, number, totals.dtype), _emit


def _plainly(totals: np.ndarray, slot: int, rows: np.ndarray, row: int, first: int, factor: float) -> None:
    """The same in plain Python."""
    here = slice(first, first + lanes(totals.itemsize))
    totals[slot, here] += factor * rows[row, here]


#: add_vector(totals, slot, rows, row, first, factor): totals[slot] += factor * rows[row], a vector from `first`.
#: Both are C-ordered and of one type; nobody checks that they are large enough.
add_vector: Callable[..., None] = _plainly if cast("Any", config).DISABLE_JIT else cast("Any", intrinsic(_typed))


@part
def add_multiples(
    n: int, rows: np.ndarray, slots: np.ndarray, parts: np.ndarray, sums: np.ndarray, masses: np.ndarray
) -> None:
    """Add part times its row, for every point and winner, to the winner's sum, and the part to its mass.

    Parameters
    ----------
    n : int, IN, points
    rows : (>= n, >= W) float, IN
    slots : (C', B) int64, IN, the winners' places in `sums`; negative ones are left out
    parts : (1 + C', B) float64, IN, from the second row on
    sums : (L, W) float, IN/OUT, W a multiple of `vectors.lanes`
    masses : (L,) float64, IN/OUT
    """
    width, n_columns = VECTOR_BYTES // sums.itemsize, sums.shape[1]
    for j in range(n):
        for k in range(slots.shape[0]):
            part, slot = parts[k + 1, j], slots[k, j]
            if part == 0.0 or slot < 0:
                continue
            masses[slot] += part
            factor = sums.dtype.type(part)
            for first in range(0, n_columns, width):
                add_vector(sums, slot, rows, j, first, factor)
