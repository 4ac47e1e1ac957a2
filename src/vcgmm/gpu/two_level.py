"""Two-level seeding on the device: the steps of `algorithm.two_level`, all cells at once."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from ..algorithm.inside_cells import SEED_SAMPLE, TRIALS
from ..algorithm.seeding import Start
from ..algorithm.two_level import (
    COARSE_SAMPLE,
    COARSE_STEPS,
    FINE_SAMPLE,
    FINE_STEPS,
    divide,
    share_by_potential,
)
from .arrays import DeviceArray
from .exact import Urn
from .greedy import CellSeeds, seed_cells
from .lloyd import lloyd_steps
from .nearest import distances_of, lists_between, nearest_listed
from .partition import Partition, aligned_rows
from .points import DevicePoints, upload

#: Cells of the first level, as a power of those on the host: many small ones keep the device busier than few.
FINER = 4 / 3

#: Only where the host would make more than so many.
MANY = 16

#: Rows for each of them that are looked at to find them, and Lloyd steps: more than good seeds would need.
RANDOM_SAMPLE, RANDOM_STEPS = 128, 6

#: Seeds drawn inside them for each cluster expected, fewer than on the host: clusters are moved afterwards.
SPARE = 1.25


def two_level(points: DevicePoints, n_clusters: int, rng: np.random.Generator) -> Start:
    """Seed `n_clusters` clusters, at most the number of distinct points; means and labels are on the device."""
    cells = DeviceCells(points, rng, n_clusters)
    divide(cells, n_clusters)
    means = DeviceArray(cells.centres.double())
    error = points.error_of(cells.distances)
    labels: Any = cells.labels
    return Start(means, labels, error, cells.n_evaluations, movable=True)  # type: ignore[arg-type]


class DeviceCells:
    """A partition of the points that is split finer and finer.

    Parameters
    ----------
    points : DevicePoints
    rng : numpy Generator
    n_clusters : int, optional
        How many there will be at last: cells on the way to them need not be as many as told.

    Attributes
    ----------
    centres : (n_cells, D) float32 tensor
    labels : (N',) int32 tensor
    distances : (N',) float32 tensor, squared, to the centre of the point's cell
    """

    def __init__(self, points: DevicePoints, rng: np.random.Generator, n_clusters: int = 0) -> None:
        self.points = points
        self.n_clusters = n_clusters
        self.draws = torch.Generator(points.device)
        self.draws.manual_seed(int(rng.integers(1 << 62)))
        self.n_evaluations = 0
        self.centres = points.middle().unsqueeze(0)
        self.labels = torch.empty(0, dtype=torch.int32, device=points.device)  # known after the first split
        self.distances = torch.empty(0, device=points.device)
        self._partition = Partition.whole(points)

    @property
    def sizes(self) -> np.ndarray:
        """Points in each cell that `split` has left, (n_cells,) int64."""
        return self._partition.sizes

    def errors(self) -> np.ndarray:
        """Weighted squared error of each of them, (n_cells,) float64."""
        return self._partition.errors

    def split(self, children: np.ndarray) -> np.ndarray:
        """Replace every cell by as many as told, (n_cells,) int64; returns the parent of each new cell."""
        cells = self._partition
        if len(cells) == 1 and MANY < children[0] < self.n_clusters:
            return self._split_finely(int(min(math.ceil(children[0] ** FINER), self.sizes[0])))
        if len(cells) == 1:  # a sample tells enough of how to cut all points the first time
            cells = cells.sample(np.minimum(cells.sizes, COARSE_SAMPLE * children), self.draws)
        seeds = self._seed(cells, np.minimum(children, self.sizes))
        parents = np.repeat(np.arange(len(children)), np.diff(seeds.start))[seeds.rows >= 0]
        centre_start = np.concatenate([[0], np.cumsum(seeds.rows >= 0)])[seeds.start]
        taken = upload(seeds.rows[seeds.rows >= 0], self.points.device)
        self._lloyd(taken, centre_start, self._some(centre_start, COARSE_SAMPLE), COARSE_STEPS)
        self._partition = Partition.by(self.labels, len(self.centres), self.points.weights, self.distances)
        return parents

    def _split_finely(self, n_cells: int) -> np.ndarray:
        """Cut all points into so many cells; returns their parents, which are one.

        Half of the seeds are random points, the others are drawn by their distances to those, all at once: one
        after the other, as on the host, would keep a single program busy.
        """
        points, whole = self.points, self._partition
        some = whole.sample(np.minimum(whole.sizes, RANDOM_SAMPLE * n_cells), self.draws)
        order = some.groups.order
        n_random = n_cells - n_cells // 2
        first = whole.sample(np.array([n_random]), self.draws).groups.order
        lists = lists_between(np.array([0, n_random]), points.device)
        _, near = nearest_listed(
            points, some.groups, self.centres, lists, aligned_rows(points, first), by_place=True
        )
        # The smallest of exponential times over masses: draws without replacement, in one go.
        races = torch.empty(len(order), device=points.device).exponential_(generator=self.draws)
        times = races / (points.weights[order] * near.view(-1))
        others = torch.argsort(times, stable=True)[: n_cells // 2]
        self.n_evaluations += len(order) * n_random
        self._lloyd(torch.cat([first, order[others]]), np.array([0, n_cells]), some, RANDOM_STEPS)
        self._partition = Partition.by(self.labels, n_cells, points.weights, self.distances)
        return np.zeros(n_cells, np.int64)

    def cluster(self, expected: np.ndarray, n_clusters: int) -> None:
        """Replace the cells by `n_clusters` clusters, about as many from each as expected, (n_cells,) int64."""
        seeds = self._seed(self._partition, np.minimum(np.ceil(SPARE * expected).astype(np.int64) + 2, self.sizes))
        lengths = np.diff(seeds.start)
        cell = np.repeat(np.arange(len(lengths)), lengths)
        available = np.bincount(cell[seeds.rows >= 0], minlength=len(lengths))
        shares = share_by_potential(seeds.potentials, seeds.start, available, n_clusters)
        taken = seeds.rows[np.arange(len(cell)) - seeds.start[cell] < shares[cell]]
        centre_start = np.concatenate([[0], np.cumsum(shares)])
        some = self._some(centre_start, FINE_SAMPLE)
        self._lloyd(upload(taken, self.points.device), centre_start, some, FINE_STEPS)

    def top_up(self, n_clusters: int) -> None:
        """Where cells ran out of different points, draw the clusters that are missing by D^2 from all points."""
        points = self.points
        for label in range(len(self.centres), n_clusters):
            urn = Urn(points.weights * self.distances)
            urn = Urn(points.weights) if urn.is_empty else urn
            uniform = torch.rand(1, generator=self.draws, dtype=torch.float64, device=points.device)
            centre = points.at(urn.draw(uniform))
            every = torch.arange(len(points), device=points.device)
            distances = distances_of(points, every, torch.zeros_like(self.labels), centre)
            self.labels = torch.where(distances < self.distances, label, self.labels)
            self.distances = torch.minimum(distances, self.distances)
            self.centres = torch.cat([self.centres, centre])
            self.n_evaluations += len(points)

    def _seed(self, cells: Partition, wanted: np.ndarray) -> CellSeeds:
        draws = np.maximum(TRIALS * (wanted - 1) + 1, 0)
        self.n_evaluations += int((np.minimum(cells.sizes, SEED_SAMPLE * wanted) * draws).sum())
        return seed_cells(self.points, cells, wanted, SEED_SAMPLE, TRIALS, self.draws)

    def _some(self, centre_start: np.ndarray, per_centre: int) -> Partition:
        """So many members of every cell for each of its centres; all where there are no more."""
        cells = self._partition
        counts = np.minimum(cells.sizes, per_centre * np.diff(centre_start))
        return cells if (counts == cells.sizes).all() else cells.sample(counts, self.draws)

    def _lloyd(self, seeds: torch.Tensor, centre_start: np.ndarray, some: Partition, steps: int) -> None:
        """Lloyd steps inside the cells from seeds (n,) on some of their points, then one assignment of all."""
        points, cells = self.points, self._partition
        k = np.diff(centre_start)
        lists = lists_between(centre_start, points.device)
        centres = lloyd_steps(points, some.groups, self.centres, lists, aligned_rows(points, seeds), steps)
        ids, near = nearest_listed(points, cells.groups, self.centres, lists, centres)
        self.n_evaluations += int((some.sizes * k * steps + cells.sizes * k).sum())
        self.centres, self.labels, self.distances = centres, ids.view(-1), near.view(-1)
