"""The blocked E-step, with the sums of the M-step taken while the points are in cache.

Points are grouped by their nearest cluster, the paper's I_c.  All points of a group search the same candidates,
so their distances are one matrix product, in coordinates local to the cluster (float32 loses digits far from the
origin).  A point's old winners are always candidates too: the bound cannot fall (Proposition 1).
"""

from __future__ import annotations

import math

import numpy as np

from .distances import local_rows, squared_distance
from .exact_sums import add_moments, add_point
from .exponential import exp_below_zero
from .jit import kernel
from .panels import local_panels, multiply_panels, panel_shape
from .selection import AT_ONCE, FEW, LANES, five_smallest_keys, smallest_keys

#: Points in one product: large enough for full speed, small enough that all of it stays in cache.
BLOCK = LANES

#: Blocks are filled up to a multiple of the first, or where they are small to the second or third: OpenBLAS is
#: half as fast at sizes in between.
ROUND, HALF, QUARTER = 32, 16, 8

#: Responsibilities below this share of a point's weight do not move a mean.
NEGLIGIBLE = 1e-9

#: Local sums are handed over to float64 after so many blocks.
BLOCKS_PER_FLUSH = 8


@kernel
def rounded(n: int) -> int:
    """Columns of the product for a block of n points."""
    if n <= QUARTER:
        return QUARTER
    return HALF if n <= HALF else (n + ROUND - 1) // ROUND * ROUND


@kernel
def distance_of(
    slot: np.int64, j: int, products: np.ndarray, centre_squares: np.ndarray, point_squares: np.ndarray
) -> float:
    """Squared distance of candidate `slot` and point j of a block, never negative."""
    value = centre_squares[slot] + point_squares[j] - (products[slot, j] + products[slot, j])
    return max(value, products.dtype.type(0))


@kernel
def choose_winners(
    n: int,
    best: np.ndarray,
    mask: int,
    products: np.ndarray,
    centre_squares: np.ndarray,
    point_squares: np.ndarray,
    position: np.ndarray,
    points: np.ndarray,
    means: np.ndarray,
    order: np.ndarray,
    low: int,
    winners: np.ndarray,
    slots: np.ndarray,
    near: np.ndarray,
) -> int:
    """The new K(n) of a block: the nearest of its candidates and of the old K(n), nearest first.

    Parameters
    ----------
    n : int, IN, points in the block
    best : (C' * LANES,) int, IN, from `smallest_keys`
    mask : int, IN, the bits of a key that hold the index
    products, centre_squares, point_squares : IN, as in `smallest_keys`
    position : (C,) int32, IN, place of a cluster in the candidate list, or -1
    points, means : IN
    order, low : IN, point j of the block is row order[low + j]
    winners : (N', C') int32, IN, the old K(n), -1 where not known
    slots : (C', B) int64, OUT, place in the candidate list, or -1 - c for a cluster c that is not on it
    near : (C', B) float, OUT, squared distances, ascending

    Returns
    -------
    int, the number of distances computed to clusters that are no candidates
    """
    n_winners = winners.shape[1]
    last = n_winners - 1
    extra = 0
    for j in range(n):
        # Keys hold rounded distances: look the full ones up and put near ties in order.
        for k in range(n_winners):
            slot = np.int64(best[k * LANES + j] & mask)
            distance = distance_of(slot, j, products, centre_squares, point_squares)
            place = k
            while place > 0 and near[place - 1, j] > distance:
                near[place, j] = near[place - 1, j]
                slots[place, j] = slots[place - 1, j]
                place -= 1
            near[place, j] = distance
            slots[place, j] = slot
        # What was known is not forgotten: an old winner gives way only to a nearer cluster.
        point = order[low + j]
        for k in range(n_winners):
            known = winners[point, k]
            if known < 0:
                continue
            slot = np.int64(position[known])
            if slot >= 0:
                distance = distance_of(slot, j, products, centre_squares, point_squares)
            else:
                distance = squared_distance(points, point, means, known)
                slot = np.int64(-1 - known)
                extra += 1
            if distance >= near[last, j]:
                continue
            there = False
            for place in range(n_winners):
                there |= slots[place, j] == slot
            if there:
                continue
            place = last
            while place > 0 and near[place - 1, j] > distance:
                near[place, j] = near[place - 1, j]
                slots[place, j] = slots[place - 1, j]
                place -= 1
            near[place, j] = distance
            slots[place, j] = slot
    return extra


