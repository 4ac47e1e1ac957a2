"""The new K(n) of a block of points, and the truncated posteriors over it."""

from __future__ import annotations

import numpy as np

from ..cells.costs import costs_of_pairs
from ..jit import part
from ..parts.bits import lowest_bit
from ..parts.exponential import exp_below_zero
from ..parts.selection import FEW, LANES
from .direct import square_to
from .first_look import AT_A_LOOK, first_look, look_up


@part
def insert(slot: np.int64, cost: float, place: int, j: int, slots: np.ndarray, near: np.ndarray) -> None:
    """Put a cluster where its cost belongs among the first `place` of point j, which are in order."""
    while place > 0 and near[place - 1, j] > cost:
        near[place, j] = near[place - 1, j]
        slots[place, j] = slots[place - 1, j]
        place -= 1
    near[place, j] = cost
    slots[place, j] = slot


@part
def has(slot: np.int64, j: int, slots: np.ndarray) -> bool:
    """Whether a cluster is among those of point j already."""
    there = False
    for place in range(slots.shape[0]):
        there |= slots[place, j] == slot
    return there


@part
def is_noted(cluster: int, first: int, last: int, absent: np.ndarray) -> bool:
    """Whether a cluster is in one of the pairs first..last-1."""
    noted = False
    for i in range(first, last):
        noted |= absent[1, i] == cluster
    return noted


@part
def choose_for(
    j: int,
    best: np.ndarray,
    mask: int,
    costs: np.ndarray,
    is_far: np.ndarray | None,
    list_of_candidates: np.ndarray,
    position: np.ndarray,
    winners: np.ndarray,
    point: int,
    slots: np.ndarray,
    near: np.ndarray,
    n_absent: int,
    absent: np.ndarray,
    holder: np.ndarray,
) -> int:
    """The new K(n) of point j, which is row `point`; arrays as in `choose_winners`."""
    n_winners = winners.shape[1]
    last, begun = n_winners - 1, n_absent
    # Keys hold rounded costs: look the full ones up and put near ties in order.
    before = costs.dtype.type(-1)
    for k in range(n_winners):
        slot = np.int64(best[k * LANES + j] & mask)
        cost = costs[slot, j]
        if is_far is not None and is_far[slot]:
            absent[0, n_absent] = j
            absent[1, n_absent] = list_of_candidates[slot]
            n_absent += 1
            cost = costs.dtype.type(np.inf)  # it comes back by itself, in the place that this keeps free
        holder[slot] = j
        if cost >= before:
            near[k, j] = cost
            slots[k, j] = slot
            before = cost
        else:
            insert(slot, cost, k, j, slots, near)
    # What was known is not forgotten: an old winner gives way only to a cluster that costs less.
    for k in range(n_winners):
        known = winners[point, k]
        if known < 0:
            continue
        slot = np.int64(position[known])
        if slot < 0:
            if is_far is None or not is_noted(known, begun, n_absent, absent):
                absent[0, n_absent] = j
                absent[1, n_absent] = known
                n_absent += 1
        elif holder[slot] != j:
            cost = costs[slot, j]
            if cost < near[last, j]:
                insert(slot, cost, last, j, slots, near)
                holder[slot] = j
    return n_absent


@part
def compare_left(
    first: int,
    costs: np.ndarray,
    all_known: bool,
    rows: np.ndarray,
    points: np.ndarray,
    near: np.ndarray,
    there: np.ndarray,
    missing: np.ndarray,
) -> np.int64:
    """Look at the old winners on the list that are not among the new ones, of a vector of points.

    Parameters
    ----------
    first : int, IN, the first of the points
    costs, all_known, rows, points, near : as in `choose_winners`
    there, missing : IN, from `look_up` and `first_look`

    Returns
    -------
    int64, with a bit for each point of which one costs less than the dearest new one
    """
    odd, last = np.int64(0), near.shape[0] - 1
    for k in range(near.shape[0]):
        left = missing[FEW + k]
        while left != 0:
            bit = lowest_bit(left)
            j = first + bit
            slot = np.int64(there[k, j])
            if not all_known:
                costs[slot, j] = square_to(rows, slot, points, j)
            one = np.int64(1) << np.int64(bit)
            left &= ~one
            if costs[slot, j] < near[last, j]:
                odd |= one
    return odd


