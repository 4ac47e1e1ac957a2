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

import numpy as np

from ..cells.costs import dearest, natural_rows, statistics_rows
from ..jit import kernel, part
from ..parts.prefetch import hint_row
from ..parts.selection import FEW, LANES, smallest_keys
from ..parts.vectors import VECTOR_BYTES, VECTORS, aligned
from .block_sums import add_block, add_facts, hand_over, write_winners
from .short_survey import are_in_reach, shorten_each, survey_in_steps
from .survey import survey
from .winners import choose_absent, choose_winners, truncated_posterior

#: Points in one product: large enough for full speed, small enough that all of it stays in cache.
BLOCK = LANES

#: Rows of statistics are filled up to a multiple of so many numbers: full vectors, without a rest.
VECTOR = 16

#: With fewer points of a cell in a task, its candidates are not worth being made short integers.
POINTS = 64

#: Local sums are handed over to float64 after so many blocks.
BLOCKS_PER_FLUSH = 8


@part
def is_one_long(first: int, last: int, task_start: np.ndarray) -> bool:
    """Whether one of the tasks has points enough for short integers."""
    is_long = False
    for task in range(first, last):
        is_long |= task_start[task + 1] - task_start[task] >= POINTS
    return is_long


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
    in_steps: bool | None,
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
    order : (N',) int, IN
    candidates : (C, L) int32, IN, itself first
    means : (C, D) float, IN
    precisions : (C, V) float or None, IN, 1 / (2 v), V = D for each feature or 1 for all; None: V = 0, costs are
        squared distances
    offsets : (C,) float or None, IN, q >= 0
    winners : (N', C') int32, IN/OUT, least cost first; -1 where not known yet
    precision : float64, IN, 1 / (2 sigma^2) where costs are distances, else 1; negative: the first takes all
    indices : IN, from `selection.key_indices`
    in_steps : True or None, IN, whether candidates are found by products of short integers (`short_survey.pays`):
        None, and nothing of it is compiled
    farthest : float, IN, from `costs.farthest_square`
    shift_magic : (k, D) float64, IN, from `exact_sums.rounding_constant`
    scatter_magic : (k, V) float64 or None, IN, likewise
    magic_row : (C,) int32, IN, the row of both for each cluster
    mass_magic : float64, IN, likewise
    shifts : (C, D) float64, IN/OUT, sum of gamma s (y - mu_c)
    scatters : (C, 2, V) float64 or None, IN/OUT, sum of gamma s (y - mu_c)^2 in two parts, for the caller to add
    masses : (C,) float64, IN/OUT, sum of gamma s
    facts : (n_tasks, 6) float64, OUT, sums over the task's points of gamma log sum exp(-cost precision),
        gamma s cost, gamma cost of the first winner, and gamma; points whose first winner changed; costs computed,
        each once, also where it was found by short integers and then taken directly
    """
    n_clusters, n_features = means.shape
    n_slots = indices.shape[0] - 2  # candidates, and some that are none to make their number a multiple
    n_squares = 0
    is_far = None
    some_far = False
    if precisions is not None:
        n_squares = precisions.shape[1]
        is_far = np.zeros(n_slots, np.bool_)
    n_statistics = n_features + n_squares
    n_candidates = candidates.shape[1]
    n_winners = winners.shape[1]
    mask = ~indices[-2]
    step = VECTOR_BYTES // points.itemsize  # blocks are filled up to a multiple of this
    position = np.empty(n_clusters, np.int32)
    position[:] = -1
    rows = np.empty((n_slots, n_statistics), points.dtype)
    rows[:] = 0
    constants = np.empty(n_slots, points.dtype)
    constants[:] = dearest(points.itemsize)  # costlier than all others
    squares = np.empty(n_slots, points.dtype)
    squares[:] = 0
    width_of_sums = (n_statistics + VECTOR - 1) // VECTOR * VECTOR
    sums = aligned(n_candidates * width_of_sums, points).reshape(n_candidates, width_of_sums)
    sums[:] = 0
    sum_masses = np.empty(n_candidates, np.float64)
    sum_masses[:] = 0
    local = aligned(BLOCK * width_of_sums, points).reshape(BLOCK, width_of_sums)
    local[:] = 0
    norms = np.empty(BLOCK, points.dtype)
    norms[:] = 0
    columns = aligned(VECTORS * step * (n_statistics + VECTOR), points)
    costs = aligned(n_slots * BLOCK, points).reshape(n_slots, BLOCK)
    if in_steps is not None:
        n_pairs = (n_features + 1) // 2 if is_one_long(first, last, task_start) else 0
        row_pairs = aligned(n_slots * n_pairs, points).reshape(n_slots, n_pairs)
        row_pairs[:] = 0
        row_units = np.empty(n_slots, points.dtype)
        row_units[:] = 0
        units = np.empty(BLOCK, points.dtype)
        units[:] = 0
    best = np.empty((max(n_winners, FEW) + 1) * LANES, indices.dtype)
    slots = np.empty((max(n_winners, FEW), BLOCK), np.int64)[:n_winners]
    near = np.empty((max(n_winners, FEW), BLOCK), points.dtype)[:n_winners]
    there = np.empty((FEW, BLOCK), np.int32)
    missing = np.empty(2 * FEW, np.int64)
    absent = np.empty((2, 2 * n_winners * BLOCK), np.int64)
    absent_rows = np.empty(2 * n_winners * BLOCK, np.int64)
    absent_costs = np.empty(2 * n_winners * BLOCK, points.dtype)
    holder = np.empty(n_slots, np.int32)
    shares = np.empty((n_winners, BLOCK), points.dtype)
    totals = np.empty(BLOCK, np.float64)
    parts = np.empty((1 + n_winners, BLOCK), np.float64)

    cell, are_pairs, paired = -1, False, False
    for task in range(first, last):
        if task_cell[task] != cell:
            if cell >= 0:
                for i in range(n_candidates):
                    position[candidates[cell, i]] = -1
            cell = task_cell[task]
            natural_rows(means, precisions, offsets, candidates[cell], means[cell], rows, constants, squares)
            are_pairs = False
            for i in range(n_candidates):
                position[candidates[cell, i]] = i
            if is_far is not None:
                some_far = False
                for i in range(n_candidates):
                    is_far[i] = squares[i] > farthest
                    some_far |= is_far[i]
                    if is_far[i]:
                        position[candidates[cell, i]] = -1
            if task + 1 < last:  # with many clusters, the means of the next cell's candidates are in no cache
                for i in range(n_candidates):
                    hint_row(means, int(candidates[task_cell[task + 1], i]))
        facts[task] = 0.0
        begin, end = task_start[task], task_start[task + 1]
        if in_steps is not None:
            paired = end - begin >= POINTS and are_in_reach(n_candidates, squares)
            if paired and not are_pairs:
                shorten_each(n_candidates, rows, squares, row_pairs, row_units)
                are_pairs = True
        for low in range(begin, end, BLOCK):
            high = min(low + BLOCK, end)
            n = high - low
            width = (n + step - 1) // step * step
            statistics_rows(points, order, low, high, means[cell], n_squares, local, norms)
            for j in range(low, high):  # what they were is wanted when the products are done
                hint_row(winners, int(order[j]))
            all_known = True
            if in_steps is not None:
                all_known = not paired
                if paired:
                    survey_in_steps(
                        n, n_winners, local, rows, constants, norms, row_pairs, row_units, units, indices, columns,
                        near, best, points, order, high,
                    )  # fmt: skip
            if all_known:
                survey(width, local, rows, constants, norms, indices, columns, costs, best)
                if n_winners > FEW:
                    smallest_keys(n_winners, width, costs, indices, best)
            n_absent = choose_winners(
                n, best, mask, costs, all_known, rows, local, is_far, some_far, candidates[cell], position, order,
                low, winners, slots, near, absent, holder, there, missing,
            )  # fmt: skip
            choose_absent(
                n_absent, absent, absent_rows, absent_costs, points, means, precisions, offsets, order, low, slots,
                near,
            )  # fmt: skip
            truncated_posterior(n, near, precision, shares, totals)
            add_facts(n, weights, order, low, near, shares, totals, precision, parts, facts[task])
            write_winners(n, candidates[cell], order, low, slots, winners, facts[task])
            add_block(
                n, local, points, means, order, low, slots, parts, n_absent, absent, shift_magic, scatter_magic,
                magic_row, mass_magic, sums, sum_masses, shifts, scatters, masses,
            )  # fmt: skip
            facts[task, 5] += n * n_candidates + n_absent
            if high == end or (high - begin) % (BLOCK * BLOCKS_PER_FLUSH) == 0:
                hand_over(
                    cell, candidates, means, sums, sum_masses, shift_magic, scatter_magic, magic_row, mass_magic,
                    shifts, scatters, masses,
                )  # fmt: skip
