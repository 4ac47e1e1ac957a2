"""Greedy D^2 seeding inside many cells at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import triton

from .kernels.seeding import seed_in_cells
from .partition import Partition
from .points import DevicePoints

#: Rows of a cell, and features of them, that a program compares with a candidate at a time.
MOST_ROWS, LEAST_ROWS, FEATURES = 1024, 128, 16

#: Rows of a warp: each of its threads has some rows alone, and adds up their features without the others.
WARP_ROWS = 128


@dataclass(frozen=True)
class CellSeeds:
    """Seeds of every cell, more than needed.

    Attributes
    ----------
    rows : (n_seeds,) int64 array
        -1 where a cell has run out of different rows.
    potentials : (n_seeds,) float64 array
        The cell's squared error once this seed is there, estimated on a sample.
    start : (n_cells + 1,) int64 array
        Cell i has the seeds start[i]..start[i + 1] - 1.
    """

    rows: np.ndarray
    potentials: np.ndarray
    start: np.ndarray


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
    device, n_cells = points.device, len(wanted)
    sample = cells.sample(np.minimum(cells.sizes, sample_per_seed * wanted), draws)
    n_rows, longest = len(sample.groups.order), int(sample.sizes.max())
    at_once = min(MOST_ROWS, max(LEAST_ROWS, triton.next_power_of_2(longest)))
    n_blocks = -(-sample.sizes // at_once)
    bounds = np.zeros((2, n_cells + 1), np.int64)
    np.cumsum([wanted, n_blocks], axis=1, out=bounds[:, 1:])
    n_seeds = int(bounds[0, -1])
    found = torch.empty((2, n_seeds), dtype=torch.float64, device=device)
    if n_rows:
        seed_start, block_start = torch.from_numpy(bounds).to(device)
        columns = points.at(sample.groups.order).T.contiguous()
        seed_in_cells[(n_cells,)](
            columns, n_rows, points.n_features, sample.groups.order, sample.groups.start, seed_start, block_start,
            points.weights[sample.groups.order],
            torch.rand((n_seeds, n_trials), generator=draws, dtype=torch.float64, device=device),
            cells.masses, torch.empty(n_rows, device=device), torch.empty((n_trials, n_rows), device=device),
            torch.empty(int(bounds[1, -1]), dtype=torch.float64, device=device), found[0].view(torch.int64),
            found[1], N_TRIALS=n_trials, TRIALS=triton.next_power_of_2(n_trials),
            BLOCKS=triton.next_power_of_2(int(n_blocks.max())), ROWS=at_once,
            FEATURES=min(FEATURES, triton.next_power_of_2(points.n_features)), num_warps=at_once // WARP_ROWS,
        )  # fmt: skip
    seeds, potentials = found.cpu().numpy()
    return CellSeeds(seeds.view(np.int64), potentials, bounds[0])
