"""The sums of the M-step over a block of points, while they are in cache."""

from __future__ import annotations

import numpy as np

from ..jit import part
from ..parts.exact_sums import add_moments, add_point
from ..parts.logarithm import log_of_positive
from ..parts.multiples import add_multiples
from ..parts.one_by_one import fetch
from ..parts.square_sums import add_moment_squares, add_point_squares

#: Responsibilities below this share of the largest one do not move a mean; and where they are floats of 4 bytes,
#: those that would be lost if they were added to it.
NEGLIGIBLE = 1e-9
NEGLIGIBLE_IN_SINGLES = 2.0**-24


@part
def negligible(itemsize: int) -> float:
    """Which of the two, in floats of so many bytes."""
    return NEGLIGIBLE_IN_SINGLES if itemsize == 4 else NEGLIGIBLE


@part
def add_facts(
    n: int,
    weights: np.ndarray,
    order: np.ndarray,
    low: int,
    near: np.ndarray,
    shares: np.ndarray,
    totals: np.ndarray,
    precision: float,
    parts: np.ndarray,
    facts: np.ndarray,
) -> None:
    """Add a block to the sums of the bound, and find gamma s of its winners.

    Parameters
    ----------
    n : int, IN, points in the block
    weights, order, low : IN, as in `search_tasks`
    near, shares : IN, from `choose_winners` and `truncated_posterior`
    totals : (B,) float64, IN from the same, OUT gamma over them
    precision : float64, IN
    parts : (1 + C', B) float64, OUT, first gamma, then gamma s; 0 where s is negligible
    facts : (6,) float64, IN/OUT
    """
    least = negligible(shares.itemsize)
    bound, scatter, error, mass = 0.0, 0.0, 0.0, 0.0
    for j in range(n):
        parts[0, j] = fetch(weights, order[low + j])
    for j in range(n):
        weight, nearest = parts[0, j], np.float64(near[0, j])
        bound += weight * (log_of_positive(totals[j]) - nearest * precision)
        error += weight * nearest
        mass += weight
    for j in range(n):
        totals[j] = parts[0, j] / totals[j]
    for k in range(near.shape[0]):
        for j in range(n):
            parts[k + 1, j] = totals[j] * shares[k, j] if shares[k, j] > least else 0.0
        for j in range(n):  # a sum has a loop of its own (`jit`)
            scatter += parts[k + 1, j] * near[k, j]
    facts[0] += bound
    facts[1] += scatter
    facts[2] += error
    facts[3] += mass


@part
def write_winners(
    n: int,
    list_of_candidates: np.ndarray,
    order: np.ndarray,
    low: int,
    slots: np.ndarray,
    winners: np.ndarray,
    facts: np.ndarray,
) -> None:
    """Write the winners of a block, and count the points whose first one has changed."""
    moved = 0
    for j in range(n):
        point = order[low + j]
        before = winners[point, 0]
        for k in range(slots.shape[0]):
            slot = slots[k, j]
            winners[point, k] = list_of_candidates[slot] if slot >= 0 else -1 - slot
        moved += int(winners[point, 0] != before)
    facts[4] += moved


@part
def add_block(
    n: int,
    rows: np.ndarray,
    points: np.ndarray,
    means: np.ndarray,
    order: np.ndarray,
    low: int,
    slots: np.ndarray,
    parts: np.ndarray,
    n_absent: int,
    absent: np.ndarray,
    shift_magic: np.ndarray,
    scatter_magic: np.ndarray | None,
    magic_row: np.ndarray,
    mass_magic: float,
    sums: np.ndarray,
    sum_masses: np.ndarray,
    shifts: np.ndarray,
    scatters: np.ndarray | None,
    masses: np.ndarray,
) -> None:
    """Add the points of a block to the sums of the M-step.

    Winners on the candidate list go into the cell's local sums; the few others straight to the clusters' totals.

    Parameters
    ----------
    n : int, IN, points in the block
    rows : (B, >= W) float, IN, their statistics, and 0 beyond
    points, means, order, low : IN, as in `search_tasks`
    slots : IN, from `choose_winners`
    parts : (1 + C', B) float64, IN, from `add_facts`
    n_absent, absent : IN, as in `choose_absent`: winners that are not on the list are among these
    sums : (L, W) float, IN/OUT, sum of gamma s t(y - origin) for each candidate; W >= D + V
    sum_masses : (L,) float64, IN/OUT, sum of gamma s
    shifts, scatters, masses : IN/OUT, as in `search_tasks`
    """
    add_multiples(n, rows, slots, parts, sums, sum_masses)
    for i in range(n_absent):
        j, cluster = absent[0, i], absent[1, i]
        for k in range(slots.shape[0]):
            part = parts[k + 1, j]
            if slots[k, j] != -1 - cluster or part == 0.0:
                continue
            point = order[low + j]
            add_point(shifts, masses, cluster, points, point, means, part, shift_magic, magic_row, mass_magic)
            if scatters is not None and scatter_magic is not None:
                add_point_squares(scatters, cluster, points, point, means, part, scatter_magic, magic_row)


@part
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
    if scatters is not None and scatter_magic is not None:
        for i in range(sum_masses.shape[0]):
            mass, cluster = sum_masses[i], candidates[cell, i]
            if mass > 0.0:
                add_moment_squares(scatters, cluster, sums, i, mass, means, cell, scatter_magic, magic_row)
    add_moments(
        shifts, masses, candidates[cell], sums, sum_masses, means, cell, shift_magic, magic_row, mass_magic
    )
