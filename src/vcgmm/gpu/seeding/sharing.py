"""Clusters are shared out among cells, and seeds drawn, without the host: it need not wait to go on."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ..cells.ranking import in_order
from ..coreset.points import DevicePoints
from ..device.arena import empty, letter
from ..device.arrays import Told
from ..device.sizes import pieces_of, power_of_two
from ..kernels.sharing import begin_cells, count_chosen, draw_in_strata, take_seeds, worths_of_seeds
from .greedy import CellSeeds
from .partition import Partition

#: Seeds that a program looks at, and cells at a time.
SEEDS, CELLS = 128, 1024

#: Features of a point that is drawn, at a time.
FEATURES = 128


@dataclass(frozen=True)
class Shares:
    """How many clusters each cell is given, and which.

    Attributes
    ----------
    counts : Told, (n_cells,) int64
        On their way to the host.  They add up to `n_clusters`, or to all seeds where those are fewer.
    seeds : (n_clusters,) int64 tensor
        Seeds of the first cell, then of the next; rows of no meaning where there are too few.
    centre_start : (n_cells + 1,) int64 tensor
        Where those of each begin.
    sample_start : (n_cells + 1,) int64 tensor
        Where some of its points begin.
    """

    counts: Told
    seeds: torch.Tensor
    centre_start: torch.Tensor
    sample_start: torch.Tensor


def share_clusters(seeds: CellSeeds, cells: Partition, n_clusters: int, per_cluster: int) -> Shares:
    """As `algorithm.seeding.sharing.share_by_potential`, on the device.

    Parameters
    ----------
    seeds : CellSeeds
        Of every cell.
    cells : Partition
    n_clusters : int
    per_cluster : int
        Points of a cell that are looked at for each of its clusters.
    """
    n_cells, n_seeds = len(cells), len(seeds.rows)
    steps, blocks = n_cells.bit_length(), pieces_of(n_seeds, SEEDS)
    wide, device = torch.int64, seeds.rows.device
    worths, starts = empty((n_seeds,), wide, device), empty((2, n_cells + 1), wide, device)
    # All 0 at first: rows of those that are not there are looked at, if by nobody who cares.
    n_room = n_cells + n_clusters
    room = empty((n_room,), wide, device) if n_seeds else torch.zeros(n_room, dtype=wide, device=device)
    counts, taken = room[:n_cells], room[n_cells:]
    if n_seeds:
        worths_of_seeds[(blocks,)](
            seeds.rows, seeds.potentials, seeds.start, n_cells, n_seeds, worths, room, n_room, STEPS=steps,
            SEEDS=SEEDS,
        )  # fmt: skip
        ordered, order = in_order(worths, descending=True)
        n_chosen = min(n_clusters, n_seeds)
        count_chosen[(pieces_of(n_chosen, SEEDS),)](
            ordered, order, n_chosen, seeds.start, n_cells, counts, STEPS=steps, SEEDS=SEEDS
        )
    centre_start, sample_start = starts
    told = letter((n_cells,), wide, device)
    begin_cells[(1,)](
        counts, cells.groups.start, n_cells, per_cluster, centre_start, sample_start, told,
        CELLS=min(CELLS, power_of_two(n_cells)),
    )  # fmt: skip
    if n_seeds:
        take_seeds[(blocks,)](
            seeds.rows, seeds.start, n_cells, n_seeds, centre_start, taken, STEPS=steps, SEEDS=SEEDS
        )
    return Shares(Told(told), taken, centre_start, sample_start)


def draw_spread(
    points: DevicePoints,
    rows: torch.Tensor,
    uniforms: torch.Tensor,
    drawn: torch.Tensor,
    near: torch.Tensor | None = None,
) -> None:
    """Draw different points, each from a part of some rows that is spread over all of them.

    Parameters
    ----------
    points : DevicePoints
    rows : (n,) int64 tensor
    uniforms : (k,) float64 tensor
    drawn : (k, D) float32 tensor, rows as of `partition.aligned_room`
        Where their coordinates are put.
    near : (n,) float32 tensor, optional
        Squared distances to what is there already, by which, and by weights, they are drawn; else any.
    """
    n_rows, n_drawn = rows.shape[0], drawn.shape[0]
    if n_drawn:
        width = drawn.stride(0)
        draw_in_strata[(n_drawn,)](
            points.stored, points.stored.stride(0), points.n_features, points.scale, rows, n_rows, n_drawn,
            uniforms, points.weights, points.weights if near is None else near, drawn, width,
            MEMBERS=power_of_two(pieces_of(n_rows, n_drawn)), FEATURES=min(FEATURES, power_of_two(width)),
            BY_DISTANCE=near is not None,
        )  # fmt: skip
