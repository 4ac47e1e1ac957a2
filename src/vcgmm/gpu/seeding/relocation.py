"""Clusters are moved to where they are needed: twin of `algorithm.seeding.relocation`, all clusters at once."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import torch

from ...algorithm.seeding.inside_cells import TRIALS
from ...algorithm.seeding.relocation import SAMPLE, STEPS, Relocated
from ...kernels.seeding.moves import plan_moves
from ...kernels.seeding.rivals import LOOKED_AT
from ..cells.pieces import Groups, sort_by_group
from ..cells.ranking import first_in_order
from ..cells.sorting import label_type
from ..coreset.points import DevicePoints, upload
from ..device.arena import empty
from ..device.arrays import DeviceArray, Told
from ..device.sizes import pieces_of, power_of_two
from ..device.tiling import REGISTERS
from ..kernels.halving import halve_cells
from ..kernels.rivals import end_takers, hand_over, list_takers, put_halves, survey_rivals, two_nearest

#: Share of the clusters that are split to see what it gains: more than on the host, where it costs more.
TRIED = 0.5

#: Points, and features of them, that a program compares with their winners.
COMPARED, COMPARED_FEATURES = 32, 128

#: Members of a cluster that are added up at a time, and points that are given new labels.
SURVEYED, RELABELLED = 256, 512

#: Takers that are brought to the host before it knows how many there are.
MOST_TAKERS = 1 << 18

#: Clusters that may be taken away whose points are counted at a time.
ENDED = 1024

#: What is told of the moves that were chosen.
N_FACTS = 5

#: Features of a cell's points that are read at a time: twice as many are slower.
FEATURES = 16


def relocate(
    points: DevicePoints,
    order: torch.Tensor,
    winners: torch.Tensor,
    means: torch.Tensor,
    draws: torch.Generator,
    used: torch.Tensor,
    per_row: int = 1,
) -> Relocated:
    """Move clusters to where they lower the error more; their means are on the device.

    As many clusters may be taken away, those that are missed least, as are split to see what it gains.

    Parameters
    ----------
    points : DevicePoints
    order : (N',) int64 tensor
        All points, those near each other together, each `per_row` times as large or a bit more.
    winners : (N', C') int32 tensor
        Clusters near each point; -1 where there is none, the first one always is.  In the end that is the nearest
        as far as it is known, and there are no others.
    means : (C, D) float64 tensor
        Changed in place.
    draws : torch.Generator
    used : (C, D) float32 tensor, rows as of `tiling.aligned`
        The same; in the end those of after the moves.
    per_row : int
    """
    n_clusters, device = len(means), points.device
    n_tried = max(1, int(TRIED * n_clusters))
    report = Report.empty(n_clusters, n_tried, len(points), device)
    labels, rivals, distances = nearest_winners(points, order, winners, used, per_row)
    groups = sort_by_group(labels, n_clusters)
    errors, losses = survey(points, groups, distances, report.sizes)
    first_in_order(errors, n_tried, report.gains, report.tried, descending=True)  # where gains will be
    # The longest, while the host goes on.
    gains = empty((n_tried,), torch.float64, device)
    halves = split_in_two(points, groups, report.tried, used, draws, errors, gains, report.n_second)
    first_in_order(losses, n_tried, report.losses, report.cheapest)
    list_those_who_take(groups, rivals, report)
    torch.sum(errors, 0, keepdim=True, out=report.error)
    first_in_order(gains, n_tried, report.gains, report.dearest, descending=True)

    # What the host chooses by; the device waits for what it chooses.
    told = Told(report.some(min(MOST_TAKERS, len(points) * n_tried // n_clusters)))
    moved: Any = DeviceArray(means)
    chosen, facts = np.empty(n_clusters + 3 * n_tried, np.int64), np.empty(N_FACTS)
    numbers, here, n_here = report.apart(told.array())  # those who are missed least have few points mostly
    if n_here > len(here):
        here = report.takers[:n_here].cpu().numpy()
    n_moves = plan_moves(numbers, numbers.view(np.float64), here, n_clusters, n_tried, 2 * SAMPLE, chosen, facts)
    there = upload(chosen[: n_clusters + 3 * n_moves], device)
    if n_moves:
        put_halves[(n_moves,)](
            there[n_clusters:], n_moves, halves.centres, points.n_features, means, used, used.stride(0),
            FEATURES=power_of_two(points.n_features),
        )  # fmt: skip
    hand_over[(pieces_of(len(labels), RELABELLED),)](
        labels, rivals, halves.second, there, len(labels), winners, N_BEST=winners.shape[1],
        COLUMNS=power_of_two(winners.shape[1]), POINTS=RELABELLED,
    )  # fmt: skip
    error, gained, n_points, n_sampled, n_split = facts.tolist()
    return Relocated(
        means=moved,
        error=error - gained,
        gained=gained,
        n_moved=n_moves,
        n_points=int(n_points),
        n_evaluations=len(points) * min(winners.shape[1], LOOKED_AT)
        + int(n_sampled * (1 + TRIALS + 2 * STEPS) + 2 * n_split),
    )


@dataclass(frozen=True)
class Report:
    """What the host chooses moves by, in one place and so in one copy, as `plan_moves` reads it; k are tried.

    Attributes
    ----------
    room : (...,) int64 tensor
        All of it.
    tried : (k,) int64 tensor
        Clusters that are split, the one with the largest error first.
    sizes : (C,) int64 tensor
        Points of all clusters.
    n_second : (k,) int64 tensor
        Points of second halves.
    dearest : (k,) int64 tensor
        Places among those that are split, the one that gains most first.
    gains : (k,) float64 tensor
        What they gain.
    cheapest : (k,) int64 tensor
        Clusters that are missed least.
    ends : (k,) int64 tensor
        Where the takers of each of them end.
    losses : (k,) float64 tensor
        What is lost without them.
    error : (1,) float64 tensor
        That of all points.
    takers : (N',) int32 tensor
        Who would take over the points of those clusters, one cluster after the other.
    """

    room: torch.Tensor
    tried: torch.Tensor
    sizes: torch.Tensor
    n_second: torch.Tensor
    dearest: torch.Tensor
    gains: torch.Tensor
    cheapest: torch.Tensor
    ends: torch.Tensor
    losses: torch.Tensor
    error: torch.Tensor
    takers: torch.Tensor

    @classmethod
    def empty(cls, n_clusters: int, n_tried: int, n_points: int, device: torch.device) -> Report:
        """Room for it."""
        k = n_tried
        lengths = (k, n_clusters, k, k, k, k, k, k, 1, pieces_of(n_points, 2))
        room = empty((sum(lengths),), torch.int64, device)
        last = list(accumulate(lengths))
        parts = [room[end - length : end] for end, length in zip(last, lengths, strict=True)]
        tried, sizes, n_second, dearest, gains, cheapest, ends, losses, error, takers = parts
        wide = torch.float64
        return cls(
            room, tried, sizes, n_second, dearest, gains.view(wide), cheapest, ends, losses.view(wide),
            error.view(wide), takers.view(torch.int32),
        )  # fmt: skip

    def some(self, n_takers: int) -> torch.Tensor:
        """The numbers, and so many of the takers, or one more."""
        return self.room[: self._n_numbers + pieces_of(n_takers, 2)]

    def apart(self, told: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
        """What `some` gave, on the host: the numbers, those of the takers that came, and how many there are."""
        n_numbers = self._n_numbers
        n_tried = self.tried.shape[0]
        return told[:n_numbers], told[n_numbers:].view(np.int32), int(told[n_numbers - 2 - n_tried])

    @property
    def _n_numbers(self) -> int:
        return self.room.shape[0] - pieces_of(self.takers.shape[0], 2)


def nearest_winners(
    points: DevicePoints, order: torch.Tensor, winners: torch.Tensor, means: torch.Tensor, per_row: int = 1
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Nearest and second nearest winner of every point, (N',) int each, and squared distances, (2, N') float32.

    Parameters
    ----------
    points, order, winners, per_row : as in `relocate`
    means : (C, D) float32 tensor
    """
    n_points, device = len(points), points.device
    labels = empty((n_points,), label_type(means.shape[0]), device)  # they will be sorted
    rivals = empty((n_points,), torch.int32, device)
    distances = empty((2, n_points), torch.float32, device)
    two_nearest[(pieces_of(n_points, COMPARED),)](
        points.stored, points.stored.stride(0), points.n_features, points.scale, order, n_points, winners, means,
        means.stride(0), labels, rivals, distances, N_BEST=winners.shape[1],
        LOOKED_AT=min(winners.shape[1], LOOKED_AT), PER_ROW=per_row, POINTS=COMPARED,
        FEATURES=min(COMPARED_FEATURES, power_of_two(points.n_features)), GRAIN=points.grain,
    )  # fmt: skip
    return labels, rivals, distances


def survey(points: DevicePoints, groups: Groups, distances: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
    """Error of every cluster and what is lost without it, from distances (2, N'): (2, C) float64.

    Points of each, (C,) int64, are put into `sizes`.
    """
    n_clusters = len(groups.start) - 1
    facts = empty((2, n_clusters), torch.float64, points.device)
    survey_rivals[(n_clusters,)](
        groups.order, groups.start, points.weights, distances, len(points), facts, sizes, MEMBERS=SURVEYED
    )
    return facts


def list_those_who_take(groups: Groups, rivals: torch.Tensor, report: Report) -> None:
    """Put down who would take over the points of the clusters that are missed least, and where each one's end.

    Parameters
    ----------
    groups : Groups
        Points of all clusters.
    rivals : (N',) int32 tensor
    report : Report
        Of which sizes and cheapest are known.
    """
    cheapest, ends = report.cheapest, report.ends
    end_takers[(1,)](report.sizes, cheapest, len(cheapest), ends, CLUSTERS=min(ENDED, power_of_two(len(cheapest))))
    list_takers[(len(cheapest),)](
        groups.order, groups.start, cheapest, rivals, ends, report.takers, MEMBERS=SURVEYED
    )


@dataclass(frozen=True)
class Halves:
    """Clusters split in two.

    Attributes
    ----------
    centres : (k, 2, D) float32 tensor
    second : (N',) int8 tensor
        1 for points of second halves; whatever for those of other clusters.
    """

    centres: torch.Tensor
    second: torch.Tensor


def split_in_two(
    points: DevicePoints,
    groups: Groups,
    tried: torch.Tensor,
    means: torch.Tensor,
    draws: torch.Generator,
    errors: torch.Tensor,
    gains: torch.Tensor,
    n_second: torch.Tensor,
) -> Halves:
    """Split clusters tried (k,) int64 in two by a small k-means inside each.

    Parameters
    ----------
    points, draws : as in `relocate`
    groups : Groups
        Points of all clusters.
    means : (C, D) float32 tensor
    errors : (C,) float64 tensor
        Of all clusters.
    gains : (k,) float64 tensor
        Where it is put what their errors fall by; minus infinity where a cluster cannot be split.
    n_second : (k,) int64 tensor
        Where points of second halves are counted.
    """
    device, n_tried, n_features = points.device, len(tried), points.n_features
    uniforms = torch.rand((n_tried, 1 + TRIALS), generator=draws, device=device)
    halves = Halves(
        empty((n_tried, 2, n_features), torch.float32, device),
        empty((len(points),), torch.int8, device),
    )
    halve_cells[(n_tried,)](
        points.stored, points.stored.stride(0), n_features, points.scale, groups.order, groups.start, tried,
        points.weights, means, means.stride(0), uniforms, halves.centres, halves.second, n_second, errors, gains,
        STEPS=STEPS, N_TRIALS=TRIALS, ROWS=2 * SAMPLE, FEATURES=min(FEATURES, power_of_two(n_features)),
        GRAIN=points.grain, maxnreg=REGISTERS,
    )  # fmt: skip
    return halves
