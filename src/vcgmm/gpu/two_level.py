"""Two-level seeding on the device: the steps of `algorithm.two_level`, all cells at once."""

from __future__ import annotations

import math

import numpy as np
import torch

from ..algorithm.seeding import Start
from ..algorithm.two_level import (
    COARSE_SAMPLE,
    COARSE_STEPS,
    FINE_SAMPLE,
    FINE_STEPS,
    LARGEST_CELL,
    ONE_LEVEL,
    SEED_SAMPLE,
    SPARE,
    TRIALS,
    share_by_error,
    share_by_potential,
)
from .arrays import DeviceArray
from .cells import Groups, sort_by_group
from .exact import Urn, sums_by_label
from .greedy import CellSeeds, seed_cells, spread_sample
from .nearest import distances_of, lists_between, nearest_listed
from .points import DevicePoints
from .sums import Entries, weighted_sums


def two_level(points: DevicePoints, n_clusters: int, rng: np.random.Generator) -> Start:
    """Seed `n_clusters` clusters, at most the number of distinct points; means and labels are on the device."""
    n_levels = max(1, math.ceil(math.log(n_clusters) / math.log(LARGEST_CELL)))
    if n_clusters > ONE_LEVEL:
        n_levels = max(n_levels, 2)
    cells = DeviceCells(points, rng)
    expected = np.array([n_clusters])
    for level in range(n_levels, 1, -1):
        parents = cells.split(np.ceil(expected ** (1 / level)).astype(np.int64))
        expected = share_by_error(cells.errors(), cells.sizes, parents, expected)
    if n_levels == 1:
        cells.split(expected)
    else:
        cells.cluster(expected, n_clusters)
    cells.top_up(n_clusters)
    means = DeviceArray(cells.centres.double())
    return Start(means, cells.labels, float(cells.errors().sum()), cells.n_evaluations)  # type: ignore[arg-type]


class DeviceCells:
    """A partition of the points that is split finer and finer.

    Parameters
    ----------
    points : DevicePoints
    rng : numpy Generator

    Attributes
    ----------
    centres : (n_cells, D) float32 tensor
    labels : (N',) int32 tensor
    distances : (N',) float32 tensor, squared, to the centre of the point's cell
    sizes : (n_cells,) int64 array
    """

    def __init__(self, points: DevicePoints, rng: np.random.Generator) -> None:
        self.points = points
        self.draws = torch.Generator(points.device)
        self.draws.manual_seed(int(rng.integers(1 << 62)))
        self.n_evaluations = 0
        self.centres = points.mean().unsqueeze(0)
        self.labels = torch.zeros(len(points), dtype=torch.int32, device=points.device)
        self.distances = torch.zeros(len(points), device=points.device)
        self.sizes = np.array([len(points)])

    def errors(self) -> np.ndarray:
        """Weighted squared error of every cell, (n_cells,) float64."""
        return sums_by_label(self.points.weights * self.distances, self.labels, len(self.sizes)).cpu().numpy()

    def split(self, children: np.ndarray) -> np.ndarray:
        """Replace every cell by as many as told, (n_cells,) int64; returns the parent of each new cell."""
        groups = sort_by_group(self.labels, len(self.sizes))
        sampled = groups
        if len(self.sizes) == 1:  # a sample tells enough of how to cut all points the first time
            n = min(len(self.points), COARSE_SAMPLE * int(children[0]))
            sampled = spread_sample(groups, torch.tensor([n], device=self.points.device), self.draws)
        seeds = self._seed(sampled, np.minimum(children, self.sizes))
        parents = np.repeat(np.arange(len(children)), np.diff(seeds.start))[seeds.rows >= 0]
        centre_start = np.concatenate([[0], np.cumsum(seeds.rows >= 0)])[seeds.start]
        self._lloyd(groups, seeds.rows[seeds.rows >= 0], centre_start, COARSE_SAMPLE, COARSE_STEPS)
        return parents

    def cluster(self, expected: np.ndarray, n_clusters: int) -> None:
        """Replace the cells by `n_clusters` clusters, about as many from each as expected, (n_cells,) int64."""
        groups = sort_by_group(self.labels, len(self.sizes))
        seeds = self._seed(groups, np.minimum(np.ceil(SPARE * expected).astype(np.int64) + 2, self.sizes))
        lengths = np.diff(seeds.start)
        cell = np.repeat(np.arange(len(lengths)), lengths)
        available = np.bincount(cell[seeds.rows >= 0], minlength=len(lengths))
        shares = share_by_potential(seeds.potentials, seeds.start, available, n_clusters)
        taken = seeds.rows[np.arange(len(cell)) - seeds.start[cell] < shares[cell]]
        centre_start = np.concatenate([[0], np.cumsum(shares)])
        self._lloyd(groups, taken, centre_start, FINE_SAMPLE, FINE_STEPS)

    def top_up(self, n_clusters: int) -> None:
        """Where cells ran out of different points, draw the clusters that are missing by D^2 from all points."""
        points, every = self.points, torch.arange(len(self.points), device=self.points.device)
        for label in range(len(self.centres), n_clusters):
            urn = Urn(points.weights * self.distances)
            urn = Urn(points.weights) if urn.is_empty else urn
            uniform = torch.rand(1, generator=self.draws, dtype=torch.float64, device=points.device)
            centre = points.at(urn.draw(uniform))
            distances = distances_of(points, every, torch.zeros_like(self.labels), centre)
            self.labels = torch.where(distances < self.distances, label, self.labels)
            self.distances = torch.minimum(distances, self.distances)
            self.centres = torch.cat([self.centres, centre])
            self.n_evaluations += len(points)
        self.sizes = torch.bincount(self.labels, minlength=n_clusters).cpu().numpy()

    def _seed(self, groups: Groups, wanted: np.ndarray) -> CellSeeds:
        draws = np.maximum(TRIALS * (wanted - 1) + 1, 0)
        rows = np.minimum(groups.sizes.cpu().numpy(), SEED_SAMPLE * wanted)
        self.n_evaluations += int((rows * draws).sum())
        return seed_cells(self.points, groups, wanted, SEED_SAMPLE, TRIALS, self.draws)

    def _lloyd(self, groups: Groups, seeds: np.ndarray, centre_start: np.ndarray, sample: int, steps: int) -> None:
        """Lloyd steps inside the cells from seeds (n,) on a sample of each, then one assignment of all points."""
        points = self.points
        start = torch.from_numpy(centre_start).to(points.device)
        lists = lists_between(start)
        centres = points.at(torch.from_numpy(seeds).to(points.device))
        counts = torch.minimum(groups.sizes, sample * start.diff())
        some = groups if bool((counts == groups.sizes).all()) else spread_sample(groups, counts, self.draws)
        for _ in range(steps):
            ids, _ = nearest_listed(points, some, self.centres, lists, centres)
            members = sort_by_group(ids[some.order, 0], len(centres))
            rows = some.order[members.order]
            sums, masses = weighted_sums(points, Entries(rows, points.weights[rows], members.start), centres)
            moves = sums / torch.where(masses > 0, masses, 1.0).unsqueeze(1)
            centres = (centres.double() + moves).float()
        ids, near = nearest_listed(points, groups, self.centres, lists, centres)
        sizes, k = groups.sizes.cpu().numpy(), np.diff(centre_start)
        self.n_evaluations += int((np.minimum(sizes, sample * k) * k * steps + sizes * k).sum())
        self.centres, self.labels, self.distances = centres, ids[:, 0].contiguous(), near[:, 0].contiguous()
        self.sizes = torch.bincount(self.labels, minlength=len(centres)).cpu().numpy()
