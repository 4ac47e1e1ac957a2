"""Greedy D^2 seeding inside many cells at once, one seed for each in every round."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import triton

from .cells import Groups, cut, running_start, spread_out
from .exact import draw_in_groups, sums_by_label
from .kernels.seeding import try_candidates
from .points import DevicePoints

#: Rows and features that one program compares with a candidate.
ROWS, FEATURES = 64, 64


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
    n_cells, n_rounds = len(wanted), int(wanted.max(initial=0))
    seed_start = np.concatenate([[0], np.cumsum(wanted)])
    asked = torch.from_numpy(wanted).to(device)
    sample = spread_sample(groups, torch.minimum(groups.sizes, sample_per_seed * asked), draws)
    cell = spread_out(sample.sizes)
    rows = points.at(sample.order)
    masses = points.weights[sample.order]
    whole = sums_by_label(points.weights[groups.order], spread_out(groups.sizes), n_cells)
    factor = whole / sums_by_label(masses, cell, n_cells).clamp(min=torch.finfo(torch.float64).tiny)
    pieces = cut(sample.start, ROWS)
    near = torch.full((len(rows),), torch.inf, device=device)
    tried = torch.empty((n_trials, len(rows)), device=device)
    errors = torch.zeros((n_trials, len(pieces)), dtype=torch.float64, device=device)
    found = torch.full((n_rounds, n_cells), -1, dtype=torch.int64, device=device)
    potentials = torch.zeros((n_rounds, n_cells), dtype=torch.float64, device=device)
    every = torch.arange(len(rows), device=device)
    for r in range(n_rounds if len(rows) else 0):
        uniforms = torch.rand((n_cells, n_trials), generator=draws, dtype=torch.float64, device=device)
        if r == 0:  # by weight, and no choice
            picks, any_mass = draw_in_groups(masses, cell, sample.start, uniforms[:, :1])
            picks = picks.expand(-1, n_trials).contiguous()
        else:
            picks, any_mass = draw_in_groups(masses * near, cell, sample.start, uniforms)
        active = any_mass & (asked > r)
        try_candidates[(len(pieces),)](
            rows, len(rows), points.n_features, pieces.group, pieces.first, pieces.last, active.to(torch.int8),
            picks, masses, near, tried, errors, N_TRIALS=n_trials, ROWS=ROWS,
            FEATURES=min(FEATURES, triton.next_power_of_2(points.n_features)),
        )  # fmt: skip
        left = torch.segment_reduce(errors.T.contiguous(), "sum", offsets=pieces.start, axis=0)
        best = left.min(1, keepdim=True).values
        trial = (left == best).to(torch.int8).argmax(1, keepdim=True)
        near = torch.where(active[cell], tried[trial.squeeze(1)[cell], every], near)
        found[r] = torch.where(active, sample.order[picks.gather(1, trial).squeeze(1)], -1)
        potentials[r] = torch.where(active, best.squeeze(1) * factor, 0.0)
    by_cell = torch.arange(n_rounds, device=device).unsqueeze(0) < asked.unsqueeze(1)
    return CellSeeds(found.T[by_cell].cpu().numpy(), potentials.T[by_cell].cpu().numpy(), seed_start)
