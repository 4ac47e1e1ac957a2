"""A small k-means inside each of many cells: D^2 seeding, a few Lloyd steps, one assignment of all."""

from __future__ import annotations

import numpy as np

from .distances import local_rows, squared_distance
from .jit import kernel
from .nearest import POINTS, squared_norms, update_nearest

#: Fractional part of the golden ratio: its multiples fill [0, 1) evenly.
GOLDEN = 0.6180339887498949


@kernel
def assign_rows(
    n: int,
    rows: np.ndarray,
    row_squares: np.ndarray,
    centres: np.ndarray,
    n_centres: int,
    centre_squares: np.ndarray,
    ids: np.ndarray,
    distances: np.ndarray,
) -> None:
    """Nearest of the first `n_centres` centres for the first n rows, all in the same local coordinates."""
    zero = distances.dtype.type(0)
    flat = np.empty(n_centres * POINTS, rows.dtype)
    best = np.empty(POINTS, rows.dtype)
    second = np.empty(POINTS, rows.dtype)
    found = np.empty(POINTS, np.int32)
    squared_norms(centres[:n_centres], centre_squares)
    for begin in range(0, n, POINTS):
        m = min(POINTS, n - begin)
        best[:] = np.inf
        second[:] = np.inf
        found[:] = 0
        products = flat[: n_centres * m].reshape(n_centres, m)
        np.dot(centres[:n_centres], rows[begin : begin + m].T, products)
        update_nearest(0, centre_squares, products, best, second, found)
        for j in range(m):
            ids[begin + j] = found[j]
            value = best[j] + row_squares[begin + j]
            distances[begin + j] = value if value > zero else zero


@kernel
def draw_index(
    masses: np.ndarray,
    n: int,
    total: float,
    uniform: float,
) -> int:
    """Smallest i with masses[0] + ... + masses[i] > uniform * total, among entries that are positive."""
    target = uniform * total
    running = 0.0
    last = 0
    for i in range(n):
        if masses[i] > 0.0:
            running += masses[i]
            last = i
            if running > target:
                return i
    return last


@kernel
def spread_rows(order: np.ndarray, low: int, high: int, n: int, jitter: float, out: np.ndarray) -> None:
    """Put n rows spread over order[low:high] first into `out`, the others after them.

    One row from each of n equal runs, at a place in it that follows multiples of the golden ratio from `jitter`
    on: evenly spaced rows would be a trap where rows come in turns.
    """
    size = high - low
    taken = 0
    rest = n
    chosen = -1
    for i in range(size):
        if taken < n and i == size * taken // n:
            run = size * (taken + 1) // n - i
            chosen = i + int((jitter + taken * GOLDEN) % 1.0 * run)
        if i == chosen:
            out[taken] = order[low + i]
            taken += 1
        else:
            out[rest] = order[low + i]
            rest += 1


@kernel
def seed_cells(
    first: int,
    last: int,
    points: np.ndarray,
    weights: np.ndarray,
    order: np.ndarray,
    cell_start: np.ndarray,
    seed_start: np.ndarray,
    sample_per_seed: int,
    uniforms: np.ndarray,
    seeds: np.ndarray,
    potentials: np.ndarray,
) -> None:
    """Greedy D^2 sampling inside cells first..last-1, on a sample of each.

    Several seeds are drawn by D^2 and the one that lowers the error most is taken.

    Parameters
    ----------
    points : (N', D) float, IN
    weights : (N',) float64, IN
    order : (N',) int64, IN
    cell_start : (n_cells + 1,) int64, IN, cell i holds the rows order[cell_start[i]:cell_start[i + 1]]
    seed_start : (n_cells + 1,) int64, IN, cell i draws the seeds seed_start[i]..seed_start[i + 1] - 1
    sample_per_seed : int, IN, rows looked at for each seed
    uniforms : (n_seeds, n_trials) float64, IN
    seeds : (n_seeds,) int64, OUT, rows; -1 where a cell has run out of different rows
    potentials : (n_seeds,) float64, OUT, the cell's squared error once this seed is there, estimated on the sample
    """
    for cell in range(first, last):
        low, high = cell_start[cell], cell_start[cell + 1]
        begin, end = seed_start[cell], seed_start[cell + 1]
        size = high - low
        n = min(size, sample_per_seed * (end - begin))
        if n == 0:
            continue
        spread = np.empty(size, np.int64)
        spread_rows(order, low, high, n, uniforms[begin, 0], spread)
        rows = np.empty((n, points.shape[1]), points.dtype)
        squares = np.empty(n, points.dtype)
        local_rows(points, spread, 0, n, points[order[low]].copy(), rows, squares)
        distances = np.full(n, np.inf, points.dtype)
        best = np.empty(n, points.dtype)
        trial = np.empty(n, points.dtype)
        masses = np.empty(n, np.float64)
        total = 0.0
        whole = 0.0
        for i in range(size):
            whole += weights[spread[i]]
            if i < n:
                masses[i] = weights[spread[i]]
                total += masses[i]
        factor = whole / total
        for c in range(begin, end):
            seeds[c] = -1
            potentials[c] = 0.0
            if total <= 0.0:
                continue
            lowest = np.inf
            for t in range(uniforms.shape[1] if c > begin else 1):
                pick = draw_index(masses, n, total, uniforms[c, t])
                potential = 0.0
                for i in range(n):
                    distance = squared_distance(rows, i, rows, pick)
                    trial[i] = distance if distance < distances[i] else distances[i]
                    potential += weights[spread[i]] * trial[i]
                if potential < lowest:
                    lowest = potential
                    seeds[c] = spread[pick]
                    best, trial = trial, best
            distances, best = best, distances
            total = lowest
            for i in range(n):
                masses[i] = weights[spread[i]] * distances[i]
            potentials[c] = total * factor


