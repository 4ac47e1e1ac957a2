"""Greedy D^2 seeding inside many cells at once: what a few drawn candidates would do to the error of each cell."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def try_candidates(
    rows,
    n_rows,
    n_features,
    block_cell,
    block_first,
    block_last,
    active,
    picks,
    masses,
    near,
    tried,
    errors,
    N_TRIALS: tl.constexpr,
    ROWS: tl.constexpr,
    FEATURES: tl.constexpr,
):
    """Distances of a block of one cell's rows to the cell's candidates, and the error that each would leave.

    Parameters
    ----------
    rows : (n, D) float32, IN, those of a cell one after the other
    block_cell, block_first, block_last : (n_blocks,), IN, block b holds the rows first..last-1
    active : (n_cells,) int8, IN, cells that still want seeds; the others are passed over
    picks : (n_cells, N_TRIALS) int64, IN, rows that were drawn
    masses : (n,) float32, IN, weights
    near : (n,) float32, IN, squared distances to the nearest seed so far
    tried : (N_TRIALS, n) float32, OUT, smaller of `near` and the squared distance to the candidate
    errors : (N_TRIALS, n_blocks) float64, OUT, sum of masses times that
    """
    block = tl.program_id(0)
    cell = tl.load(block_cell + block).to(tl.int64)
    if tl.load(active + cell) != 0:
        row = tl.load(block_first + block) + tl.arange(0, ROWS)
        inside = row < tl.load(block_last + block)
        mass = tl.load(masses + row, mask=inside, other=0.0).to(tl.float64)
        before = tl.load(near + row, mask=inside, other=0.0)
        for trial in range(N_TRIALS):
            pick = tl.load(picks + cell * N_TRIALS + trial)
            total = tl.zeros((ROWS,), tl.float32)
            for begin in range(0, n_features, FEATURES):
                feature = begin + tl.arange(0, FEATURES)
                wide = feature < n_features
                y = tl.load(
                    rows + row[:, None] * n_features + feature[None, :],
                    mask=inside[:, None] & wide[None, :],
                    other=0.0,
                )
                m = tl.load(rows + pick * n_features + feature, mask=wide, other=0.0)
                difference = tl.where(wide[None, :], y - m[None, :], 0.0)
                total += tl.sum(difference * difference, axis=1)
            after = tl.minimum(before, total)
            tl.store(tried + trial * n_rows + row, after, mask=inside)
            left = tl.sum(mass * after.to(tl.float64), axis=0)
            tl.store(errors + trial * tl.num_programs(0) + block, left)
