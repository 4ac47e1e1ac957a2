"""The new K(n) of a vector of points at once, and the points for which that will not do.

Keys hold rounded costs.  The full ones are looked up, and mostly are in the same order.  Old winners are looked up
as well: mostly they are among the new ones, or cost more.  Where it is not so, and where an old winner is not on
the list of candidates, the point is named, for `winners` to look at it.
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

from .selection import FEW, LANES
from .vectors import Vectors, lanes


class _Look:
    """What is looked up, as it is being compiled: vectors of integers of 64 bits, one number for a point."""

    def __init__(self, context: Any, builder: Any, signature: Any, arguments: Any) -> None:
        self.builder = builder
        self.v = v = Vectors(context, builder, signature.args[2].dtype)
        self.keys, self.costs, self.position, self.order, self.winners, self.slots, self.near, self.missing = (
            v.array(signature.args[k], arguments[k]) for k in (0, 2, 4, 5, 9, 10, 11, 12)
        )
        self.key, self.row = (context.get_value_type(signature.args[k].dtype) for k in (0, 5))
        self.mask, self.all_known, self.low, self.first, n = (arguments[k] for k in (1, 3, 6, 7, 8))
        self.n_winners = builder.extract_value(self.winners.shape, 1)
        self.wholes = ir.VectorType(v.whole, v.width)
        lane = ir.Constant(self.wholes, list(range(v.width)))
        self.is_point = builder.icmp_signed("<", lane, v.spread(builder.sub(n, self.first)))
        self.place = builder.add(v.spread(self.first), lane)

    def number(self, value: int) -> Any:
        """The same for all points."""
        return ir.Constant(self.wholes, [value] * self.v.width)

    def counts(self, k: int) -> Any:
        """Whether there is a k-th winner."""
        return self.v.spread(self.builder.icmp_signed("<", self.v.index(k), self.n_winners))

    def either(self, conditions: list[Any]) -> Any:
        """Whether one of them holds."""
        return reduce(self.builder.or_, conditions)

    def both(self, *conditions: Any) -> Any:
        """Whether all of them hold."""
        return reduce(self.builder.and_, conditions)

    def widened(self, values: Any) -> Any:
        """Integers of 64 bits."""
        return values if values.type == self.wholes else self.builder.sext(values, self.wholes)

    def least(self, k: int) -> Any:
        """Places on the list of the candidates whose keys are k-th."""
        kind = ir.VectorType(self.key, self.v.width)
        address = self.v.address(self.keys, kind, None, self.v.beyond(self.first, k * LANES))
        keys = self.builder.load(address, align=self.key.width // 8)
        return self.widened(self.builder.and_(keys, self.v.spread(self.mask)))

    def costs_at(self, slots: Any, wanted: Any) -> Any:
        """Costs of candidates at these places of the list."""
        cost = self.builder.add(self.builder.mul(slots, self.number(LANES)), self.place)
        return self.v.gather(self.costs, self.v.number, cost, wanted, 0.0)

    def rows(self) -> Any:
        """Where the points are among all."""
        place = self.builder.add(self.low, self.first)
        return self.widened(self.v.load_where(self.order, self.row, None, place, self.is_point))

    def old_winners(self, rows: Any, k: int) -> Any:
        """The k-th of every point; -1 for none."""
        entry = self.builder.add(self.builder.mul(rows, self.v.spread(self.n_winners)), self.number(k))
        wanted = self.both(self.is_point, self.counts(k))
        return self.widened(self.v.gather(self.winners, ir.IntType(32), entry, wanted, -1))

    def slots_of(self, clusters: Any) -> Any:
        """Places on the list; -1 for clusters that are not on it, -2 for none."""
        known = self.builder.icmp_signed(">=", clusters, self.number(0))
        return self.widened(self.v.gather(self.position, ir.IntType(32), clusters, known, -2))

    def bits(self, condition: Any) -> Any:
        """An integer that has a bit for every point."""
        return self.builder.zext(self.builder.bitcast(condition, ir.IntType(self.v.width)), self.v.whole)


def _emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """As the module says."""
    look = _Look(context, builder, signature, arguments)
    v = look.v
    slots = [look.least(k) for k in range(FEW)]
    costs = [look.costs_at(chosen, look.is_point) for chosen in slots]
    for k in range(FEW):
        v.store(slots[k], look.slots, v.index(k), look.first)
        v.store(costs[k], look.near, v.index(k), look.first)
    last = v.load(look.near, builder.sub(look.n_winners, v.index(1)), look.first)
    special = [look.both(builder.fcmp_ordered("<", costs[k], costs[k - 1]), look.counts(k)) for k in range(1, FEW)]
    missing, leftover, rows = [], [], look.rows()
    for k in range(FEW):
        known = look.slots_of(look.old_winners(rows, k))
        missing.append(builder.icmp_signed("==", known, look.number(-1)))
        again = [look.both(builder.icmp_signed("==", known, slots[m]), look.counts(m)) for m in range(FEW)]
        left = look.both(builder.not_(look.either(again)), builder.icmp_signed(">=", known, look.number(0)))
        leftover.append(left)
        left = look.both(left, v.spread(look.all_known))
        special.append(look.both(left, builder.fcmp_ordered("<", look.costs_at(known, left), last)))
    odd = look.both(look.either(special), look.is_point)
    absent = [look.both(these, builder.not_(odd)) for these in missing]
    for k, these in enumerate(absent + leftover):
        builder.store(look.bits(these), v.address(look.missing, v.whole, None, v.index(k)), align=8)
    return look.bits(odd)


def _typed(
    _typing: Any, best: Any, _mask: Any, costs: Any, _all_known: Any, position: Any, order: Any, _low: Any,
    _first: Any, _n: Any, winners: Any, slots: Any, near: Any, missing: Any,
) -> Any:  # fmt: skip
    number = types.int64
    arrays = costs, types.boolean, position, order, number, number, number, winners, slots, near, missing
    return number(best, best.dtype, *arrays), _emit


def _plainly(
    best: np.ndarray, mask: int, costs: np.ndarray, all_known: bool, position: np.ndarray, order: np.ndarray,
    low: int, first: int, n: int, winners: np.ndarray, slots: np.ndarray, near: np.ndarray, missing: np.ndarray,
) -> int:  # fmt: skip
    """The same in plain Python."""
    odd, n_winners = 0, winners.shape[1]
    missing[:] = 0
    for j in range(first, min(first + lanes(costs.itemsize), n)):
        bit = 1 << (j - first)
        for k in range(n_winners):
            slots[k, j] = best[k * LANES + j] & mask
            near[k, j] = costs[slots[k, j], j]
        known = [position[c] for c in winners[order[low + j]] if c >= 0]
        left = [slot for slot in known if slot >= 0 and slot not in slots[:n_winners, j]]
        is_odd = (np.diff(near[:n_winners, j]) < 0).any()
        is_odd |= all_known and (costs[left, j] < near[n_winners - 1, j]).any()
        odd |= bit if is_odd else 0
        for k, c in enumerate(winners[order[low + j]]):
            missing[k] |= bit if c >= 0 and position[c] < 0 and not is_odd else 0
            missing[FEW + k] |= bit if c >= 0 and position[c] in left else 0
    return odd


#: odd = first_look(best, mask, costs, all_known, position, order, low, first, n, winners, slots, near, missing):
#: for a vector of points, first.. of a block.  Arrays are those of `winners.choose_winners`; C' <= FEW, and there
#: is memory for FEW rows of `slots` and `near`.  `odd` has a bit for each point that is to be looked at,
#: missing[k], (2 FEW,) int64, for each other one whose k-th old winner is not on the list, and missing[FEW + k]
#: for each one whose k-th is on the list and not among the best.  Costs of these are looked up if `all_known`.
first_look: Callable[..., int] = _plainly if cast("Any", config).DISABLE_JIT else cast("Any", intrinsic(_typed))
