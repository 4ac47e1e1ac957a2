"""The paper's own E-step (Algorithm 2): every point searches the neighbourhoods of its own winners."""

from __future__ import annotations

import math

import numpy as np

from ..jit import kernel
from ..parts.distances import squared_distance
from ..parts.exact_sums import add_point
from .block_sums import NEGLIGIBLE


@kernel
def search_points(
    first: int,
    last: int,
    points: np.ndarray,
    means: np.ndarray,
    neighbors: np.ndarray,
    explored: np.ndarray,
    winners: np.ndarray,
    near: np.ndarray,
    space: np.ndarray,
    space_distances: np.ndarray,
) -> None:
    """New winners of points first..last-1 from G(n), the union of G_c over c in K(n) and any explored clusters.

    Parameters
    ----------
    points : (N', D) float, IN
    means : (C, D) float, IN
    neighbors : (C, G) int32, IN
    explored : (N', n_explore) int32, IN
    winners : (N', C') int32, IN/OUT
    near : (N', C') float, OUT, squared distances, ascending
    space : (N', C' G + n_explore) int32, OUT, the clusters searched, then -1
    space_distances : same shape, float, OUT, squared distances
    """
    n_winners = winners.shape[1]
    seen = np.full(means.shape[0], -1, np.int64)
    for n in range(first, last):
        size = 0
        for k in range(n_winners):
            for i in range(neighbors.shape[1]):
                c = neighbors[winners[n, k], i]
                if seen[c] != n:
                    seen[c] = n
                    space[n, size] = c
                    size += 1
        for i in range(explored.shape[1]):
            c = explored[n, i]
            if seen[c] != n:
                seen[c] = n
                space[n, size] = c
                size += 1
        for k in range(n_winners):
            near[n, k] = np.inf
        for i in range(size):
            c = space[n, i]
            distance = squared_distance(points, n, means, c)
            space_distances[n, i] = distance
            if distance < near[n, n_winners - 1] or i < n_winners:
                place = min(i, n_winners - 1)
                while place > 0 and near[n, place - 1] > distance:
                    near[n, place] = near[n, place - 1]
                    winners[n, place] = winners[n, place - 1]
                    place -= 1
                near[n, place] = distance
                winners[n, place] = c
        for i in range(size, space.shape[1]):
            space[n, i] = -1


@kernel
def update_neighbors(
    first: int,
    last: int,
    order: np.ndarray,
    start: np.ndarray,
    space: np.ndarray,
    space_distances: np.ndarray,
    old: np.ndarray,
    new: np.ndarray,
) -> None:
    """G_c of clusters first..last-1: the G smallest mean distances d_cc' over the members I_c, itself first.

    d_cc' is the mean of ||y_n - mu_c'|| over the n in I_c that evaluated it.  Where fewer than G were evaluated,
    the old neighbours fill the rest.

    Parameters
    ----------
    order : (N',) int, IN, and start : (C + 1,) int64, IN: the members of c are order[start[c]:start[c + 1]]
    space, space_distances : IN, from `search_points`
    old : (C, G) int32, IN
    new : (C, G) int32, OUT
    """
    n_clusters, size = old.shape
    sums = np.zeros(n_clusters, np.float64)
    counts = np.zeros(n_clusters, np.int64)
    touched = np.empty(n_clusters, np.int32)
    means = np.empty(size, np.float64)
    for c in range(first, last):
        n_touched = 0
        for m in range(start[c], start[c + 1]):
            n = order[m]
            for i in range(space.shape[1]):
                other = space[n, i]
                if other < 0:
                    break
                if counts[other] == 0:
                    touched[n_touched] = other
                    n_touched += 1
                counts[other] += 1
                sums[other] += math.sqrt(space_distances[n, i])
        new[c, 0] = c
        filled = 1
        for t in range(n_touched):
            other = touched[t]
            mean = sums[other] / counts[other]
            sums[other] = 0.0
            counts[other] = 0
            if other == c or (filled == size and (size == 1 or mean >= means[size - 1])):
                continue
            place = min(filled, size - 1)
            filled = min(filled + 1, size)
            while place > 1 and means[place - 1] > mean:
                means[place] = means[place - 1]
                new[c, place] = new[c, place - 1]
                place -= 1
            means[place] = mean
            new[c, place] = other
        for i in range(size):
            if filled == size:
                break
            there = False
            for k in range(filled):
                there |= new[c, k] == old[c, i]
            if not there:
                new[c, filled] = old[c, i]
                filled += 1


@kernel
def sum_points(
    first: int,
    last: int,
    points: np.ndarray,
    weights: np.ndarray,
    means: np.ndarray,
    winners: np.ndarray,
    near: np.ndarray,
    precision: float,
    shift_magic: np.ndarray,
    magic_row: np.ndarray,
    mass_magic: float,
    shifts: np.ndarray,
    masses: np.ndarray,
    facts: np.ndarray,
) -> None:
    """Responsibilities, bound and the sums of the M-step over rows first..last-1.

    Parameters
    ----------
    precision : float64, IN, 1 / (2 sigma^2)
    shift_magic, magic_row, mass_magic : IN, as in `blocked.search_tasks`
    shifts : (C, D) float64, IN/OUT, sum of gamma s (y - mu_c)
    masses : (C,) float64, IN/OUT, sum of gamma s
    facts : (N', 2) float64, OUT, of every point gamma log sum exp(-d^2 precision) and gamma s d^2
    """
    n_winners = winners.shape[1]
    shares = np.empty(n_winners, np.float64)
    for n in range(first, last):
        total = 0.0
        for k in range(n_winners):
            shares[k] = math.exp((np.float64(near[n, 0]) - np.float64(near[n, k])) * precision)
        for k in range(n_winners):  # a sum has a loop of its own (`jit`)
            total += shares[k]
        facts[n, 0] = weights[n] * (math.log(total) - near[n, 0] * precision)
        scatter = 0.0
        for k in range(n_winners):
            if shares[k] <= NEGLIGIBLE:
                continue
            part = weights[n] * shares[k] / total
            scatter += part * near[n, k]
            c = winners[n, k]
            add_point(shifts, masses, c, points, n, means, part, shift_magic, magic_row, mass_magic)
        facts[n, 1] = scatter
