"""The new K(n) of a vector of points at once, and the points for which that will not do.

Keys hold rounded costs.  The full ones are looked up, and mostly are in the same order.  Old winners are looked up
as well: mostly they are among the new ones, or cost more.  Points for which it is not so, and those with an old
winner that is not on the list of candidates, are named, for `winners` to look at them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba import config
from numba.core import types
from numba.extending import intrinsic

from ..jit import part
from ..parts.one_by_one import fetch
from ..parts.selection import FEW, LANES
from ..parts.vectors import VECTOR_BYTES, Vectors, bytes_of

#: Points of one look, as many as there are numbers of 32 bits in a vector.
AT_A_LOOK = VECTOR_BYTES // 4

#: Where an old winner is that is not on the list, and where one is that is not known.
NOT_LISTED, NOT_KNOWN = -1, -2


def _emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Comparisons of vectors of AT_A_LOOK numbers, whatever their type."""
    v = Vectors(context, builder, types.int32)
    best, near, there, missing = (v.array(signature.args[k], arguments[k]) for k in (0, 5, 6, 7))
    mask, first, n, n_winners = arguments[1:5]
    key, cost = (context.get_value_type(signature.args[k].dtype) for k in (0, 5))

    def load(array: Any, kind: Any, k: int) -> Any:
        """The k-th of all points."""
        address = v.address(array, ir.VectorType(kind, AT_A_LOOK), None, v.beyond(first, k * LANES))
        return builder.load(address, align=bytes_of(kind))

    def number(value: int) -> Any:
        """The same for all points."""
        return v.constant(value)

    def slots(k: int) -> Any:
        """Places on the list of the candidates whose keys are k-th; nowhere if there are not as many winners."""
        masked = builder.and_(load(best, key, k), v.spread(mask))
        masked = masked if key.width == 32 else builder.trunc(masked, v.kind)
        return builder.select(counts[k], masked, number(NOT_KNOWN - 1))

    def bits(condition: Any) -> Any:
        """An integer that has a bit for every point."""
        return builder.zext(builder.bitcast(condition, ir.IntType(AT_A_LOOK)), v.whole)

    lane = ir.Constant(ir.VectorType(v.whole, AT_A_LOOK), list(range(AT_A_LOOK)))
    is_point = builder.icmp_signed("<", lane, v.spread(builder.sub(n, first)))
    counts = [v.spread(builder.icmp_signed("<", v.index(k), n_winners)) for k in range(FEW)]
    costs, chosen = [load(near, cost, k) for k in range(FEW)], [slots(k) for k in range(FEW)]
    falls = (builder.fcmp_ordered("<", costs[k], costs[k - 1]) for k in range(1, FEW))
    odd = reduce(builder.or_, [builder.and_(fall, counts[k]) for k, fall in enumerate(falls, 1)])
    for k in range(FEW):
        known = load(there, ir.IntType(32), k)
        again = reduce(builder.or_, [builder.icmp_signed("==", known, slot) for slot in chosen])
        absent = builder.icmp_signed("==", known, number(NOT_LISTED))
        left = builder.and_(builder.icmp_signed(">=", known, number(0)), builder.not_(again))
        for place, condition in ((k, absent), (FEW + k, left)):
            address = v.address(missing, v.whole, None, v.index(place))
            builder.store(bits(builder.and_(condition, is_point)), address, align=8)
    return bits(builder.and_(odd, is_point))


def _typed(
    _typing: Any, best: Any, _mask: Any, _first: Any, _n: Any, _n_winners: Any, near: Any, there: Any, missing: Any
) -> Any:
    """As `first_look`, where it is compiled."""
    number = types.int64
    return number(best, best.dtype, number, number, number, near, there, missing), _emit


def _plainly(
    best: np.ndarray, mask: int, first: int, n: int, n_winners: int, near: np.ndarray, there: np.ndarray,
    missing: np.ndarray,
) -> int:  # fmt: skip
    """The same in plain Python."""
    odd = 0
    missing[:] = 0
    for j in range(first, min(first + AT_A_LOOK, n)):
        bit = 1 << (j - first)
        odd |= bit if (np.diff(near[:n_winners, j]) < 0).any() else 0
        chosen = best[j::LANES][:n_winners] & mask
        for k, slot in enumerate(there[:n_winners, j]):
            missing[k] |= bit if slot == NOT_LISTED else 0
            missing[FEW + k] |= bit if slot >= 0 and slot not in chosen else 0
    return odd


#: odd = first_look(best, mask, first, n, n_winners, near, there, missing): of AT_A_LOOK points of a block, first..
#: `odd` has a bit for each point whose costs are not in order, missing[k], (2 FEW,) int64, for each whose k-th old
#: winner is not on the list, and missing[FEW + k] for each whose k-th is on the list and not among the best.
first_look: Callable[..., int] = _plainly if cast("Any", config).DISABLE_JIT else cast("Any", intrinsic(_typed))


@part
def look_up(
    n: int,
    best: np.ndarray,
    mask: int,
    costs: np.ndarray,
    all_known: bool,
    position: np.ndarray,
    order: np.ndarray,
    low: int,
    winners: np.ndarray,
    slots: np.ndarray,
    near: np.ndarray,
    there: np.ndarray,
) -> None:
    """Places on the list of a block's best candidates, their costs, and where on the list old winners are.

    Parameters
    ----------
    n, best, mask, costs, all_known, position, order, low, winners : IN, as in `winners.choose_winners`, C' <= FEW
    slots, near : (C', B) int64 and float, OUT, near only where costs are `all_known`
    there : (FEW, LANES) int32, OUT, NOT_LISTED or NOT_KNOWN for those that are nowhere
    """
    n_winners = winners.shape[1]
    for j in range(n):
        begin = np.int64(order[low + j]) * n_winners
        for k in range(n_winners):
            slot = np.int64(fetch(best, k * LANES + j) & mask)
            slots[k, j] = slot
            if all_known:
                near[k, j] = fetch(costs, slot * LANES + j)
            known = np.int64(fetch(winners, begin + k))
            there[k, j] = fetch(position, known) if known >= 0 else NOT_KNOWN
