"""The blocked E-step, with the sums of the M-step taken while the points are in cache.

Points are grouped by their first winner, the nearest cluster: the paper's I_c.  All points of a group search the
same candidates, so their costs (`costs`) are one matrix product, in coordinates local to the cluster (float32
loses digits far from the origin).  A point's old winners are always candidates too: the bound cannot fall
(Proposition 1).

The same code serves all models: their statistics t(y) are rows of the product and terms of the sums alike.

A narrow cluster far from the cell's mean, as measured by its own variance, would lose its digits in a product and
in sums about another mean.  Such a candidate is treated like a cluster that is not on the list: its cost is
computed directly, and its points go straight to its own sums.
"""

from __future__ import annotations

import math

import numpy as np

from .costs import natural_panels, statistics_rows
from .exact_sums import add_moments, add_point
from .jit import kernel
from .panels import multiply_panels, panel_shape
from .prefetch import hint_row
from .selection import AT_ONCE, FEW, LANES, five_smallest_keys, smallest_keys
from .square_sums import add_moment_squares, add_point_squares
from .winners import choose_absent, choose_winners, truncated_posterior

#: Points in one product: large enough for full speed, small enough that all of it stays in cache.
BLOCK = LANES

#: Blocks are filled up to a multiple of the first, or where they are small to the second or third: OpenBLAS is
#: half as fast at sizes in between.
ROUND, HALF, QUARTER = 32, 16, 8

#: Responsibilities below this share of a point's weight do not move a mean.
NEGLIGIBLE = 1e-9

#: Local sums are handed over to float64 after so many blocks, and totals fetched so many candidates ahead.
BLOCKS_PER_FLUSH = 8
SOON = 4


@kernel
def rounded(n: int) -> int:
    """Columns of the product for a block of n points."""
    if n <= QUARTER:
        return QUARTER
    return HALF if n <= HALF else (n + ROUND - 1) // ROUND * ROUND


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
    scatter_magic: np.ndarray | None,
    magic_row: np.ndarray,
    mass_magic: float,
    winners: np.ndarray,
    sums: np.ndarray,
    sum_masses: np.ndarray,
    shifts: np.ndarray,
    scatters: np.ndarray | None,
    masses: np.ndarray,
    facts: np.ndarray,
) -> None:
    """Write a block's winners, and add its points to the sums of the M-step and of the bound.

    Winners on the candidate list go into the cell's local sums; the few others straight to the clusters' totals.

    Parameters
    ----------
    n : int, IN, points in the block
    cell : int, IN, the cluster whose points they are
    rows : (B, >= D + V) float, IN, their statistics
    slots, near, shares, totals : IN, from `choose_winners` and `truncated_posterior`
    winners : (N', C') int32, IN/OUT
    sums : (L, D + V) float, IN/OUT, sum of gamma s t(y - mu_cell) for each candidate
    sum_masses : (L,) float64, IN/OUT, sum of gamma s
    shifts, scatters, masses, facts : IN/OUT, as in `search_tasks`, `facts` being the row of the task
    """
    bound, scatter, error, mass, moved = 0.0, 0.0, 0.0, 0.0, 0
    for j in range(n):
        point = order[low + j]
        weight = weights[point]
        nearest = np.float64(near[0, j])
        bound += weight * (math.log(totals[j]) - nearest * precision)
        error += weight * nearest
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
            scatter += part * near[k, j]
            if slot >= 0:
                sum_masses[slot] += part
                factor = points.dtype.type(part)
                for f in range(sums.shape[1]):
                    sums[slot, f] += factor * rows[j, f]
            else:
                add_point(shifts, masses, cluster, points, point, means, part, shift_magic, magic_row, mass_magic)
                if scatters is not None and scatter_magic is not None:
                    add_point_squares(scatters, cluster, points, point, means, part, scatter_magic, magic_row)
    facts[0] += bound
    facts[1] += scatter
    facts[2] += error
    facts[3] += mass
    facts[4] += moved


