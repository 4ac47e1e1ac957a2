"""Greedy D^2 seeding inside many cells at once, where distances between all rows of a cell fit into a table."""

from __future__ import annotations

import triton
import triton.language as tl

from .launching import launched

#: Rows of a table begin at multiples of so many values.
PITCH = tl.constexpr(16)

#: Squared distances that are a smaller share of the squares they are the difference of are computed anew.
CLOSE = tl.constexpr(0.01)


@triton.jit
def pitch_of(n_rows):
    """Values from one row of a cell's table to the next."""
    return (n_rows + PITCH - 1) // PITCH * PITCH


@launched
@triton.jit
def fill_tables(
    columns,
    n_rows,
    n_features,
    cell_start,
    table_start,
    tables,
    n_tiles,
    TILE: tl.constexpr,
    FEATURES: tl.constexpr,
):
    """Squared distances between all rows of a cell.

    By products, about the cell's first row, as long as those leave enough digits; else difference by difference,
    so that equal rows have distance 0.  A row and itself are not looked at for that.

    Parameters
    ----------
    columns : (D, n) float32, IN, features of the rows, those of a cell one after the other
    cell_start : (n_cells + 1,) int64, IN, rows of each cell
    table_start : (n_cells,) int64, IN, where the table of each begins, in multiples of PITCH
    tables : (...,) float32, OUT, rows `pitch_of` the cell's size apart
    n_tiles : int, IN, tiles on a side of the largest table; there are as many programs a cell as its square
    """
    cell = tl.program_id(0)
    first = tl.load(cell_start + cell)
    size = (tl.load(cell_start + cell + 1) - first).to(tl.int32)
    first_row, first_other = tl.program_id(1) // n_tiles * TILE, tl.program_id(1) % n_tiles * TILE
    if first_other < first_row or first_other >= size:  # tables are symmetric
        return
    row, other = first_row + tl.arange(0, TILE), first_other + tl.arange(0, TILE)
    here = columns + first
    products = tl.zeros((TILE, TILE), tl.float32)
    row_squares = tl.zeros((TILE,), tl.float32)
    other_squares = tl.zeros((TILE,), tl.float32)
    for begin in range(0, n_features, FEATURES):
        feature = (begin + tl.arange(0, FEATURES)).to(tl.int64)
        wide = (feature < n_features)[:, None]
        at = here + feature[:, None] * n_rows
        zero = tl.load(at, mask=wide, other=0.0)
        a = tl.load(at + row[None, :], mask=wide & (row < size)[None, :], other=0.0) - zero
        b = tl.load(at + other[None, :], mask=wide & (other < size)[None, :], other=0.0) - zero
        products = tl.dot(tl.trans(a), b, products, input_precision="tf32x3")
        row_squares += tl.sum(a * a, axis=0)
        other_squares += tl.sum(b * b, axis=0)
    both = row_squares[:, None] + other_squares[None, :]
    same = row[:, None] == other[None, :]
    squares = tl.where(same, 0.0, tl.maximum(both - 2.0 * products, 0.0))
    inside = (row < size)[:, None] & (other < size)[None, :] & ~same
    close = (inside & (squares <= CLOSE * both)).to(tl.int32)
    if tl.max(tl.max(close, axis=1), axis=0) > 0:
        squares = tl.zeros((TILE, TILE), tl.float32)
        for _ in range(n_features):
            a = tl.load(here + row, mask=row < size, other=0.0)
            b = tl.load(here + other, mask=other < size, other=0.0)
            squares += (a[:, None] - b[None, :]) * (a[:, None] - b[None, :])
            here += n_rows
    # Up to the pitch, not the size: rows are then written several values at a time.
    table = tables + tl.load(table_start + cell) * PITCH
    pitch = pitch_of(size)
    tl.store(
        table + row[:, None].to(tl.int64) * pitch + other[None, :],
        squares,
        mask=(row < size)[:, None] & (other < pitch)[None, :],
    )
    tl.store(
        table + other[:, None].to(tl.int64) * pitch + row[None, :],
        tl.trans(squares),
        mask=(other < size)[:, None] & (row < pitch)[None, :],
    )


@launched
@triton.jit
def seed_by_tables(
    tables,
    table_start,
    order,
    cell_start,
    seed_start,
    weights,
    uniforms,
    whole,
    seeds,
    potentials,
    N_TRIALS: tl.constexpr,
    TRIALS: tl.constexpr,
    ROWS: tl.constexpr,
):
    """As `seeding.seed_in_cells`, all rows of a cell at once.

    Parameters
    ----------
    tables, table_start : IN, from `fill_tables`
    order, cell_start, seed_start, uniforms, whole, seeds, potentials, N_TRIALS, TRIALS
        As for `seeding.seed_in_cells`.
    weights : (N',) float32, IN, of all points
    ROWS : constexpr, a power of two not less than the rows of any cell
    """
    cell = tl.program_id(0)
    first = tl.load(cell_start + cell)
    size = (tl.load(cell_start + cell + 1) - first).to(tl.int32)
    table = tables + tl.load(table_start + cell) * PITCH
    pitch = pitch_of(size).to(tl.int64)
    begin = tl.load(seed_start + cell)
    n_seeds = (tl.load(seed_start + cell + 1) - begin).to(tl.int32)
    trial = tl.arange(0, TRIALS)
    row = tl.arange(0, ROWS)
    inside = row < size
    point = tl.load(order + first + row, mask=inside, other=0)
    weight = tl.load(weights + point, mask=inside, other=0.0).to(tl.float64)
    near = tl.full((ROWS,), 1.0, tl.float32)  # the first is drawn by weight
    total = tl.sum(weight, axis=0)
    scale = tl.load(whole + cell) / tl.where(total > 0.0, total, 1.0)
    for seed in range(n_seeds):
        found, potential = tl.full((), -1, tl.int64), tl.zeros((), tl.float64)
        if total > 0:
            real = trial < tl.where(seed == 0, 1, N_TRIALS)  # … and without a choice
            targets = tl.load(uniforms + (begin + seed) * N_TRIALS + trial, mask=real, other=0.0) * total
            mass = weight * near.to(tl.float64)
            beyond = (tl.cumsum(mass, axis=0)[None, :] > targets[:, None]) & (mass > 0)[None, :]
            # Among the rows of any mass: rounding may point just past the last of them.
            latest = tl.max(tl.where(mass > 0, row, 0), axis=0)
            picks = tl.minimum(tl.min(tl.where(beyond, row[None, :], ROWS), axis=1), latest)
            distances = tl.load(table + picks[:, None] * pitch + row[None, :], mask=inside[None, :], other=0.0)
            distances = tl.where(seed == 0, distances, tl.minimum(distances, near[None, :]))
            errors = tl.sum(weight[None, :] * distances.to(tl.float64), axis=1)
            errors = tl.where(real, errors, float("inf"))
            total = tl.min(errors, axis=0)
            chosen = tl.min(tl.where(errors == total, trial, TRIALS), axis=0)
            near = tl.sum(tl.where((trial == chosen)[:, None], distances, 0.0), axis=0)
            found = tl.load(order + first + tl.sum(tl.where(trial == chosen, picks, 0), axis=0))
            potential = total * scale
        tl.store(seeds + begin + seed, found)
        tl.store(potentials + begin + seed, potential)
