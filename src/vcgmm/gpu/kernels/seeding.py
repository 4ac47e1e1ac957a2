"""Greedy D^2 seeding inside many cells at once, each cell by one program from its first seed to its last."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def draw(totals, n_blocks, target, masses, near, first, last, BY_DISTANCE: tl.constexpr, ROWS: tl.constexpr):
    """The row of a cell at which the running sum of its masses passes `target`.

    Parameters
    ----------
    totals : (n_blocks,) float64, IN, masses of the cell's blocks of ROWS rows
    masses, near : (n,) float32, IN; the mass of a row is their product, or without BY_DISTANCE its weight alone
    first, last : IN, rows of the cell
    """
    before = target * 0.0
    block = first * 0
    passed = first * 0
    for i in range(n_blocks):  # the block, one after the other: there are few
        total = tl.load(totals + i)
        ahead = (before + total <= target) & (passed == 0) & (i < n_blocks - 1)
        before = tl.where(ahead, before + total, before)
        block = tl.where(ahead, block + 1, block)
        passed = tl.where(ahead, passed, passed + 1)
    row = first + block * ROWS + tl.arange(0, ROWS)
    mass = tl.load(masses + row, mask=row < last, other=0.0).to(tl.float64)
    if BY_DISTANCE:
        mass *= tl.load(near + row, mask=row < last, other=0.0).to(tl.float64)
    running = before + tl.cumsum(mass, axis=0)
    # Among the rows of any mass: rounding may point just past the last of them.
    beyond = tl.min(tl.where((running > target) & (mass > 0), row, last), axis=0)
    latest = tl.max(tl.where(mass > 0, row, first), axis=0)
    return tl.minimum(beyond, latest)


@triton.jit
def seed_in_cells(
    rows,
    n_features,
    cell_start,
    seed_start,
    block_start,
    masses,
    uniforms,
    factor,
    near,
    tried,
    n_rows,
    totals,
    seeds,
    potentials,
    N_TRIALS: tl.constexpr,
    ROWS: tl.constexpr,
    FEATURES: tl.constexpr,
):
    """Draw the seeds of a cell by D^2, each the one of N_TRIALS draws that leaves the smallest error.

    Parameters
    ----------
    rows : (n, D) float32, IN, those of a cell one after the other
    cell_start, seed_start, block_start : (n_cells + 1,) int64, IN, rows, seeds, and blocks of rows of each cell
    masses : (n,) float32, IN, weights
    uniforms : (n_seeds, N_TRIALS) float64, IN
    factor : (n_cells,) float64, IN, what potentials are multiplied by
    near : (n,) float32, scratch, squared distances to the nearest seed so far
    tried : (N_TRIALS, n) float32, scratch, the same if a candidate were a seed
    totals : (n_blocks,) float64, scratch
    seeds : (n_seeds,) int64, OUT, rows; -1 where a cell has run out of different ones
    potentials : (n_seeds,) float64, OUT, the cell's squared error once this seed is there
    """
    cell = tl.program_id(0)
    first = tl.load(cell_start + cell)
    last = tl.load(cell_start + cell + 1)
    own_totals = totals + tl.load(block_start + cell)
    n_blocks = (tl.load(block_start + cell + 1) - tl.load(block_start + cell)).to(tl.int32)
    begin = tl.load(seed_start + cell)
    n_seeds = (tl.load(seed_start + cell + 1) - begin).to(tl.int32)
    scale = tl.load(factor + cell)
    total = scale * 0.0
    for block in range(n_blocks):
        row = first + block * ROWS + tl.arange(0, ROWS)
        inside = row < last
        tl.store(near + row, tl.full((ROWS,), float("inf"), tl.float32), mask=inside)
        mass = tl.sum(tl.load(masses + row, mask=inside, other=0.0).to(tl.float64), axis=0)
        tl.store(own_totals + block, mass)
        total += mass
    tl.debug_barrier()
    for seed in range(n_seeds):
        tl.store(seeds + begin + seed, -1)
        tl.store(potentials + begin + seed, 0.0)
        if total > 0:
            best_error = scale * 0.0 + float("inf")
            best_trial = n_seeds * 0
            best_pick = first
            n_trials = tl.where(seed == 0, 1, N_TRIALS)  # the first is drawn by weight, and without a choice
            for trial in range(n_trials):
                target = tl.load(uniforms + (begin + seed) * N_TRIALS + trial) * total
                if seed == 0:
                    pick = draw(own_totals, n_blocks, target, masses, near, first, last, False, ROWS)
                else:
                    pick = draw(own_totals, n_blocks, target, masses, near, first, last, True, ROWS)
                error = scale * 0.0
                for block in range(n_blocks):
                    row = first + block * ROWS + tl.arange(0, ROWS)
                    inside = row < last
                    distance = tl.zeros((ROWS,), tl.float32)
                    for start in range(0, n_features, FEATURES):
                        feature = start + tl.arange(0, FEATURES)
                        wide = feature < n_features
                        y = tl.load(
                            rows + row[:, None] * n_features + feature[None, :],
                            mask=inside[:, None] & wide[None, :],
                            other=0.0,
                        )
                        m = tl.load(rows + pick * n_features + feature, mask=wide, other=0.0)
                        difference = tl.where(wide[None, :], y - m[None, :], 0.0)
                        distance += tl.sum(difference * difference, axis=1)
                    distance = tl.minimum(tl.load(near + row, mask=inside, other=0.0), distance)
                    tl.store(tried + trial * n_rows + row, distance, mask=inside)
                    mass = tl.load(masses + row, mask=inside, other=0.0).to(tl.float64)
                    error += tl.sum(mass * distance.to(tl.float64), axis=0)
                better = error < best_error
                best_error = tl.where(better, error, best_error)
                best_trial = tl.where(better, trial, best_trial)
                best_pick = tl.where(better, pick, best_pick)
            tl.debug_barrier()
            for block in range(n_blocks):
                row = first + block * ROWS + tl.arange(0, ROWS)
                inside = row < last
                distance = tl.load(tried + best_trial * n_rows + row, mask=inside, other=0.0)
                tl.store(near + row, distance, mask=inside)
                mass = tl.load(masses + row, mask=inside, other=0.0).to(tl.float64) * distance.to(tl.float64)
                tl.store(own_totals + block, tl.sum(mass, axis=0))
            tl.store(seeds + begin + seed, best_pick)
            tl.store(potentials + begin + seed, best_error * scale)
            total = best_error
            tl.debug_barrier()