@kernel
def hand_over(
    cell: int,
    candidates: np.ndarray,
    means: np.ndarray,
    sums: np.ndarray,
    sum_masses: np.ndarray,
    shift_magic: np.ndarray,
    scatter_magic: np.ndarray | None,
    magic_row: np.ndarray,
    mass_magic: float,
    shifts: np.ndarray,
    scatters: np.ndarray | None,
    masses: np.ndarray,
) -> None:
    """Move a cell's local sums to the clusters' float64 totals, and set them to 0."""
    for i in range(sum_masses.shape[0]):
        mass = sum_masses[i]
        if i + SOON < sum_masses.shape[0] and sum_masses[i + SOON] > 0.0:
            hint_row(shifts, int(candidates[cell, i + SOON]))
        if mass > 0.0:
            cluster = candidates[cell, i]
            if scatters is not None and scatter_magic is not None:
                add_moment_squares(scatters, cluster, sums, i, mass, means, cell, scatter_magic, magic_row)
            add_moments(shifts, masses, cluster, sums, i, mass, means, cell, shift_magic, magic_row, mass_magic)
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
    precisions: np.ndarray | None,
    offsets: np.ndarray | None,
    winners: np.ndarray,
    precision: float,
    indices: np.ndarray,
    farthest: float,
    shift_magic: np.ndarray,
    scatter_magic: np.ndarray | None,
    magic_row: np.ndarray,
    mass_magic: float,
    shifts: np.ndarray,
    scatters: np.ndarray | None,
    masses: np.ndarray,
    facts: np.ndarray,
) -> None:
    """E-step and sums of the M-step over tasks first..last-1, each a run of points of one cluster's group.

    Parameters
    ----------
    first, last : int, IN
    task_cell : (n_tasks,) int32, IN, the first winner of the task's points until now
    task_start : (n_tasks + 1,) int64, IN, task t holds the rows order[task_start[t]:task_start[t + 1]]
    points : (N', D) float, IN
    weights : (N',) float64, IN, gamma
    order : (N',) int64, IN
    candidates : (C, L) int32, IN, itself first
    means : (C, D) float, IN
    precisions : (C, V) float or None, IN, 1 / (2 v), V = D for each feature or 1 for all; None: V = 0, costs are
        squared distances
    offsets : (C,) float or None, IN, q >= 0
    winners : (N', C') int32, IN/OUT, least cost first; -1 where not known yet
    precision : float64, IN, 1 / (2 sigma^2) where costs are distances, else 1; negative: the first takes all
    indices : IN, from `selection.key_indices`
    farthest : float, IN, from `costs.farthest_square`
    shift_magic : (k, D) float64, IN, from `exact_sums.rounding_constant`
    scatter_magic : (k, V) float64 or None, IN, likewise
    magic_row : (C,) int32, IN, the row of both for each cluster
    mass_magic : float64, IN, likewise
    shifts : (C, D) float64, IN/OUT, sum of gamma s (y - mu_c)
    scatters : (C, 2, V) float64 or None, IN/OUT, sum of gamma s (y - mu_c)^2 in two parts, for the caller to add
    masses : (C,) float64, IN/OUT, sum of gamma s
    facts : (n_tasks, 6) float64, OUT, sums over the task's points of gamma log sum exp(-cost precision),
        gamma s cost, gamma cost of the first winner, and gamma; points whose first winner changed; costs computed
    """
    n_clusters, n_features = means.shape
    n_slots = indices.shape[0] - 2  # candidates, and some that are none to make their number a multiple
    n_squares = 0
    is_far = None
    if precisions is not None:
        n_squares = precisions.shape[1]
        is_far = np.zeros(n_slots, np.bool_)
    n_statistics = n_features + n_squares
    n_candidates = candidates.shape[1]
    n_winners = winners.shape[1]
    mask = ~indices[-2]
    position = np.full(n_clusters, -1, np.int32)
    n_panels, panel_width = panel_shape(n_statistics, n_slots, BLOCK)
    panels = np.zeros((n_panels, n_slots, panel_width), points.dtype)
    constants = np.full(n_slots, np.inf, points.dtype)  # costlier than all others
    squares = np.zeros(n_slots, points.dtype)
    sums = np.zeros((n_candidates, n_statistics), points.dtype)
    sum_masses = np.zeros(n_candidates, np.float64)
    local = np.zeros((BLOCK, n_panels * panel_width), points.dtype)
    norms = np.zeros(BLOCK, points.dtype)
    flat_columns = np.empty(BLOCK * panel_width, points.dtype)
    flat_products = np.empty(n_slots * BLOCK, points.dtype)
    flat_scratch = np.empty(n_slots * BLOCK, points.dtype)
    best = np.empty((max(n_winners, FEW) + AT_ONCE) * LANES, indices.dtype)
    slots = np.empty((n_winners, BLOCK), np.int64)
    near = np.empty((n_winners, BLOCK), points.dtype)
    absent = np.empty((2, 2 * n_winners * BLOCK), np.int64)
    absent_rows = np.empty(2 * n_winners * BLOCK, np.int64)
    absent_costs = np.empty(2 * n_winners * BLOCK, points.dtype)
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
            if is_far is not None:
                for i in range(n_candidates):
                    is_far[i] = squares[i] > farthest
                    if is_far[i]:
                        position[candidates[cell, i]] = -1
            if task + 1 < last:  # with many clusters, the means of the next cell's candidates are in no cache
                for i in range(n_candidates):
                    hint_row(means, int(candidates[task_cell[task + 1], i]))
        facts[task] = 0.0
        begin, end = task_start[task], task_start[task + 1]
        for low in range(begin, end, BLOCK):
            high = min(low + BLOCK, end)
            n = high - low
            width = rounded(n)
            products = flat_products[: n_slots * width].reshape(n_slots, width)
            statistics_rows(points, order, low, high, means[cell], n_squares, local, norms)
            columns = flat_columns[: panel_width * width].reshape(panel_width, width)
            scratch = flat_scratch[: n_slots * width].reshape(n_slots, width)
            multiply_panels(panels, n, local, columns, products, scratch)
            if n_winners <= FEW:
                five_smallest_keys(width, products, constants, norms, indices, best)
            else:
                smallest_keys(n_winners, width, products, constants, norms, indices, best)
            n_absent = choose_winners(
                n, best, mask, products, constants, norms, is_far, candidates[cell], position, order, low,
                winners, slots, near, absent,
            )  # fmt: skip
            choose_absent(
                n_absent, absent, absent_rows, absent_costs, points, means, precisions, offsets, order, low, slots,
                near,
            )  # fmt: skip
            truncated_posterior(n, near, precision, shares, totals)
            add_block(
                n, cell, candidates, local, points, weights, means, order, low, slots, near, shares, totals,
                precision, shift_magic, scatter_magic, magic_row, mass_magic, winners, sums, sum_masses, shifts,
                scatters, masses, facts[task],
            )  # fmt: skip
            facts[task, 5] += n * n_candidates + n_absent
            if high == end or (high - begin) % (BLOCK * BLOCKS_PER_FLUSH) == 0:
                hand_over(
                    cell, candidates, means, sums, sum_masses, shift_magic, scatter_magic, magic_row, mass_magic,
                    shifts, scatters, masses,
                )  # fmt: skip