@kernel
def truncated_posterior(
    n: int,
    near: np.ndarray,
    precision: float,
    shares: np.ndarray,
    totals: np.ndarray,
) -> None:
    """Unnormalised s_c(n) of Eq. (3), relative to the nearest: shares = exp((d_0^2 - d_k^2) / 2 sigma^2).

    Parameters
    ----------
    n : int, IN, number of points
    near : (C', B) float, IN
    precision : float64, IN, 1 / (2 sigma^2); negative: the nearest takes all
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


@kernel
def add_block(
    n: int,
    cell: int,
    candidates: np.ndarray,
    rows: np.ndarray,
    points: np.ndarray,
    weights: np.ndarray,
    means: np.ndarray,
    order: np.ndarray,
    low: int,
    slots: np.ndarray,
    near: np.ndarray,
    shares: np.ndarray,
    totals: np.ndarray,
    precision: float,
    shift_magic: np.ndarray,
    magic_row: np.ndarray,
    mass_magic: float,
    winners: np.ndarray,
    sums: np.ndarray,
    sum_masses: np.ndarray,
    shifts: np.ndarray,
    masses: np.ndarray,
    facts: np.ndarray,
) -> None:
    """Write a block's winners, and add its points to the sums of the M-step and of the bound.

    Winners on the candidate list go into the cell's local sums; the few others straight to the clusters' totals.

    Parameters
    ----------
    n : int, IN, points in the block
    cell : int, IN, the cluster whose points they are
    rows : (B, >= D) float, IN, the points in coordinates local to its mean
    slots, near, shares, totals : IN, from `choose_winners` and `truncated_posterior`
    winners : (N', C') int32, IN/OUT
    sums : (L, D) float, IN/OUT, sum of gamma s (y - mu_cell) for each candidate
    sum_masses : (L,) float64, IN/OUT, sum of gamma s
    shifts, masses, facts : IN/OUT, as in `search_tasks`, `facts` being the row of the task
    """
    bound, scatter, error, moved = 0.0, 0.0, 0.0, 0
    for j in range(n):
        point = order[low + j]
        weight = weights[point]
        nearest = np.float64(near[0, j])
        bound += weight * (math.log(totals[j]) - nearest * precision)
        error += weight * nearest
        scale = weight / totals[j]
        for k in range(near.shape[0]):
            slot = slots[k, j]
            cluster = int(candidates[cell, slot]) if slot >= 0 else int(-1 - slot)
            if k == 0 and winners[point, 0] != cluster:
                moved += 1
            winners[point, k] = cluster
            if shares[k, j] <= NEGLIGIBLE:
                continue
            part = scale * shares[k, j]
            scatter += part * near[k, j]
            if slot >= 0:
                sum_masses[slot] += part
                factor = points.dtype.type(part)
                for d in range(sums.shape[1]):
                    sums[slot, d] += factor * rows[j, d]
            else:
                add_point(shifts, masses, cluster, points, point, means, part, shift_magic, magic_row, mass_magic)
    facts[0] += bound
    facts[1] += scatter
    facts[2] += error
    facts[3] += moved


@kernel
def hand_over(
    cell: int,
    candidates: np.ndarray,
    centres: np.ndarray,
    sums: np.ndarray,
    sum_masses: np.ndarray,
    shift_magic: np.ndarray,
    magic_row: np.ndarray,
    mass_magic: float,
    shifts: np.ndarray,
    masses: np.ndarray,
) -> None:
    """Move a cell's local sums to the clusters' float64 totals, and set them to 0."""
    for i in range(sum_masses.shape[0]):
        if sum_masses[i] > 0.0:
            cluster = candidates[cell, i]
            add_moments(
                shifts, masses, cluster, sums, i, sum_masses[i], centres, shift_magic, magic_row, mass_magic
            )
            sum_masses[i] = 0.0


@kernel
def search_tasks(
    first: int,
    last: int,
    task_cell: np.ndarray,
    task_start: np.ndarray,
    points: np.ndarray,
    weights: np.ndarray,
    order: np.ndarray,
    candidates: np.ndarray,
    means: np.ndarray,
    winners: np.ndarray,
    precision: float,
    indices: np.ndarray,
    shift_magic: np.ndarray,
    magic_row: np.ndarray,
    mass_magic: float,
    shifts: np.ndarray,
    masses: np.ndarray,
    facts: np.ndarray,
) -> None:
    """E-step and sums of the M-step over tasks first..last-1, each a run of points of one cluster's group.

    Parameters
    ----------
    first, last : int, IN
    task_cell : (n_tasks,) int32, IN, the cluster nearest to the task's points until now
    task_start : (n_tasks + 1,) int64, IN, task t holds the rows order[task_start[t]:task_start[t + 1]]
    points : (N', D) float, IN
    weights : (N',) float64, IN, gamma
    order : (N',) int64, IN
    candidates : (C, L) int32, IN, itself first
    means : (C, D) float, IN
    winners : (N', C') int32, IN/OUT, nearest first; -1 where not known yet
    precision : float64, IN, 1 / (2 sigma^2); negative: the nearest takes all
    indices : IN, from `selection.key_indices`
    shift_magic : (k, D) float64, IN, from `exact_sums.rounding_constant`
    magic_row : (C,) int32, IN, the row of `shift_magic` for each cluster
    mass_magic : float64, IN, likewise
    shifts : (C, D) float64, IN/OUT, sum of gamma s (y - mu_c)
    masses : (C,) float64, IN/OUT, sum of gamma s
    facts : (n_tasks, 5) float64, OUT, sums over the task's points of gamma log sum exp(-d^2 precision),
        gamma s d^2, gamma d^2 of the nearest; points whose nearest cluster changed; distances computed
    """
    n_clusters, n_features = means.shape
    n_candidates = candidates.shape[1]
    n_slots = indices.shape[0] - 2  # candidates, and some that are none to make their number a multiple
    n_winners = winners.shape[1]
    mask = ~indices[-2]
    position = np.full(n_clusters, -1, np.int32)
    n_panels, panel_width = panel_shape(n_features, n_slots, BLOCK)
    centres = np.zeros((n_panels, n_slots, panel_width), points.dtype)
    centre_squares = np.full(n_slots, np.inf, points.dtype)  # farther than all others
    sums = np.zeros((n_candidates, n_features), points.dtype)
    sum_masses = np.zeros(n_candidates, np.float64)
    local = np.zeros((BLOCK, n_panels * panel_width), points.dtype)
    local_squares = np.zeros(BLOCK, points.dtype)
    flat_columns = np.empty(BLOCK * panel_width, points.dtype)
    flat_products = np.empty(n_slots * BLOCK, points.dtype)
    flat_scratch = np.empty(n_slots * BLOCK, points.dtype)
    best = np.empty((max(n_winners, FEW) + AT_ONCE) * LANES, indices.dtype)
    slots = np.empty((n_winners, BLOCK), np.int64)
    near = np.empty((n_winners, BLOCK), points.dtype)
    shares = np.empty((n_winners, BLOCK), points.dtype)
    totals = np.empty(BLOCK, np.float64)

    cell = -1
    for task in range(first, last):
        if task_cell[task] != cell:
            if cell >= 0:
                for i in range(n_candidates):
                    position[candidates[cell, i]] = -1
            cell = task_cell[task]
            local_panels(means, candidates[cell], means[cell], centres, centre_squares)
            for i in range(n_candidates):
                position[candidates[cell, i]] = i
        facts[task] = 0.0
        begin, end = task_start[task], task_start[task + 1]
        for low in range(begin, end, BLOCK):
            high = min(low + BLOCK, end)
            n = high - low
            width = rounded(n)
            products = flat_products[: n_slots * width].reshape(n_slots, width)
            local_rows(points, order, low, high, means[cell], local, local_squares)
            columns = flat_columns[: panel_width * width].reshape(panel_width, width)
            scratch = flat_scratch[: n_slots * width].reshape(n_slots, width)
            multiply_panels(centres, n, local, columns, products, scratch)
            if n_winners <= FEW:
                five_smallest_keys(width, products, centre_squares, local_squares, indices, best)
            else:
                smallest_keys(n_winners, width, products, centre_squares, local_squares, indices, best)
            extra = choose_winners(
                n, best, mask, products, centre_squares, local_squares, position, points, means, order, low,
                winners, slots, near,
            )  # fmt: skip
            truncated_posterior(n, near, precision, shares, totals)
            add_block(
                n, cell, candidates, local, points, weights, means, order, low, slots, near, shares, totals,
                precision, shift_magic, magic_row, mass_magic, winners, sums, sum_masses, shifts, masses,
                facts[task],
            )  # fmt: skip
            facts[task, 4] += n * n_candidates + extra
            if high == end or (high - begin) % (BLOCK * BLOCKS_PER_FLUSH) == 0:
                hand_over(
                    cell, candidates, centres, sums, sum_masses, shift_magic, magic_row, mass_magic, shifts, masses
                )
