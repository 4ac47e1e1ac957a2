"""Greedy D^2 seeding inside many cells at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import triton

from .cells import Groups, running_start, spread_out
from .exact import sums_by_label
from .kernels.seeding import seed_in_cells
from .points import DevicePoints
from .tiling import ALIGNED

#: Rows and features that a program compares with a candidate at a time.
ROWS, FEATURES = 512, 32

#: Warps of a program: rows are few, and there are fewer programs than the device has room for.
WARPS = 16


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


def spread_sample(groups: Groups, counts: torch.Tensor, draws: torch.Generator) -> Groups:
    """Some members of every group, one from each of `counts` (n_groups,) equal runs of them."""
    start = running_start(counts)
    group = spread_out(counts)
    place = torch.arange(len(group), device=group.device) - start[group]
    jitter = torch.rand(len(group), generator=draws, dtype=torch.float64, device=group.device)
    sizes = groups.sizes[group]
    inside = ((place + jitter) * (sizes.double() / counts[group].double())).long()
    return Groups(groups.order[groups.start[group] + torch.minimum(inside, sizes - 1)], start)


def padded(rows: torch.Tensor) -> torch.Tensor:
    """Rows (n, D) with features of 0 up to a multiple of `ALIGNED`: so they are read several values at a time."""
    n_features = rows.shape[1]
    missing = -n_features % ALIGNED if n_features > ALIGNED else 0
    return torch.nn.functional.pad(rows, (0, missing)) if missing else rows.contiguous()


def seed_cells(
    points: DevicePoints,
    groups: Groups,
    wanted: np.ndarray,
    sample_per_seed: int,
    n_trials: int,
    draws: torch.Generator,
) -> CellSeeds:
    """Draw `wanted` (n_cells,) seeds in every cell by D^2, each the best of some draws, on a sample of the cell.

    Parameters
    ----------
    points : DevicePoints
    groups : Groups
        The points of each cell.
    wanted : (n_cells,) int64 array
        At most the cell's size.
    sample_per_seed : int
        Rows looked at for each seed.
    n_trials : int
        Draws of which the best becomes a seed.
    draws : torch.Generator
    """
    device = points.device
    n_cells = len(wanted)
    seed_start = np.concatenate([[0], np.cumsum(wanted)])
    asked = torch.from_numpy(wanted).to(device)
    sample = spread_sample(groups, torch.minimum(groups.sizes, sample_per_seed * asked), draws)
    n_seeds, n_rows = int(seed_start[-1]), len(sample.order)
    seeds = torch.full((n_seeds,), -1, dtype=torch.int64, device=device)
    potentials = torch.zeros(n_seeds, dtype=torch.float64, device=device)
    if n_rows:
        masses = points.weights[sample.order]
        whole = sums_by_label(points.weights[groups.order], spread_out(groups.sizes), n_cells)
        sampled = sums_by_label(masses, spread_out(sample.sizes), n_cells)
        factor = whole / sampled.clamp(min=torch.finfo(torch.float64).tiny)
        blocks = running_start((sample.sizes + (ROWS - 1)) // ROWS)
        uniforms = torch.rand((n_seeds, n_trials), generator=draws, dtype=torch.float64, device=device)
        near, tried = torch.empty(n_rows, device=device), torch.empty((n_trials, n_rows), device=device)
        n_blocks, most_blocks = torch.stack([blocks[-1], blocks.diff().max()]).tolist()
        totals = torch.empty(n_blocks, dtype=torch.float64, device=device)
        rows = padded(points.at(sample.order))
        seed_in_cells[(n_cells,)](
            rows, rows.shape[1], sample.start, torch.from_numpy(seed_start).to(device),
            blocks, masses, uniforms, factor, near, tried, n_rows, totals, seeds, potentials, N_TRIALS=n_trials,
            TRIALS=triton.next_power_of_2(n_trials), BLOCKS=triton.next_power_of_2(most_blocks), ROWS=ROWS,
            FEATURES=min(FEATURES, triton.next_power_of_2(rows.shape[1])), num_warps=WARPS,
        )  # fmt: skip
        seeds = torch.where(seeds >= 0, sample.order[seeds.clamp(min=0)], -1)
    return CellSeeds(seeds.cpu().numpy(), potentials.cpu().numpy(), seed_start)
