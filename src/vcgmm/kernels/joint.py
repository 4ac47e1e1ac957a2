"""The blocked E-step for clusters with variances and weights of their own.

As in `blocked`, the points of a cluster share a list of candidates and one product, in coordinates local to the
cluster's mean, and a point's old winners are always candidates.  What is compared are costs -log p(c, y) in the
place of distances, and the sums of the M-step hold squares too.

A narrow cluster far from the cell's mean, as measured by its own variance, would lose its digits in a product and
in sums about another mean.  Such a candidate is treated like a cluster that is not on the list: its cost is
computed directly, and its points go straight to its own sums.
"""

from __future__ import annotations

import math

import numpy as np

from .blocked import BLOCK, BLOCKS_PER_FLUSH, NEGLIGIBLE, rounded, truncated_posterior
from .jit import kernel
from .joint_costs import joint_cost, natural_panels, statistics_rows
from .joint_sums import add_joint_moments, add_joint_point
from .panels import multiply_panels, panel_shape
from .selection import AT_ONCE, FEW, LANES, five_smallest_keys, smallest_keys

#: Nats by which a cost from a product may be off: a candidate where rounding could exceed it is taken directly.
COST_ERROR = 1e-4


def farthest_square(dtype: np.dtype) -> float:
    """Up to this sum_d p_d (mu_d - origin_d)^2 a product gives a cluster's cost to COST_ERROR."""
    return COST_ERROR / float(np.finfo(dtype).eps)


