"""The new K(n) of a block of points, and the truncated posteriors over it."""

from __future__ import annotations

import numpy as np

from .costs import cost_of
from .exponential import exp_below_zero
from .jit import kernel
from .selection import LANES


@kernel
def cost_from(slot: np.int64, j: int, products: np.ndarray, constants: np.ndarray, norms: np.ndarray) -> float:
    """Cost of candidate `slot` for point j of a block, from the product; never negative."""
    value = constants[slot] + norms[j] - (products[slot, j] + products[slot, j])
    return max(value, products.dtype.type(0))


@kernel
def insert(slot: np.int64, cost: float, place: int, j: int, slots: np.ndarray, near: np.ndarray) -> None:
    """Put a cluster where its cost belongs among the first `place` of point j, which are in order."""
    while place > 0 and near[place - 1, j] > cost:
        near[place, j] = near[place - 1, j]
        slots[place, j] = slots[place - 1, j]
        place -= 1
    near[place, j] = cost
    slots[place, j] = slot


@kernel
def choose_winners(
    n: int,
    best: np.ndarray,
    mask: int,
    products: np.ndarray,
    constants: np.ndarray,
    norms: np.ndarray,
    squares: np.ndarray,
    farthest: float,
    list_of_candidates: np.ndarray,
    position: np.ndarray,
    points: np.ndarray,
    means: np.ndarray,
    precisions: np.ndarray,
    offsets: np.ndarray,
    order: np.ndarray,
    low: int,
    winners: np.ndarray,
    slots: np.ndarray,
    near: np.ndarray,
) -> int:
    """The new K(n) of a block: those of its candidates and of the old K(n) that cost least, the least first.

    Parameters
    ----------
    n : int, IN, points in the block
    best : (C' * LANES,) int, IN, from `smallest_keys`
    mask : int, IN, the bits of a key that hold the index
    products, constants, norms : IN, as in `smallest_keys`
    squares, farthest : IN, the largest of `squares` (L,) at which products are good; beyond it costs are computed
        directly
    list_of_candidates : (L,) int32, IN
    position : (C,) int32, IN, place of a cluster in the candidate list, or -1
    points, means, precisions, offsets : IN, as in `costs`
    order, low : IN, point j of the block is row order[low + j]
    winners : (N', C') int32, IN, the old K(n), -1 where not known
    slots : (C', B) int64, OUT, place in the candidate list, or -1 - c for a cluster c that was taken directly
    near : (C', B) float, OUT, costs, ascending

    Returns
    -------
    int, the number of costs computed directly
    """
    n_winners = winners.shape[1]
    last = n_winners - 1
    extra = 0
    for j in range(n):
        point = order[low + j]
        # Keys hold rounded costs: look the full ones up and put near ties in order.
        for k in range(n_winners):
            slot = np.int64(best[k * LANES + j] & mask)
            if squares[slot] <= farthest:
                cost = cost_from(slot, j, products, constants, norms)
            else:
                cluster = list_of_candidates[slot]
                cost = cost_of(points, point, means, precisions, offsets, cluster)
                slot = np.int64(-1 - cluster)
                extra += 1
            insert(slot, cost, k, j, slots, near)
        # What was known is not forgotten: an old winner gives way only to a cluster that costs less.
        for k in range(n_winners):
            known = winners[point, k]
            if known < 0:
                continue
            slot = np.int64(position[known])
            if slot < 0:
                slot = np.int64(-1 - known)
            there = False
            for place in range(n_winners):
                there |= slots[place, j] == slot
            if there:
                continue
            if slot >= 0:
                cost = cost_from(slot, j, products, constants, norms)
            else:
                cost = cost_of(points, point, means, precisions, offsets, known)
                extra += 1
            if cost < near[last, j]:
                insert(slot, cost, last, j, slots, near)
    return extra


@kernel
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