@part
def choose_winners(
    n: int,
    best: np.ndarray,
    mask: int,
    costs: np.ndarray,
    all_known: bool,
    rows: np.ndarray,
    points: np.ndarray,
    is_far: np.ndarray | None,
    some_far: bool,
    list_of_candidates: np.ndarray,
    position: np.ndarray,
    order: np.ndarray,
    low: int,
    winners: np.ndarray,
    slots: np.ndarray,
    near: np.ndarray,
    absent: np.ndarray,
    holder: np.ndarray,
    there: np.ndarray,
    missing: np.ndarray,
) -> int:
    """The new K(n) of a block as far as products tell: of its candidates and the old K(n), the least cost first.

    Parameters
    ----------
    n : int, IN, points in the block
    best : (>= FEW LANES and >= C' LANES,) int, IN, from `survey`
    mask : int, IN, the bits of a key that hold the index
    costs : (L', LANES) float, IN, likewise; scratch where not all are known
    all_known : bool, IN, whether these are costs of all candidates; else `near` holds those of the best already,
        which are distances, and C' <= FEW
    rows, points : (L', D) and (>= n, >= D) float, IN, whose distances are costs of old winners then
    is_far : (L',) bool or None, IN, candidates for which products are not good; None: there are never any
    some_far : bool, IN, whether there are any
    list_of_candidates : (L,) int32, IN
    position : (C,) int32, IN, place of a cluster in the candidate list, or -1 for one that is not on it or far
    order, low : IN, point j of the block is row order[low + j]
    winners : (N', C') int32, IN, the old K(n), -1 where not known
    slots : (C', B) int64, OUT, place in the candidate list
    near : (C', B) float, with memory for FEW rows, OUT, costs, ascending; IN as well where not all are known
    absent : (2, 2 C' B) int64, OUT, pairs of a point j and a cluster whose cost is to be computed directly
    holder : (L',) int32, scratch, the last point that had a candidate among its winners
    there, missing : (FEW, LANES) int32 and (2 FEW,) int64, scratch

    Returns
    -------
    int, the number of pairs in `absent`
    """
    n_absent = int(np.int64(0))
    holder[:] = -1
    looks = not some_far and winners.shape[1] <= FEW
    if looks:
        look_up(n, best, mask, costs, all_known, position, order, low, winners, slots, near, there)
    for first in range(0, n, AT_A_LOOK):
        odd = (np.int64(1) << np.int64(min(AT_A_LOOK, n - first))) - np.int64(1)  # all of them
        if looks:
            look = first_look(best, mask, first, n, winners.shape[1], near, there, missing)
            odd = np.int64(look) | compare_left(first, costs, all_known, rows, points, near, there, missing)
            for k in range(winners.shape[1]):
                gone = missing[k] & ~odd
                while gone != 0:
                    bit = lowest_bit(gone)
                    j = first + bit
                    absent[0, n_absent] = j
                    absent[1, n_absent] = winners[order[low + j], k]
                    n_absent += 1
                    gone &= ~(np.int64(1) << np.int64(bit))
        while odd != 0:
            bit = lowest_bit(odd)
            j = first + bit
            if not all_known:
                for k in range(winners.shape[1]):
                    costs[slots[k, j], j] = near[k, j]
            n_absent = choose_for(
                j, best, mask, costs, is_far, list_of_candidates, position, winners, order[low + j], slots, near,
                n_absent, absent, holder,
            )  # fmt: skip
            odd &= ~(np.int64(1) << np.int64(bit))
    return n_absent


@part
def choose_absent(
    n_absent: int,
    absent: np.ndarray,
    rows: np.ndarray,
    costs: np.ndarray,
    points: np.ndarray,
    means: np.ndarray,
    precisions: np.ndarray | None,
    offsets: np.ndarray | None,
    order: np.ndarray,
    low: int,
    slots: np.ndarray,
    near: np.ndarray,
) -> None:
    """Complete `choose_winners` by clusters whose costs no product has given.

    Parameters
    ----------
    n_absent : int, IN
    absent : (2, >= n_absent) int64, IN
    rows, costs : (>= n_absent,) int64 and float, scratch
    points, means, precisions, offsets : IN, as in `costs`
    order, low : IN
    slots : (C', B) int64, IN/OUT, -1 - c for a cluster c of these
    near : (C', B) float, IN/OUT
    """
    last = slots.shape[0] - 1
    for i in range(n_absent):
        rows[i] = order[low + absent[0, i]]
    costs_of_pairs(n_absent, rows, absent[1], points, means, precisions, offsets, costs)
    for i in range(n_absent):
        j, slot = absent[0, i], np.int64(-1 - absent[1, i])
        if costs[i] < near[last, j] and not has(slot, j, slots):
            insert(slot, costs[i], last, j, slots, near)


@part
def truncated_posterior(
    n: int,
    near: np.ndarray,
    precision: float,
    shares: np.ndarray,
    totals: np.ndarray,
) -> None:
    """Unnormalised s_c(n) of Eq. (3), relative to the first: shares = exp((cost_0 - cost_k) precision).

    Parameters
    ----------
    n : int, IN, number of points
    near : (C', B) float, IN, costs
    precision : float64, IN, 1 / (2 sigma^2) for squared distances, 1 for nats; negative: the first takes all
    shares : (C', B) float, OUT
    totals : (B,) float64, OUT, sum of the shares
    """
    factor = near.dtype.type(precision)
    for j in range(n):
        shares[0, j] = 1
        totals[j] = 1
    for k in range(1, near.shape[0]):
        if precision < 0:
            shares[k, :n] = 0
            continue
        for j in range(n):
            shares[k, j] = exp_below_zero((near[0, j] - near[k, j]) * factor)
        for j in range(n):
            totals[j] += shares[k, j]