@kernel
def choose_joint_winners(
    n: int,
    best: np.ndarray,
    mask: int,
    products: np.ndarray,
    constants: np.ndarray,
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
    products, constants, squares : IN, of the candidates
    farthest : float, IN, the largest of `squares` at which products are good
    list_of_candidates : (L,) int32, IN
    position : (C,) int32, IN, place of a cluster in the candidate list, or -1
    points, means, precisions, offsets : IN
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
    zero = products.dtype.type(0)
    extra = 0
    for j in range(n):
        point = order[low + j]
        for k in range(n_winners):
            slot = np.int64(best[k * LANES + j] & mask)
            if squares[slot] <= farthest:
                cost = max(constants[slot] - (products[slot, j] + products[slot, j]), zero)
            else:
                cluster = list_of_candidates[slot]
                cost = joint_cost(points, point, means, precisions, offsets, cluster)
                slot = np.int64(-1 - cluster)
                extra += 1
            place = k
            while place > 0 and near[place - 1, j] > cost:
                near[place, j] = near[place - 1, j]
                slots[place, j] = slots[place - 1, j]
                place -= 1
            near[place, j] = cost
            slots[place, j] = slot
        for k in range(n_winners):
            known = winners[point, k]
            if known < 0:
                continue
            slot = np.int64(position[known])
            direct = slot < 0
            if not direct:
                direct = squares[slot] > farthest
            if direct:
                slot = np.int64(-1 - known)
            there = False
            for place in range(n_winners):
                there |= slots[place, j] == slot
            if there:
                continue
            if direct:
                cost = joint_cost(points, point, means, precisions, offsets, known)
                extra += 1
            else:
                cost = max(constants[slot] - (products[slot, j] + products[slot, j]), zero)
            if cost >= near[last, j]:
                continue
            place = last
            while place > 0 and near[place - 1, j] > cost:
                near[place, j] = near[place - 1, j]
                slots[place, j] = slots[place - 1, j]
                place -= 1
            near[place, j] = cost
            slots[place, j] = slot
    return extra


@kernel
def add_joint_block(
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
    shift_magic: np.ndarray,
    scatter_magic: np.ndarray,
    magic_row: np.ndarray,
    mass_magic: float,
    winners: np.ndarray,
    sums: np.ndarray,
    sum_masses: np.ndarray,
    shifts: np.ndarray,
    scatters: np.ndarray,
    masses: np.ndarray,
    facts: np.ndarray,
) -> None:
    """Write a block's winners, and add its points to the sums of the M-step and of the bound.

    Parameters
    ----------
    n : int, IN, points in the block
    cell : int, IN, the cluster whose points they are
    rows : (B, >= D + V) float, IN, their statistics
    slots, near, shares, totals : IN, from `choose_joint_winners` and `truncated_posterior`
    winners : (N', C') int32, IN/OUT
    sums : (L, D + V) float, IN/OUT, sum of gamma s t(y) for each candidate
    sum_masses : (L,) float64, IN/OUT, sum of gamma s
    shifts, scatters, masses, facts : IN/OUT, as in `search_joints`, `facts` being the row of the task
    """
    bound, mass, moved = 0.0, 0.0, 0
    for j in range(n):
        point = order[low + j]
        weight = weights[point]
        bound += weight * (math.log(totals[j]) - np.float64(near[0, j]))
        mass += weight
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
            if slot >= 0:
                sum_masses[slot] += part
                factor = points.dtype.type(part)
                for f in range(sums.shape[1]):
                    sums[slot, f] += factor * rows[j, f]
            else:
                add_joint_point(
                    shifts, scatters, masses, cluster, points, point, means, part, shift_magic, scatter_magic,
                    magic_row, mass_magic,
                )  # fmt: skip
    facts[0] += bound
    facts[1] += mass
    facts[2] += moved


@kernel
def search_joints(
    first: int,
    last: int,
    task_cell: np.ndarray,
    task_start: np.ndarray,
    points: np.ndarray,
    weights: np.ndarray,
    order: np.ndarray,
    candidates: np.ndarray,
    means: np.ndarray,
    precisions: np.ndarray,
    offsets: np.ndarray,
    winners: np.ndarray,
    indices: np.ndarray,
    farthest: float,
    shift_magic: np.ndarray,
    scatter_magic: np.ndarray,
    magic_row: np.ndarray,
    mass_magic: float,
    shifts: np.ndarray,
    scatters: np.ndarray,
    masses: np.ndarray,
    facts: np.ndarray,
) -> None:
    """E-step and sums of the M-step over tasks first..last-1, each a run of points of one cluster's group.

    Parameters
    ----------
    first, last : int, IN
    task_cell, task_start, points, weights, order, candidates, means, indices : IN, as in `blocked.search_tasks`
    precisions : (C, V) float, IN, 1 / (2 v), V = 1 for all features or V = D
    offsets : (C,) float, IN, q >= 0
    winners : (N', C') int32, IN/OUT, least cost first; -1 where not known yet
    farthest : float, IN, from `farthest_square`
    shift_magic : (k, D) float64, IN, from `exact_sums.rounding_constant`
    scatter_magic : (k, V) float64, IN, likewise
    magic_row : (C,) int32, IN, the row of both for each cluster
    mass_magic : float64, IN
    shifts : (C, D) float64, IN/OUT, sum of gamma s (y - mu_c)
    scatters : (C, 2, V) float64, IN/OUT, sum of gamma s (y - mu_c)^2 in two parts, which the caller adds up
    masses : (C,) float64, IN/OUT, sum of gamma s
    facts : (n_tasks, 4) float64, OUT, sums over the task's points of gamma log sum exp(-cost) and of gamma; points
        whose first winner changed; costs computed
    """
    n_clusters, n_features = means.shape
    n_squares = precisions.shape[1]
    n_statistics = n_features + n_squares
    n_candidates = candidates.shape[1]
    n_slots = indices.shape[0] - 2
    n_winners = winners.shape[1]
    mask = ~indices[-2]
    position = np.full(n_clusters, -1, np.int32)
    n_panels, panel_width = panel_shape(n_statistics, n_slots, BLOCK)
    panels = np.zeros((n_panels, n_slots, panel_width), points.dtype)
    constants = np.full(n_slots, np.inf, points.dtype)  # costlier than all others
    squares = np.zeros(n_slots, points.dtype)
    nothing = np.zeros(BLOCK, points.dtype)  # costs hold all there is of a point: no norm to be added
    sums = np.zeros((n_candidates, n_statistics), points.dtype)
    sum_masses = np.zeros(n_candidates, np.float64)
    local = np.zeros((BLOCK, n_panels * panel_width), points.dtype)
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
            natural_panels(means, precisions, offsets, candidates[cell], means[cell], panels, constants, squares)
            for i in range(n_candidates):
                position[candidates[cell, i]] = i
        facts[task] = 0.0
        begin, end = task_start[task], task_start[task + 1]
        for low in range(begin, end, BLOCK):
            high = min(low + BLOCK, end)
            n = high - low
            width = rounded(n)
            products = flat_products[: n_slots * width].reshape(n_slots, width)
            statistics_rows(points, order, low, high, means[cell], n_squares, local)
            columns = flat_columns[: panel_width * width].reshape(panel_width, width)
            scratch = flat_scratch[: n_slots * width].reshape(n_slots, width)
            multiply_panels(panels, n, local, columns, products, scratch)
            if n_winners <= FEW:
                five_smallest_keys(width, products, constants, nothing, indices, best)
            else:
                smallest_keys(n_winners, width, products, constants, nothing, indices, best)
            extra = choose_joint_winners(
                n, best, mask, products, constants, squares, farthest, candidates[cell], position, points, means,
                precisions, offsets, order, low, winners, slots, near,
            )  # fmt: skip
            truncated_posterior(n, near, 1.0, shares, totals)
            add_joint_block(
                n, cell, candidates, local, points, weights, means, order, low, slots, near, shares, totals,
                shift_magic, scatter_magic, magic_row, mass_magic, winners, sums, sum_masses, shifts, scatters,
                masses, facts[task],
            )  # fmt: skip
            facts[task, 3] += n * n_candidates + extra
            if high == end or (high - begin) % (BLOCK * BLOCKS_PER_FLUSH) == 0:
                for i in range(n_candidates):
                    if sum_masses[i] > 0.0:
                        add_joint_moments(
                            shifts, scatters, masses, candidates[cell, i], sums, i, sum_masses[i], means, cell,
                            shift_magic, scatter_magic, magic_row, mass_magic,
                        )  # fmt: skip
                        sum_masses[i] = 0.0
