"""A small k-means inside each of many cells: a few Lloyd steps from given seeds, one assignment of all."""

from __future__ import annotations

import numpy as np

from .distances import local_rows, transpose_rows
from .jit import kernel, part
from .nearest import squared_norms
from .selection import LANES

#: Rows of a cell that are assigned at once in the end: nobody needs all of them side by side.
PIECE = 16 * LANES

#: Fractional part of the golden ratio: its multiples fill [0, 1) evenly.
GOLDEN = 0.6180339887498949


@part
def lay_in_blocks(n: int, rows: np.ndarray, blocks: np.ndarray) -> None:
    """Blocks of LANES rows each, transposed: blocks[b, :, j] = rows[b * LANES + j], and 0 beyond row n - 1."""
    for block in range(blocks.shape[0]):
        low = block * LANES
        transpose_rows(max(0, min(LANES, n - low)), rows[low : low + LANES], blocks[block])


@part
def lay_local_rows(
    points: np.ndarray,
    chosen: np.ndarray,
    first: int,
    last: int,
    origin: np.ndarray,
    few: np.ndarray,
    blocks: np.ndarray,
    row_squares: np.ndarray,
) -> None:
    """`lay_in_blocks` of the points chosen[first:last], less an origin, and their squared norms.

    Parameters
    ----------
    points : (N', D) float, IN
    chosen : (m,) int64, IN, rows
    origin : (D,) float, IN
    few : (LANES, D) float, scratch
    blocks : (>= (last - first) / LANES, D, LANES) float, OUT
    row_squares : (LANES times the number of blocks,) float, OUT
    """
    for low in range(first, last, LANES):
        n = min(LANES, last - low)
        local_rows(points, chosen, low, low + n, origin, few, row_squares[low - first :])
        transpose_rows(n, few, blocks[(low - first) // LANES])


@part
def assign_blocks(
    n: int,
    blocks: np.ndarray,
    row_squares: np.ndarray,
    centres: np.ndarray,
    centre_squares: np.ndarray,
    products: np.ndarray,
    best: np.ndarray,
    ids: np.ndarray,
    distances: np.ndarray,
) -> None:
    """Nearest centre of the first n rows, all in the same local coordinates.

    Parameters
    ----------
    blocks : (>= n / LANES, D, LANES) float, IN, from `lay_in_blocks`
    row_squares : (>= n,) float, IN
    centres : (k, D) float, IN
    centre_squares : (k,) float, OUT
    products : (k, LANES) float, scratch
    best : (LANES,) float, scratch
    ids : (>= n,) int32, OUT
    distances : (>= n,) float, OUT, squared, never negative
    """
    zero = distances.dtype.type(0)
    squared_norms(centres, centre_squares)
    found = np.empty(LANES, np.int32)
    for block in range((n + LANES - 1) // LANES):
        np.dot(centres, blocks[block], products)
        for j in range(LANES):
            best[j] = centre_squares[0] - (products[0, j] + products[0, j])
            found[j] = 0
        for c in range(1, centres.shape[0]):
            for j in range(LANES):
                value = centre_squares[c] - (products[c, j] + products[c, j])
                nearer = value < best[j]
                best[j] = value if nearer else best[j]
                found[j] = np.int32(c) if nearer else found[j]
        low = block * LANES
        for j in range(min(LANES, n - low)):
            ids[low + j] = found[j]
            value = best[j] + row_squares[low + j]
            distances[low + j] = value if value > zero else zero


@part
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
    order, cell_start : IN, as in `greedy.seed_cells`
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
        room = (max(n, min(size, PIECE)) + LANES - 1) // LANES * LANES
        few = np.empty((LANES, n_features), points.dtype)
        row_squares = np.empty(room, points.dtype)
        blocks = np.empty((room // LANES, n_features, LANES), points.dtype)
        lay_local_rows(points, spread, int(np.int64(0)), n, origin, few, blocks, row_squares)
        local = np.empty((k, n_features), points.dtype)
        local_squares = np.empty(k, points.dtype)
        local_rows(points, seeds, offset, offset + k, origin, local, local_squares)
        products = np.empty((k, LANES), points.dtype)
        best = np.empty(LANES, points.dtype)
        near = np.empty(room, points.dtype)
        ids = np.empty(room, np.int32)
        sums = np.empty((k, n_features), np.float64)
        sum_masses = np.empty(k, np.float64)
        for _ in range(n_steps):
            assign_blocks(n, blocks, row_squares, local, local_squares, products, best, ids, near)
            sums[:] = 0
            sum_masses[:] = 0
            for i in range(n):
                c, row = ids[i], spread[i]
                weight = weights[row]
                sum_masses[c] += weight
                for d in range(n_features):
                    sums[c, d] += weight * (points[row, d] - origin[d])
            for c in range(k):
                if sum_masses[c] > 0.0:
                    for d in range(n_features):
                        local[c, d] = sums[c, d] / sum_masses[c]
        for begin in range(0, size, room):
            m = min(room, size - begin)
            lay_local_rows(points, spread, begin, begin + m, origin, few, blocks, row_squares)
            assign_blocks(m, blocks, row_squares, local, local_squares, products, best, ids, near)
            for i in range(m):
                labels[spread[begin + i]] = offset + ids[i]
                distances[spread[begin + i]] = near[i]
        for c in range(k):
            for d in range(n_features):
                centres[offset + c, d] = np.float64(local[c, d]) + np.float64(origin[d])


@kernel
def mean_of_groups(
    first: int,
    last: int,
    points: np.ndarray,
    weights: np.ndarray,
    order: np.ndarray,
    start: np.ndarray,
    means: np.ndarray,
    distances: np.ndarray,
) -> None:
    """Weighted mean of groups first..last-1, and the squared distance of every member to it.

    Parameters
    ----------
    points : (N', D) float, IN
    weights : (N',) float64, IN
    order, start : IN, group g holds the rows order[start[g]:start[g + 1]]
    means : (n_groups, D) float64, OUT; 0 for a group that is empty or without weight
    distances : (N',) float, OUT
    """
    for group in range(first, last):
        mass = 0.0
        for d in range(means.shape[1]):
            means[group, d] = 0.0
        for i in range(start[group], start[group + 1]):
            row = order[i]
            mass += weights[row]
            for d in range(means.shape[1]):
                means[group, d] += weights[row] * points[row, d]
        if mass > 0.0:
            for d in range(means.shape[1]):
                means[group, d] /= mass
        for i in range(start[group], start[group + 1]):
            row = order[i]
            total = 0.0
            for d in range(means.shape[1]):
                difference = points[row, d] - means[group, d]
                total += difference * difference
            distances[row] = total