@kernel
def cluster_cells(
    first: int,
    last: int,
    points: np.ndarray,
    weights: np.ndarray,
    order: np.ndarray,
    cell_start: np.ndarray,
    seeds: np.ndarray,
    centre_start: np.ndarray,
    sample_per_centre: int,
    n_steps: int,
    centres: np.ndarray,
    labels: np.ndarray,
    distances: np.ndarray,
) -> None:
    """Lloyd steps inside cells first..last-1 from given seeds, then one assignment of all their rows.

    Parameters
    ----------
    points : (N', D) float, IN
    weights : (N',) float64, IN
    order, cell_start : IN, as in `seed_cells`
    seeds : (C,) int64, IN, rows
    centre_start : (n_cells + 1,) int64, IN, cell i makes the centres centre_start[i]..centre_start[i + 1] - 1
    sample_per_centre : int, IN, Lloyd steps look at no more rows than this times the cell's centres
    n_steps : int, IN
    centres : (C, D) float64, OUT
    labels : (N',) int32, OUT, the nearest centre of the cell
    distances : (N',) float, OUT, squared
    """
    n_features = points.shape[1]
    for cell in range(first, last):
        low, high = cell_start[cell], cell_start[cell + 1]
        offset = centre_start[cell]
        k = centre_start[cell + 1] - offset
        size = high - low
        if size == 0:
            continue
        origin = points[order[low]].copy()
        n = min(size, sample_per_centre * k)
        spread = np.empty(size, np.int64)
        spread_rows(order, low, high, n, 0.5, spread)
        rows = np.empty((size, n_features), points.dtype)
        row_squares = np.empty(size, points.dtype)
        local_rows(points, spread, 0, size, origin, rows, row_squares)
        local = np.empty((k, n_features), points.dtype)
        local_squares = np.empty(k, points.dtype)
        local_rows(points, seeds, offset, offset + k, origin, local, local_squares)
        near = np.empty(size, points.dtype)
        ids = np.empty(size, np.int32)
        sums = np.empty((k, n_features), np.float64)
        sum_masses = np.empty(k, np.float64)
        for _ in range(n_steps):
            assign_rows(n, rows, row_squares, local, k, local_squares, ids, near)
            sums[:] = 0
            sum_masses[:] = 0
            for i in range(n):
                c = ids[i]
                weight = weights[spread[i]]
                sum_masses[c] += weight
                for d in range(n_features):
                    sums[c, d] += weight * rows[i, d]
            for c in range(k):
                if sum_masses[c] > 0.0:
                    for d in range(n_features):
                        local[c, d] = sums[c, d] / sum_masses[c]
        assign_rows(size, rows, row_squares, local, k, local_squares, ids, near)
        for i in range(size):
            labels[spread[i]] = offset + ids[i]
            distances[spread[i]] = near[i]
        for c in range(k):
            for d in range(n_features):
                centres[offset + c, d] = np.float64(local[c, d]) + np.float64(origin[d])
