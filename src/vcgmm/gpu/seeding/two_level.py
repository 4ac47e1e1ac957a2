"""Two-level seeding on the device: the steps of `algorithm.seeding.two_level`, all cells at once."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from ...algorithm.seeding.afkmc2 import Start
from ...algorithm.seeding.inside_cells import SEED_SAMPLE, TRIALS
from ...algorithm.seeding.two_level import (
    COARSE_SAMPLE,
    COARSE_STEPS,
    divide,
    levels_for,
)
from ..cells.nearest import Lists, distances_of, lists_between, nearest_listed
from ..cells.pieces import Groups
from ..coreset.points import DevicePoints, upload
from ..device.arrays import DeviceArray, Rounded
from ..device.constants import first_ids, one_group
from ..device.exact import Urn
from ..device.tiling import is_aligned
from .greedy import CellSeeds, seed_cells
from .lloyd import lloyd_steps
from .partition import Partition, aligned_room, aligned_rows
from .sharing import draw_spread, share_clusters

#: No cell is asked for more clusters than this at one level.
LARGEST_CELL = 128

#: Cells of the first level, as a power of those on the host: many small ones keep the device busier than few.
FINER = 4 / 3

#: Only where the host would make more than so many.
MANY = 16

#: Rows for each of them that are looked at to find them, and Lloyd steps: more than good seeds would need.
RANDOM_SAMPLE, RANDOM_STEPS = 128, 6

#: Rows that Lloyd steps look at for each cluster inside them, more than on the host, where they cost more; and how
#: many steps there are, fewer than there.
FINE_SAMPLE = 128
FINE_STEPS = 7

#: Seeds drawn inside them for each cluster expected, fewer than on the host: clusters are moved afterwards.
SPARE = 1.25


def two_level(points: DevicePoints, n_clusters: int, rng: np.random.Generator) -> Start:
    """Seed `n_clusters` clusters, at most the number of distinct points; means and labels are on the device."""
    cells = DeviceCells(points, rng, n_clusters)
    divide(cells, n_clusters, levels_for(n_clusters, LARGEST_CELL))
    means = Rounded(cells.centres) if is_aligned(cells.centres) else DeviceArray(cells.centres.double())
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
        Known after the first split, as are distances.
    distances : (N',) float32 tensor, squared, to the centre of the point's cell
    """

    labels: torch.Tensor
    distances: torch.Tensor

    def __init__(self, points: DevicePoints, rng: np.random.Generator, n_clusters: int = 0) -> None:
        self.points = points
        self.n_clusters = n_clusters
        self.draws = torch.Generator(points.device)
        self.draws.manual_seed(int(rng.integers(1 << 62)))
        self.n_evaluations = 0
        self.centres = points.middle()
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
        rows, start = seeds.rows.cpu().numpy(), seeds.start_here
        parents = np.repeat(np.arange(len(children)), np.diff(start))[rows >= 0]
        centre_start = np.concatenate([[0], np.cumsum(rows >= 0)])[start]
        some, n_centres = self._some(centre_start, COARSE_SAMPLE), np.diff(centre_start)
        lists = lists_between(centre_start, self.points.device)
        chosen = upload(rows[rows >= 0], self.points.device)
        self._lloyd(aligned_rows(self.points, chosen), lists, some.groups, COARSE_STEPS)
        self._count(n_centres, some.sizes, COARSE_STEPS)
        self._partition = self._cut(len(self.centres))
        return parents

    def cluster_alone(self, n_clusters: int) -> None:
        """Replace the one cell of all points by a few clusters."""
        self.split(np.array([n_clusters]))

    def _split_finely(self, n_cells: int) -> np.ndarray:
        """Cut all points into so many cells; returns their parents, which are one.

        Half of the seeds are random points, the others are drawn by their distances to those, all at once: one
        after the other, as on the host, would keep a single program busy.
        """
        points, whole, device = self.points, self._partition, self.points.device
        n_rows, n_random = min(len(points), RANDOM_SAMPLE * n_cells), n_cells - n_cells // 2
        uniforms = torch.rand(n_rows + n_cells, generator=self.draws, dtype=torch.float64, device=device)
        every = first_ids(n_cells, device)
        some = whole.sampled(one_group(n_rows, device), uniforms[:n_rows])
        seeds = aligned_room(points, n_cells)
        first, others, draws = seeds[:n_random], seeds[n_random:], uniforms[n_rows:]
        draw_spread(points, some.order, draws[:n_random], first)
        lists = Lists(every, one_group(n_random, device), n_random)
        _, near = nearest_listed(points, some, self.centres, lists, first, by_place=True)
        draw_spread(points, some.order, draws[n_random:], others, near)
        self.n_evaluations += n_rows * n_random
        self._lloyd(seeds, Lists(every, one_group(n_cells, device), n_cells), some, RANDOM_STEPS)
        self._count(np.array([n_cells]), np.array([n_rows]), RANDOM_STEPS)
        self._partition = self._cut(n_cells)
        return np.zeros(n_cells, np.int64)

    def cluster(self, expected: np.ndarray, n_clusters: int) -> None:
        """Replace the cells by `n_clusters` clusters, about as many from each as expected, (n_cells,) int64."""
        cells, device = self._partition, self.points.device
        wanted = np.minimum(np.ceil(SPARE * expected).astype(np.int64) + 2, self.sizes)
        seeds = self._seed(cells, wanted)
        shares = share_clusters(seeds, cells, n_clusters, FINE_SAMPLE)
        most = min(len(self.points), FINE_SAMPLE * n_clusters)
        uniforms = torch.rand(most, generator=self.draws, dtype=torch.float64, device=device)
        lists = Lists(first_ids(n_clusters, device), shares.centre_start, int(wanted.max()))
        some = cells.sampled(shares.sample_start, uniforms)
        self._lloyd(aligned_rows(self.points, shares.seeds), lists, some, FINE_STEPS)
        counts = shares.counts.array()  # the host has told the device all that it has to do, and may wait
        self._count(counts, np.minimum(cells.sizes, FINE_SAMPLE * counts), FINE_STEPS)
        n_found = int(counts.sum())
        if n_found == n_clusters:  # seeds of a cell differ, and equal points are in one: there are as many
            self.points.chores.clear()
        self.centres = self.centres[:n_found]

    def top_up(self, n_clusters: int) -> None:
        """Where cells ran out of different points, draw the clusters that are missing by D^2 from all points."""
        points = self.points
        if len(self.centres) < n_clusters:
            points.end_chores()  # are there as many?
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
        seeds = seed_cells(self.points, cells, wanted, SEED_SAMPLE, TRIALS, self.draws)
        draws = np.maximum(TRIALS * (wanted - 1) + 1, 0)
        self.n_evaluations += int((np.minimum(cells.sizes, SEED_SAMPLE * wanted) * draws).sum())
        return seeds

    def _cut(self, n_cells: int) -> Partition:
        """The points by their labels, so many cells of them."""
        return Partition.by(self.labels, n_cells, self.points.weights, self.distances)

    def _some(self, centre_start: np.ndarray, per_centre: int) -> Partition:
        """So many members of every cell for each of its centres; all where there are no more."""
        cells = self._partition
        counts = np.minimum(cells.sizes, per_centre * np.diff(centre_start))
        return cells if (counts == cells.sizes).all() else cells.sample(counts, self.draws)

    def _count(self, n_centres: np.ndarray, n_sampled: np.ndarray, steps: int) -> None:
        """Count distances: of all points to the centres of their cell (n_cells,), and of some in every step."""
        self.n_evaluations += int(((n_sampled * steps + self._partition.sizes) * n_centres).sum())

    def _lloyd(self, seeds: torch.Tensor, lists: Lists, some: Groups, steps: int) -> None:
        """Lloyd steps inside the cells from seeds (n, D) on some of their points, then one assignment of all."""
        points, cells = self.points, self._partition
        centres = lloyd_steps(points, some, self.centres, lists, seeds, steps)
        ids, near = nearest_listed(points, cells.groups, self.centres, lists, centres)
        self.centres, self.labels, self.distances = centres, ids.view(-1), near.view(-1)
