"""Greedy D^2 seeding inside many cells at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch

from ..cells.pieces import Groups
from ..coreset.points import DevicePoints, upload
from ..device.arena import empty
from ..device.sizes import pieces_of, power_of_two
from ..kernels.seeding import seed_in_cells
from ..kernels.tables import PITCH, fill_tables, seed_by_tables
from ..spans import Span
from .partition import Partition, columns_of

#: Rows of a cell, and features of them, that a program compares with a candidate at a time.
MOST_ROWS, LEAST_ROWS, FEATURES = 1024, 128, 16

#: Rows of a warp: each of its threads has some rows alone, and adds up their features without the others.
WARP_ROWS = 128

#: Cells of at most so many rows, and tables of at most so many values, are looked at by way of all distances.
TABLE_ROWS, TABLE_VALUES = 8192, 1 << 29

#: Rows and columns of a table that a program fills, and features of them that it multiplies at a time.
TILE, TABLE_FEATURES = 64, 32

#: Rows of a warp that looks at all rows of a table, and most warps.
TABLE_WARP_ROWS, MOST_WARPS = 256, 16


@dataclass(frozen=True)
class CellSeeds:
    """Seeds of every cell, more than needed.

    Attributes
    ----------
    rows : (n_seeds,) int64 tensor
        -1 where a cell has run out of different rows.
    potentials : (n_seeds,) float64 tensor
        The cell's squared error once this seed is there, estimated on a sample.
    start : (n_cells + 1,) int64 tensor
        Cell i has the seeds start[i]..start[i + 1] - 1.
    start_here : (n_cells + 1,) int64 array
        The same on the host.
    """

    rows: torch.Tensor
    potentials: torch.Tensor
    start: torch.Tensor
    start_here: np.ndarray


def seed_cells(
    points: DevicePoints,
    cells: Partition,
    wanted: np.ndarray,
    sample_per_seed: int,
    n_trials: int,
    draws: torch.Generator,
) -> CellSeeds:
    """Draw `wanted` (n_cells,) seeds in every cell by D^2, each the best of some draws, on a sample of the cell.

    Parameters
    ----------
    points : DevicePoints
    cells : Partition
    wanted : (n_cells,) int64 array
        At most the cell's size.
    sample_per_seed : int
        Rows looked at for each seed.
    n_trials : int
        Draws of which the best becomes a seed.
    draws : torch.Generator
    """
    device, n_cells = points.device, len(cells)
    counts = np.minimum(cells.sizes, sample_per_seed * wanted)
    # Where each cell's sample, seeds and table begin, in one copy: the device waits for it.
    bounds = np.zeros((3, n_cells + 1 + (n_cells + 1) % 2), np.int64)
    for begin, sizes in zip(bounds, (counts, wanted, counts * -(-counts // PITCH.value)), strict=True):
        np.cumsum(sizes, out=begin[1 : n_cells + 1])
    sample_start, start, table_start = (begin[: n_cells + 1] for begin in Span.over(upload(bounds, device)))
    n_sampled, n_seeds = int(bounds[0, n_cells]), int(bounds[1, n_cells])
    draw = partial(torch.rand, generator=draws, dtype=torch.float64, device=device)
    sample = replace(cells, groups=cells.sampled(sample_start, draw(n_sampled)), sizes=counts)
    n_values = int(bounds[2, n_cells]) * PITCH.value
    by_tables = n_seeds > 0 and int(counts.max()) <= TABLE_ROWS and n_values <= TABLE_VALUES
    tables = None
    if by_tables:
        tables = _fill_tables(points, sample.groups, int(counts.max()), table_start, n_values)
    rows = empty((n_seeds,), torch.int64, device)
    potentials = empty((n_seeds,), torch.float64, device)
    if n_seeds:
        uniforms = draw((n_seeds, n_trials))
        if tables is not None:
            _by_tables(points, sample, start, table_start, tables, uniforms, rows, potentials)
        else:
            _by_blocks(points, sample, start, uniforms, rows, potentials)
    return CellSeeds(rows, potentials, start, bounds[1, : n_cells + 1])


def table_of(points: DevicePoints, rows: torch.Tensor) -> tuple[torch.Tensor, int]:
    """Squared distances between these points (n,) int64, (n * pitch,) float32, and the pitch from row to row."""
    n_rows = len(rows)
    bounds = upload(np.array([0, n_rows], np.int64), points.device)
    pitch = pieces_of(n_rows, PITCH.value) * PITCH.value
    return _fill_tables(points, Groups(rows, bounds), n_rows, bounds, n_rows * pitch), pitch


def _fill_tables(
    points: DevicePoints, groups: Groups, longest: int, table_start: torch.Tensor, n_values: int
) -> torch.Tensor:
    """All distances between the rows of each cell, so many values in all, which begin at multiples of `PITCH`."""
    tables = empty((n_values,), torch.float32, points.device)
    n_tiles = pieces_of(longest, TILE)
    columns = columns_of(points, groups.order)
    fill_tables[(len(groups.start) - 1, n_tiles * n_tiles)](
        columns, len(groups.order), points.n_features, groups.start, table_start, tables, n_tiles, TILE=TILE,
        FEATURES=TABLE_FEATURES, num_stages=1,
    )  # fmt: skip
    return tables


def _by_tables(
    points: DevicePoints,
    sample: Partition,
    seed_start: torch.Tensor,
    table_start: torch.Tensor,
    tables: torch.Tensor,
    uniforms: torch.Tensor,
    seeds: torch.Tensor,
    potentials: torch.Tensor,
) -> None:
    """By distances that are there already: a candidate costs no more than to read a row."""
    groups, sizes = sample.groups, sample.sizes
    rows = max(LEAST_ROWS, power_of_two(int(sizes.max())))
    n_trials = uniforms.shape[1]
    seed_by_tables[(len(sizes),)](
        tables, table_start, groups.order, groups.start, seed_start, points.weights, uniforms, sample.masses,
        seeds, potentials, N_TRIALS=n_trials, TRIALS=power_of_two(n_trials), ROWS=rows,
        num_warps=min(MOST_WARPS, max(1, rows // TABLE_WARP_ROWS)),
    )  # fmt: skip


def _by_blocks(
    points: DevicePoints,
    sample: Partition,
    seed_start: torch.Tensor,
    uniforms: torch.Tensor,
    seeds: torch.Tensor,
    potentials: torch.Tensor,
) -> None:
    """Distances from the rows of a cell to each candidate, block by block."""
    device, groups = points.device, sample.groups
    n_rows, longest = len(groups.order), int(sample.sizes.max())
    at_once = min(MOST_ROWS, max(LEAST_ROWS, power_of_two(longest)))
    n_blocks = -(-sample.sizes // at_once)
    bounds = np.concatenate([[0], np.cumsum(n_blocks)])
    block_start = upload(bounds, device)
    n_trials = uniforms.shape[1]
    seed_in_cells[(len(n_blocks),)](
        columns_of(points, groups.order), n_rows, points.n_features, groups.order, groups.start, seed_start,
        block_start, points.weights[groups.order], uniforms, sample.masses, torch.empty(n_rows, device=device),
        torch.empty((n_trials, n_rows), device=device),
        torch.empty(int(bounds[-1]), dtype=torch.float64, device=device), seeds, potentials, N_TRIALS=n_trials,
        TRIALS=power_of_two(n_trials), BLOCKS=power_of_two(int(n_blocks.max())), ROWS=at_once,
        FEATURES=min(FEATURES, power_of_two(points.n_features)), num_warps=at_once // WARP_ROWS,
    )  # fmt: skip
