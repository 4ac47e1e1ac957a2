"""Greedy D^2 seeding inside each of many cells, with its distances as matrix products.

D^2 sampling draws a seed with probability proportional to its squared distance to the seeds before it; the greedy
form draws several candidates and takes the one that lowers the error most.  One at a time that is a pass over the
rows per candidate.  Here a batch of candidates is drawn at once, their distances to all rows are one product, and
several seeds are taken from the batch: each time the candidate that lowers the error most, given those taken
before it.  Candidates that came too near to a seed taken meanwhile gain little and are passed over by themselves.
"""

from __future__ import annotations

import numpy as np

from ..jit import kernel, part
from ..nearest.lloyd import lay_in_blocks, spread_rows
from ..nearest.nearest_tiles import padded
from ..parts.distances import local_rows, squared_distance
from ..parts.selection import LANES
from ..parts.vectors import VECTOR_BYTES
from .seed_tiles import CANCELLED, distances_and_savings

#: Most seeds taken from one batch of candidates, and the share of the seeds before it that a batch may add.
LARGEST_BATCH = 8
BATCH_SHARE = 4


@part
def draw_index(
    running: np.ndarray,
    n: int,
    uniform: float,
) -> int:
    """Smallest i with running[i] > uniform * running[n - 1]: an entry of positive mass.

    Parameters
    ----------
    running : (>= n,) float64, IN, running sums of masses, the last one positive
    """
    target = uniform * running[n - 1]
    low, high = 0, n - 1
    while low < high:
        middle = (low + high) // 2
        if running[middle] > target:
            high = middle
        else:
            low = middle + 1
    while low > 0 and running[low] == running[low - 1]:  # rounding reached the end, where masses may be 0
        low -= 1
    return low


