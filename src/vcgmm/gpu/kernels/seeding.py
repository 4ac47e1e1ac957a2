"""Greedy D^2 seeding inside many cells at once, each cell by one program from its first seed to its last."""

from __future__ import annotations

import triton
import triton.language as tl

from .launching import launched


@triton.jit
def draw_rows(
    totals, n_blocks, targets, masses, near, first, last, by_distance, BLOCKS: tl.constexpr, ROWS: tl.constexpr
):
    """The rows of a cell at which the running sum of its masses passes each of `targets` (T,) float64: (T,) int64.

    Parameters
    ----------
    totals : (n_blocks,) float64, IN, masses of the cell's blocks of ROWS rows
    masses, near : (n,) float32, IN; the mass of a row is their product, or its weight alone
    first, last : IN, rows of the cell
    by_distance : IN, whether it is the product
    BLOCKS : constexpr, not less than n_blocks
    """
    block = tl.arange(0, BLOCKS)
    total = tl.load(totals + block, mask=block < n_blocks, other=0.0)
    running = tl.cumsum(total, axis=0)[None, :]
    passed = (running <= targets[:, None]) & (block < n_blocks - 1)[None, :]
    at = tl.sum(passed.to(tl.int64), axis=1)
    before = tl.sum(tl.where(passed, total[None, :], 0.0), axis=1)
    row = first + at[:, None] * ROWS + tl.arange(0, ROWS)[None, :]
    mass = tl.load(masses + row, mask=row < last, other=0.0).to(tl.float64)
    distance = tl.load(near + row, mask=(row < last) & by_distance, other=1.0).to(tl.float64)
    mass *= distance
    beyond = before[:, None] + tl.cumsum(mass, axis=1) > targets[:, None]
    # Among the rows of any mass: rounding may point just past the last of them.
    found = tl.min(tl.where(beyond & (mass > 0), row, last), axis=1)
    latest = tl.max(tl.where(mass > 0, row, first), axis=1)
    return tl.minimum(found, latest)


@launched
@triton.jit
def seed_in_cells(
    columns,
    n_rows,
    n_features,
    order,
    cell_start,
    seed_start,
    block_start,
    masses,
    uniforms,
    whole,
    near,
    tried,
    totals,
    seeds,
    potentials,
    N_TRIALS: tl.constexpr,
    TRIALS: tl.constexpr,
    BLOCKS: tl.constexpr,
    ROWS: tl.constexpr,
    FEATURES: tl.constexpr,
):
    """Draw the seeds of a cell by D^2, each the one of N_TRIALS draws that leaves the smallest error.

    All draws of a seed are compared in one pass over the rows, which is all that takes time.

    Parameters
    ----------
    columns : (D, n) float32, IN, features of the rows, those of a cell one after the other
    order : (n,) int64, IN, what seeds are told by
    cell_start, seed_start, block_start : (n_cells + 1,) int64, IN, rows, seeds, and blocks of rows of each cell
    masses : (n,) float32, IN, weights
    uniforms : (n_seeds, N_TRIALS) float64, IN
    whole : (n_cells,) float64, IN, the weight of the cell that its rows are a sample of
    near : (n,) float32, scratch, squared distances to the nearest seed so far
    tried : (N_TRIALS, n) float32, scratch, the same if a candidate were a seed
    totals : (n_blocks,) float64, scratch
    seeds : (n_seeds,) int64, OUT, as in `order`; -1 where a cell has run out of different rows
    potentials : (n_seeds,) float64, OUT, the cell's squared error once this seed is there
    TRIALS : constexpr, the power of two from N_TRIALS on
    BLOCKS : constexpr, a power of two not less than the blocks of any cell
    """
    cell = tl.program_id(0)
    first = tl.load(cell_start + cell)
    last = tl.load(cell_start + cell + 1)
    own_totals = totals + tl.load(block_start + cell)
    n_blocks = (tl.load(block_start + cell + 1) - tl.load(block_start + cell)).to(tl.int32)
    begin = tl.load(seed_start + cell)
    n_seeds = (tl.load(seed_start + cell + 1) - begin).to(tl.int32)
    trial = tl.arange(0, TRIALS)
    sampled = tl.load(whole + cell) * 0.0
    for block in range(n_blocks):
        row = first + block * ROWS + tl.arange(0, ROWS)
        inside = row < last
        tl.store(near + row, tl.full((ROWS,), float("inf"), tl.float32), mask=inside)
        mass = tl.sum(tl.load(masses + row, mask=inside, other=0.0).to(tl.float64), axis=0)
        tl.store(own_totals + block, mass)
        sampled += mass
    scale = tl.load(whole + cell) / tl.where(sampled > 0.0, sampled, 1.0)
    total = sampled
    tl.debug_barrier()
    for seed in range(n_seeds):
        tl.store(seeds + begin + seed, -1)
        tl.store(potentials + begin + seed, 0.0)
        if total > 0:
            # The first is drawn by weight, and without a choice.
            real = trial < tl.where(seed == 0, 1, N_TRIALS)
            targets = tl.load(uniforms + (begin + seed) * N_TRIALS + trial, mask=real, other=0.0) * total
            picks = draw_rows(own_totals, n_blocks, targets, masses, near, first, last, seed > 0, BLOCKS, ROWS)
            errors = tl.zeros((TRIALS,), tl.float64)
            for block in range(n_blocks):
                row = first + block * ROWS + tl.arange(0, ROWS)
                inside = row < last
                distances = tl.zeros((TRIALS, ROWS), tl.float32)
                for start in range(0, n_features, FEATURES):
                    feature = (start + tl.arange(0, FEATURES)).to(tl.int64)
                    wide = feature < n_features
                    y = tl.load(
                        columns + feature[:, None] * n_rows + row[None, :],
                        mask=wide[:, None] & inside[None, :],
                        other=0.0,
                    )
                    for t in tl.static_range(N_TRIALS):
                        pick = tl.sum(tl.where(trial == t, picks, 0), axis=0)
                        m = tl.load(columns + feature * n_rows + pick, mask=wide, other=0.0)
                        difference = y - m[:, None]
                        squares = tl.sum(difference * difference, axis=0)
                        distances += tl.where(trial[:, None] == t, squares[None, :], 0.0)
                so_far = tl.load(near + row, mask=inside, other=0.0)
                distances = tl.minimum(so_far[None, :], distances)
                tl.store(
                    tried + trial[:, None] * n_rows + row[None, :],
                    distances,
                    mask=(trial < N_TRIALS)[:, None] & inside[None, :],
                )
                mass = tl.load(masses + row, mask=inside, other=0.0).to(tl.float64)
                errors += tl.sum(mass[None, :] * distances.to(tl.float64), axis=1)
            errors = tl.where(real, errors, float("inf"))
            best_error = tl.min(errors, axis=0)
            best_trial = tl.min(tl.where(errors == best_error, trial, TRIALS), axis=0)
            best_pick = tl.sum(tl.where(trial == best_trial, picks, 0), axis=0)
            tl.debug_barrier()
            for block in range(n_blocks):
                row = first + block * ROWS + tl.arange(0, ROWS)
                inside = row < last
                distance = tl.load(tried + best_trial * n_rows + row, mask=inside, other=0.0)
                tl.store(near + row, distance, mask=inside)
                mass = tl.load(masses + row, mask=inside, other=0.0).to(tl.float64) * distance.to(tl.float64)
                tl.store(own_totals + block, tl.sum(mass, axis=0))
            tl.store(seeds + begin + seed, tl.load(order + best_pick))
            tl.store(potentials + begin + seed, best_error * scale)
            total = best_error
            tl.debug_barrier()
