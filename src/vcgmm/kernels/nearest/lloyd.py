"""A small k-means inside each of many cells: a few Lloyd steps from given seeds, and labels of all rows.

Rows are compared with centres as short integers (`shorts`) where these are exact enough, else as floats.
"""

from __future__ import annotations

import numpy as np

from ..jit import kernel, part
from ..parts.distances import local_rows, squared_distance
from ..parts.prefetch import hint_row
from ..parts.selection import LANES
from ..parts.shorts import shorten, shorten_centres, steps_per_unit, steps_tell
from ..parts.transpose import transpose_rows
from .all_centres import squared_norms
from .nearest_tiles import nearest_of_few, padded

#: Fractional part of the golden ratio: its multiples fill [0, 1) evenly.
GOLDEN = 0.6180339887498949

#: Rows are fetched so many ahead.
SOON = 4

#: Rows that are assigned at a time.
ROWS = 8 * LANES

#: How far a Lloyd step goes on the way to the mean, all but the last: centres go the same way for many steps, and
#: those that are longer get there sooner.  Below 2 they converge all the same.
STEP_LENGTH = 1.8


@part
def lay_in_blocks(n: int, rows: np.ndarray, blocks: np.ndarray) -> None:
    """The first n rows in blocks of LANES, transposed: blocks[b, :, j] = rows[b * LANES + j], 0 for no row."""
    for block in range((n + LANES - 1) // LANES):
        low = block * LANES
        transpose_rows(min(LANES, n - low), rows[low : low + LANES], blocks[block])


@part
def assign_blocks(
    n: int,
    blocks: np.ndarray,
    row_squares: np.ndarray,
    k: int,
    centres: np.ndarray,
    centre_squares: np.ndarray,
    best: np.ndarray,
    found: np.ndarray,
    ids: np.ndarray,
    distances: np.ndarray,
) -> None:
    """Nearest of k centres for the first n rows, all in the same local coordinates.

    Parameters
    ----------
    blocks : (>= n / LANES, D, LANES) float, IN, from `lay_in_blocks`
    row_squares : (>= n,) float, IN
    k : int, IN
    centres : (padded(k), D) float, IN, whatever lies in those that are none
    centre_squares : (padded(k),) float, OUT
    best, found : (LANES,) float and int32, scratch
    ids : (>= n,) int32, OUT
    distances : (>= n,) float, OUT, squared, never negative
    """
    zero = distances.dtype.type(0)
    squared_norms(centres, centre_squares)
    centre_squares[k:] = np.inf
    for block in range((n + LANES - 1) // LANES):
        nearest_of_few(centres, centre_squares, blocks[block], best, found)
        low = block * LANES
        for j in range(min(LANES, n - low)):
            ids[low + j] = found[j]
            value = best[j] + row_squares[low + j]
            distances[low + j] = value if value > zero else zero


@part
def lay_rows(
    n: int,
    rows: np.ndarray,
    in_steps: bool | None,
    steps: float,
    blocks: np.ndarray,
    pairs: np.ndarray,
    pair_blocks: np.ndarray,
) -> None:
    """The first n rows in blocks, as `assign` compares them.

    Parameters
    ----------
    rows : (>= n, D) float, IN
    in_steps : True or None, IN, from `shorts.may_be_short`
    steps : float64, IN, from `steps_per_unit`; 0 where in_steps is None
    blocks : (>= n / LANES, D, LANES) float, OUT where there are no steps
    pairs : (>= n, (D + 1) // 2) float32, scratch
    pair_blocks : (>= n / LANES, (D + 1) // 2, LANES) float32, OUT where there are, bits of pairs
    """
    if in_steps is not None and steps > 0.0:
        shorten(n, rows, steps, pairs)
        lay_in_blocks(n, pairs, pair_blocks)
    else:
        lay_in_blocks(n, rows, blocks)


@part
def assign(
    n: int,
    rows: np.ndarray,
    row_squares: np.ndarray,
    in_steps: bool | None,
    steps: float,
    blocks: np.ndarray,
    pair_blocks: np.ndarray,
    k: int,
    centres: np.ndarray,
    centre_squares: np.ndarray,
    short_centres: np.ndarray,
    short_squares: np.ndarray,
    best: np.ndarray,
    short_best: np.ndarray,
    found: np.ndarray,
    ids: np.ndarray,
    distances: np.ndarray,
    told: bool,
) -> float:
    """Nearest of k centres for the first n rows, in steps where these are short enough.

    Parameters
    ----------
    rows, row_squares : (>= n, D) and (>= n,) float, IN
    in_steps, steps, blocks, pair_blocks : IN, from `lay_rows`; floats are laid in blocks where they turn out to be
        needed
    k, centres, centre_squares : as in `assign_blocks`
    short_centres, short_squares : (padded(k), (D + 1) // 2) float32 and (padded(k),) int32, scratch
    best, short_best, found : (LANES,) float, int32 and int32, scratch
    ids : (>= n,) int32, OUT
    distances : (>= n,) float, OUT, squared, where they are to be told

    Returns
    -------
    float
        The steps, or 0 from when on floats are compared.
    """
    if in_steps is not None and steps > 0.0:
        if shorten_centres(k, centres, steps, short_centres, short_squares):
            for low in range(0, n, LANES):
                nearest_of_few(short_centres, short_squares, pair_blocks[low // LANES], short_best, found)
                for j in range(min(LANES, n - low)):
                    ids[low + j] = found[j]
            if steps_tell(n, rows, centres, ids, steps):
                for i in range(n if told else 0):
                    distances[i] = squared_distance(rows, i, centres, ids[i])
                return steps
        lay_in_blocks(n, rows, blocks)
    assign_blocks(n, blocks, row_squares, k, centres, centre_squares, best, found, ids, distances)
    return 0.0


@part
def spread_rows(order: np.ndarray, low: int, high: int, n: int, jitter: float, out: np.ndarray) -> None:
    """Put n rows spread over order[low:high] first into `out`, the others after them.

    One row from each of n equal runs, at a place in it that follows multiples of the golden ratio from `jitter`
    on: evenly spaced rows would be a trap where rows come in turns.
    """
    size = high - low
    rest = n
    share = jitter
    end = 0
    for run in range(n):
        begin, end = end, size * (run + 1) // n
        chosen = begin + int(share * (end - begin))
        share += GOLDEN
        if share >= 1.0:
            share -= 1.0
        for i in range(begin, end):
            if i == chosen:
                out[run] = order[low + i]
            else:
                out[rest] = order[low + i]
                rest += 1


@kernel
def assign_rows(
    first: int,
    last: int,
    points: np.ndarray,
    centres: np.ndarray,
    in_steps: bool | None,
    labels: np.ndarray,
    distances: np.ndarray,
) -> None:
    """The nearest of all centres, as far as products tell, for runs first..last-1 of ROWS rows each.

    Every run has steps of its own: one row that lies far off makes them long.

    Parameters
    ----------
    points : (N', D) float, IN
    centres : (k, D) float, IN
    in_steps : True or None, IN, from `shorts.may_be_short`
    labels : (N',) int32, OUT
    distances : (N',) float, OUT, squared
    """
    k, n_features = centres.shape
    room = min(int(np.int64(ROWS)), points.shape[0] - first * ROWS)  # few rows may be very wide
    n_blocks = (room + LANES - 1) // LANES
    row_squares = np.empty(room, points.dtype)
    blocks = np.empty((n_blocks, n_features, LANES), points.dtype)
    n_pairs = 0 if in_steps is None else (n_features + 1) // 2
    pairs = np.empty((room, n_pairs), np.float32)
    pair_blocks = np.empty((n_blocks, n_pairs, LANES), np.float32)
    local = np.empty((padded(k), n_features), points.dtype)
    local[:] = 0
    for c in range(k):
        for d in range(n_features):
            local[c, d] = centres[c, d]
    centre_squares = np.empty(local.shape[0], points.dtype)
    short_centres = np.empty((local.shape[0], n_pairs), np.float32)
    short_squares = np.empty(local.shape[0], np.int32)
    best = np.empty(LANES, points.dtype)
    short_best = np.empty(LANES, np.int32)
    found = np.empty(LANES, np.int32)
    for low in range(first * ROWS, min(last * ROWS, points.shape[0]), ROWS):
        n = min(ROWS, points.shape[0] - low)
        rows = points[low : low + n]
        squared_norms(rows, row_squares)
        steps = 0.0
        if in_steps is not None:
            steps = steps_per_unit(n, row_squares, n_features, k)
        lay_rows(n, rows, in_steps, steps, blocks, pairs, pair_blocks)
        assign(
            n, rows, row_squares, in_steps, steps, blocks, pair_blocks, k, local, centre_squares, short_centres,
            short_squares, best, short_best, found, labels[low : low + n], distances[low : low + n], True,
        )  # fmt: skip


@kernel
def cluster_cells(
    first: int,
    last: int,
    cells: np.ndarray,
    points: np.ndarray,
    weights: np.ndarray,
    order: np.ndarray,
    cell_start: np.ndarray,
    seeds: np.ndarray,
    centre_start: np.ndarray,
    sample_per_centre: int,
    n_steps: int,
    label: bool,
    in_steps: bool | None,
    centres: np.ndarray,
    labels: np.ndarray,
    distances: np.ndarray,
) -> None:
    """Lloyd steps inside the cells cells[first:last] from given seeds; then, if asked for, labels of all rows.

    Parameters
    ----------
    cells : (n_cells,) int64, IN, in the order in which they are to be worked on
    points : (N', D) float, IN
    weights : (N',) float64, IN
    order, cell_start : IN, as in `greedy.seed_cells`
    seeds : (C,) int64, IN, rows
    centre_start : (n_cells + 1,) int64, IN, cell i makes the centres centre_start[i]..centre_start[i + 1] - 1
    sample_per_centre : int, IN, Lloyd steps look at no more rows than this times the cell's centres
    n_steps : int, IN
    label : bool, IN
    in_steps : True or None, IN, from `shorts.may_be_short`
    centres : (C, D) float64, OUT
    labels : (N',) int32, OUT, the nearest centre of the cell; left as they are where not asked for
    distances : (N',) float, OUT, squared; likewise
    """
    n_features = points.shape[1]
    most, room, largest = int(np.int64(0)), int(np.int64(ROWS)), int(np.int64(0))
    for place in range(first, last):
        cell = cells[place]
        size, k = cell_start[cell + 1] - cell_start[cell], centre_start[cell + 1] - centre_start[cell]
        most, room, largest = max(most, size), max(room, min(size, sample_per_centre * k)), max(largest, k)
    room = min(room, most)
    room += -room % LANES
    # Once for all cells: memory of this size goes back to the system whenever it is let go.
    spread = np.empty(most, np.int64)
    rows = np.empty((room, n_features), points.dtype)
    row_squares = np.empty(room, points.dtype)
    row_weights = np.empty(room, np.float64)
    blocks = np.empty((room // LANES, n_features, LANES), points.dtype)
    n_pairs = 0 if in_steps is None else (n_features + 1) // 2
    pairs = np.empty((room, n_pairs), np.float32)
    pair_blocks = np.empty((room // LANES, n_pairs, LANES), np.float32)
    near = np.empty(room, points.dtype)
    ids = np.empty(room, np.int32)
    best = np.empty(LANES, points.dtype)
    short_best = np.empty(LANES, np.int32)
    found = np.empty(LANES, np.int32)
    all_local = np.empty((padded(largest), n_features), points.dtype)
    all_local[:] = 0
    all_squares = np.empty(all_local.shape[0], points.dtype)
    all_short = np.empty((all_local.shape[0], n_pairs), np.float32)
    all_short_squares = np.empty(all_local.shape[0], np.int32)
    sums = np.empty((largest, n_features), np.float64)
    sum_masses = np.empty(largest, np.float64)
    for place in range(first, last):
        cell = cells[place]
        low, high = cell_start[cell], cell_start[cell + 1]
        offset = centre_start[cell]
        k = centre_start[cell + 1] - offset
        size = high - low
        if size == 0:
            continue
        origin = points[order[low]].copy()
        n = min(size, sample_per_centre * k)
        spread_rows(order, low, high, n, 0.5, spread)
        local, local_squares = all_local[: padded(k)], all_squares[: padded(k)]
        short, short_squares = all_short[: padded(k)], all_short_squares[: padded(k)]
        local_rows(points, seeds, offset, offset + k, origin, local, local_squares)
        for i in range(n):
            row_weights[i] = weights[spread[i]]
        # Steps look at the sample.  Then it is labelled, and the others piece by piece: a cell may be most of all.
        step, begin, m, laid, steps = int(np.int64(0)), int(np.int64(0)), n, False, 0.0
        while step < n_steps or (label and begin < size):
            if not laid:
                local_rows(points, spread, begin, begin + m, origin, rows, row_squares)
                if in_steps is not None:
                    steps = steps_per_unit(m, row_squares, n_features, k * max(1, n_steps - step))
                lay_rows(m, rows, in_steps, steps, blocks, pairs, pair_blocks)
                laid = True
            steps = assign(
                m, rows, row_squares, in_steps, steps, blocks, pair_blocks, k, local, local_squares, short,
                short_squares, best, short_best, found, ids, near, step == n_steps,
            )  # fmt: skip
            if step == n_steps:
                for i in range(m):
                    labels[spread[begin + i]] = offset + ids[i]
                    distances[spread[begin + i]] = near[i]
                begin += m
                m, laid = min(ROWS, size - begin), False  # of the cell alone, whatever others there are
                continue
            step += 1
            length = STEP_LENGTH if step < n_steps else 1.0
            sums[:] = 0
            sum_masses[:] = 0
            for i in range(n):
                c = ids[i]
                weight = row_weights[i]
                sum_masses[c] += weight
                for d in range(n_features):
                    sums[c, d] += weight * rows[i, d]
            for c in range(k):
                if sum_masses[c] > 0.0:
                    for d in range(n_features):
                        local[c, d] += length * (sums[c, d] / sum_masses[c] - local[c, d])
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
    distances : (N',) float, OUT, or (0,), where nobody asks for them
    """
    for group in range(first, last):
        mass = 0.0
        for d in range(means.shape[1]):
            means[group, d] = 0.0
        for i in range(start[group], start[group + 1]):
            hint_row(points, int(order[min(i + SOON, order.shape[0] - 1)]))  # rows lie anywhere
            row = order[i]
            mass += weights[row]
            for d in range(means.shape[1]):
                means[group, d] += weights[row] * points[row, d]
        if mass > 0.0:
            for d in range(means.shape[1]):
                means[group, d] /= mass
        for i in range(start[group], start[group + 1] if distances.shape[0] else start[group]):
            row = order[i]
            total = 0.0
            for d in range(means.shape[1]):
                difference = points[row, d] - means[group, d]
                total += difference * difference
            distances[row] = total