@part
def distances_and_gains(
    n: int,
    n_candidates: int,
    rows: np.ndarray,
    blocks: np.ndarray,
    squares: np.ndarray,
    masses: np.ndarray,
    distances: np.ndarray,
    picks: np.ndarray,
    chosen: np.ndarray,
    chosen_squares: np.ndarray,
    out: np.ndarray,
    saved: np.ndarray,
    flags: np.ndarray,
    gains: np.ndarray,
) -> None:
    """out[b, i] = ||rows[i] - rows[picks[b]]||^2, exactly 0 for equal rows, and by how much b lowers the error.

    Parameters
    ----------
    rows : (>= n, D) float, IN
    blocks : (>= n / LANES, D, LANES) float, IN, the rows as `lloyd.lay_in_blocks` lays them
    squares : (>= whole blocks,) float, IN, squared norms of the rows, 0 for no row
    masses, distances : (>= whole blocks,) float, IN, the error is sum_i masses[i] distances[i]; 0 for no row
    picks : (>= n_candidates,) int64, IN
    chosen : (>= m, D) float, scratch, m the multiple of HEIGHT from n_candidates on
    chosen_squares, flags : (>= m,) float and int64, scratch
    out : (m, whole blocks) float, OUT
    saved : (>= m, lanes) float, scratch
    gains : (>= n_candidates,) float, OUT
    """
    zero, tiny = rows.dtype.type(0), rows.dtype.type(CANCELLED)
    m = padded(n_candidates)
    for b in range(m):
        pick = picks[min(b, n_candidates - 1)]
        for d in range(rows.shape[1]):
            chosen[b, d] = rows[pick, d]
        chosen_squares[b] = squares[pick]
        for lane in range(saved.shape[1]):
            saved[b, lane] = zero
    for b in range(n_candidates):
        gains[b] = zero
    for block in range((n + LANES - 1) // LANES):
        low = block * LANES
        for b in range(m):
            flags[b] = 0
        distances_and_savings(
            chosen[:m], chosen_squares[:m], blocks[block], squares, masses, distances, low, out, saved, flags
        )
        for b in range(n_candidates):
            if flags[b] == 0:
                continue
            for i in range(low, min(low + LANES, n)):
                if out[b, i] < tiny * (chosen_squares[b] + squares[i]):
                    out[b, i] = squared_distance(rows, i, rows, picks[b])
                    gains[b] += masses[i] * max(distances[i] - out[b, i], zero)
    for b in range(n_candidates):
        total = zero
        for lane in range(saved.shape[1]):
            total += saved[b, lane]
        gains[b] += total


@part
def gain_of(n: int, masses: np.ndarray, distances: np.ndarray, candidates: np.ndarray, b: int) -> float:
    """By how much candidate b would lower the error sum_i masses[i] distances[i]."""
    zero = distances.dtype.type(0)
    total = zero
    for i in range(n):
        saved = distances[i] - candidates[b, i]
        total += masses[i] * (saved if saved > zero else zero)
    return total


@part
def take_best(
    pick: int,
    n: int,
    n_candidates: int,
    masses: np.ndarray,
    distances: np.ndarray,
    candidates: np.ndarray,
    gains: np.ndarray,
    known_at: np.ndarray,
) -> int:
    """The candidate with the largest gain; -1 where none gains anything.

    A gain can only shrink as seeds are taken, so one from before is a bound: only those that still lead are
    computed anew.

    Parameters
    ----------
    pick : int, IN, seeds taken from this batch so far
    gains : (n_candidates,) float, IN/OUT
    known_at : (n_candidates,) int64, IN/OUT, how many seeds were taken when a gain was computed
    """
    while True:
        best = int(np.int64(0))
        for b in range(1, n_candidates):
            if gains[b] > gains[best]:
                best = b
        if not gains[best] > 0.0:
            return -1
        if known_at[best] == pick:
            return best
        gains[best] = gain_of(n, masses, distances, candidates, best)
        known_at[best] = pick


@kernel
def seed_cells(
    first: int,
    last: int,
    cells: np.ndarray,
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
    """Greedy D^2 sampling inside the cells cells[first:last], on a sample of each.

    Parameters
    ----------
    cells : (n_cells,) int64, IN, in the order in which they are to be worked on
    points : (N', D) float, IN
    weights : (N',) float64, IN
    order : (N',) int, IN
    cell_start : (n_cells + 1,) int64, IN, cell i holds the rows order[cell_start[i]:cell_start[i + 1]]
    seed_start : (n_cells + 1,) int64, IN, cell i draws the seeds seed_start[i]..seed_start[i + 1] - 1
    sample_per_seed : int, IN, rows looked at for each seed
    uniforms : (n_seeds, n_trials) float64, IN
    seeds : (n_seeds,) int64, OUT, rows; -1 where a cell has run out of different rows
    potentials : (n_seeds,) float64, OUT, the cell's squared error once this seed is there, estimated on the sample
    """
    n_features = points.shape[1]
    n_trials = uniforms.shape[1]
    most = padded(LARGEST_BATCH * n_trials)
    picks = np.empty(most, np.int64)
    chosen = np.empty((most, n_features), points.dtype)
    chosen_squares = np.empty(most, points.dtype)
    saved = np.empty((most, VECTOR_BYTES // points.itemsize), points.dtype)
    flags = np.empty(most, np.int64)
    gains = np.empty(most, points.dtype)
    known_at = np.empty(most, np.int64)
    largest, most_rows = int(np.int64(0)), int(np.int64(0))
    for place in range(first, last):
        cell = cells[place]
        size, wanted = cell_start[cell + 1] - cell_start[cell], seed_start[cell + 1] - seed_start[cell]
        if wanted > 0:
            largest, most_rows = max(largest, size), max(most_rows, min(size, sample_per_seed * wanted))
    n_blocks = (most_rows + LANES - 1) // LANES
    # Once for all cells: memory of this size goes back to the system whenever it is let go.
    spread = np.empty(largest, np.int64)
    rows = np.empty((most_rows, n_features), points.dtype)
    squares = np.empty(n_blocks * LANES, points.dtype)
    blocks = np.empty((n_blocks, n_features, LANES), points.dtype)
    masses = np.empty(n_blocks * LANES, points.dtype)
    running = np.empty(most_rows, np.float64)
    distances = np.empty(n_blocks * LANES, points.dtype)
    flat = np.empty(most * n_blocks * LANES, points.dtype)
    for place in range(first, last):
        cell = cells[place]
        low, high = cell_start[cell], cell_start[cell + 1]
        begin, end = seed_start[cell], seed_start[cell + 1]
        size = high - low
        n = min(size, sample_per_seed * (end - begin))
        for c in range(begin, end):
            seeds[c] = -1
            potentials[c] = 0.0
        if n == 0:
            continue
        spread_rows(order, low, high, n, uniforms[begin, 0], spread)
        room = (n + LANES - 1) // LANES * LANES
        local_rows(points, spread, int(np.int64(0)), n, points[order[low]].copy(), rows, squares)
        lay_in_blocks(n, rows, blocks)
        for i in range(n, room):
            squares[i] = 0
            masses[i] = 0
        for i in range(room):
            distances[i] = 0
        sampled, whole = 0.0, 0.0
        for i in range(size):
            whole += weights[spread[i]]
            if i < n:
                masses[i] = points.dtype.type(weights[spread[i]])
                sampled += weights[spread[i]]
                running[i] = sampled
        factor = whole / sampled
        picks[0] = draw_index(running, n, uniforms[begin, 0])
        alone = int(np.int64(1))
        distances_and_gains(
            n, alone, rows, blocks, squares, masses, distances, picks, chosen, chosen_squares,
            flat[: padded(alone) * room].reshape(padded(alone), room), saved, flags, gains,
        )  # fmt: skip
        for i in range(n):
            distances[i] = flat[i]
        seeds[begin] = spread[picks[0]]
        c = begin + 1
        found = 1
        while found > 0:
            # The error with all seeds so far, and its running sums for the next draws.
            total = 0.0
            for i in range(n):
                total += np.float64(masses[i]) * np.float64(distances[i])
                running[i] = total
            potentials[c - 1] = total * factor
            if total <= 0.0 or c == end:
                break
            batch = min(end - c, LARGEST_BATCH, max(1, (c - begin) // BATCH_SHARE))
            n_candidates = batch * n_trials
            for b in range(n_candidates):
                picks[b] = draw_index(running, n, uniforms[c + b // n_trials, b % n_trials])
                known_at[b] = 0
            candidates = flat[: padded(n_candidates) * room].reshape(padded(n_candidates), room)
            distances_and_gains(
                n, n_candidates, rows, blocks, squares, masses, distances, picks, chosen, chosen_squares,
                candidates, saved, flags, gains,
            )  # fmt: skip
            found = int(np.int64(0))
            while found < batch:
                best = take_best(found, n, n_candidates, masses, distances, candidates, gains, known_at)
                if best < 0:
                    break
                lowered = 0.0
                for i in range(n):
                    distances[i] = min(distances[i], candidates[best, i])
                for i in range(n):
                    lowered += np.float64(masses[i]) * np.float64(distances[i])
                seeds[c] = spread[picks[best]]
                potentials[c] = lowered * factor
                for b in range(n_candidates):  # itself, and wherever the same row was drawn again
                    if distances[picks[b]] <= 0:
                        gains[b] = 0
                found += 1
                c += 1
