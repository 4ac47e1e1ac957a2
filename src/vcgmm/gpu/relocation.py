"""Clusters are moved to where they are needed most: the twin of `algorithm.relocation`, all clusters at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ..algorithm.inside_cells import TRIALS
from ..algorithm.relocation import SAMPLE, STEPS, Relocated
from ..kernels.moves import plan_moves
from ..kernels.rivals import LOOKED_AT
from .arrays import DeviceArray, Told
from .cells import Groups, sort_by_group
from .kernels.halving import halve_cells
from .kernels.rivals import hand_over, list_takers, put_halves, survey_rivals, two_nearest
from .points import DevicePoints, upload
from .ranking import in_order
from .sizes import pieces_of, power_of_two
from .tiling import REGISTERS, aligned

#: Share of the clusters that are split to see what it gains: more than on the host, where it costs more.
TRIED = 0.5

#: Points, and features of them, that a program compares with their winners.
COMPARED, COMPARED_FEATURES = 32, 128

#: Members of a cluster that are added up at a time, and points that are given new labels.
SURVEYED, RELABELLED = 256, 512

#: Takers that are brought to the host before it knows how many there are.
MOST_TAKERS = 1 << 18

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
    draws : torch.Generator
    per_row : int
    """
    n_clusters, device = len(means), points.device
    used = aligned(means)
    labels, rivals, distances = nearest_winners(points, order, winners, used, per_row)
    groups = sort_by_group(labels, n_clusters)
    errors, losses = survey(points, groups, distances)
    n_tried = max(1, int(TRIED * n_clusters))
    tried = in_order(errors, descending=True)[1][:n_tried]
    halves = split_in_two(points, groups, tried, used, draws)  # the longest, while the host goes on
    least, cheapest = (found[:n_tried] for found in in_order(losses))
    group_sizes = groups.sizes
    takers, ends = takers_of(groups, rivals, cheapest, group_sizes)
    most, dearest = in_order(errors[tried] - halves.errors, descending=True)

    # What the host chooses by; the device waits for what it chooses.
    parts = (tried, group_sizes, halves.n_second, dearest, most, cheapest, ends, least, errors.sum().view(1))
    told = Told(torch.cat([part.view(torch.int64) for part in parts]))
    some = Told(takers[: min(MOST_TAKERS, len(takers) * n_tried // n_clusters)])
    moved: Any = DeviceArray(means.clone())
    chosen, facts = np.empty(n_clusters + 3 * n_tried, np.int64), np.empty(N_FACTS)
    numbers = told.array()
    here, n_here = some.array(), int(numbers[-2 - n_tried])  # those who are missed least have few points mostly
    if n_here > len(here):
        here = takers[:n_here].cpu().numpy()
    n_moves = plan_moves(numbers, numbers.view(np.float64), here, n_clusters, n_tried, 2 * SAMPLE, chosen, facts)
    there = upload(chosen[: n_clusters + 3 * n_moves], device)
    if n_moves:
        put_halves[(n_moves,)](
            there[n_clusters:], n_moves, halves.centres, points.n_features, moved.tensor,
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


def nearest_winners(
    points: DevicePoints, order: torch.Tensor, winners: torch.Tensor, means: torch.Tensor, per_row: int = 1
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Nearest and second nearest winner of every point, (N',) int32 each, and squared distances, (2, N') float32.

    Parameters
    ----------
    points, order, winners, per_row : as in `relocate`
    means : (C, D) float32 tensor
    """
    n_points, device = len(points), points.device
    labels, rivals = (torch.empty(n_points, dtype=torch.int32, device=device) for _ in range(2))
    distances = torch.empty((2, n_points), device=device)
    two_nearest[(pieces_of(n_points, COMPARED),)](
        points.stored, points.stored.stride(0), points.n_features, points.scale, order, n_points, winners, means,
        means.stride(0), labels, rivals, distances, N_BEST=winners.shape[1],
        LOOKED_AT=min(winners.shape[1], LOOKED_AT), PER_ROW=per_row, POINTS=COMPARED,
        FEATURES=min(COMPARED_FEATURES, power_of_two(points.n_features)), GRAIN=points.grain,
    )  # fmt: skip
    return labels, rivals, distances


def survey(points: DevicePoints, groups: Groups, distances: torch.Tensor) -> torch.Tensor:
    """Error of every cluster and what is lost without it, from distances (2, N'): (2, C) float64."""
    n_clusters = len(groups.start) - 1
    facts = torch.empty((2, n_clusters), dtype=torch.float64, device=points.device)
    survey_rivals[(n_clusters,)](
        groups.order, groups.start, points.weights, distances, len(points), facts, MEMBERS=SURVEYED
    )
    return facts


def takers_of(
    groups: Groups, rivals: torch.Tensor, cheapest: torch.Tensor, sizes: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Who would take over the points of some clusters (k,) int64, one cluster after the other.

    Parameters
    ----------
    groups : Groups
        Points of all clusters.
    rivals : (N',) int32 tensor
    cheapest : (k,) int64 tensor
    sizes : (C,) int64 tensor
        Of the groups.

    Returns
    -------
    takers : (N',) int32 tensor
        The rival of every point; as many as those clusters have.
    last : (k,) int64 tensor
        Where those of each cluster end.
    """
    takers, last = torch.empty_like(rivals), torch.cumsum(sizes[cheapest], 0)
    list_takers[(len(cheapest),)](groups.order, groups.start, cheapest, rivals, last, takers, MEMBERS=SURVEYED)
    return takers, last


@dataclass(frozen=True)
class Halves:
    """Clusters split in two.

    Attributes
    ----------
    centres : (k, 2, D) float32 tensor
    errors : (k,) float64 tensor
        Weighted squared error of both halves; infinite where a cluster cannot be split.
    second : (N',) int8 tensor
        1 for points of second halves; whatever for those of other clusters.
    n_second : (k,) int64 tensor
        How many those are.
    """

    centres: torch.Tensor
    errors: torch.Tensor
    second: torch.Tensor
    n_second: torch.Tensor


def split_in_two(
    points: DevicePoints, groups: Groups, tried: torch.Tensor, means: torch.Tensor, draws: torch.Generator
) -> Halves:
    """Split clusters tried (k,) int64 in two by a small k-means inside each.

    Parameters
    ----------
    points, draws : as in `relocate`
    groups : Groups
        Points of all clusters.
    means : (C, D) float32 tensor
    """
    device, n_tried, n_features = points.device, len(tried), points.n_features
    uniforms = torch.rand((n_tried, 1 + TRIALS), generator=draws, device=device)
    halves = Halves(
        torch.empty((n_tried, 2, n_features), device=device),
        torch.empty(n_tried, dtype=torch.float64, device=device),
        torch.empty(len(points), dtype=torch.int8, device=device),
        torch.empty(n_tried, dtype=torch.int64, device=device),
    )
    halve_cells[(n_tried,)](
        points.stored, points.stored.stride(0), n_features, points.scale, groups.order, groups.start, tried,
        points.weights, means, means.stride(0), uniforms, halves.centres, halves.second, halves.n_second,
        halves.errors, STEPS=STEPS, N_TRIALS=TRIALS, ROWS=2 * SAMPLE,
        FEATURES=min(FEATURES, power_of_two(n_features)), GRAIN=points.grain, maxnreg=REGISTERS,
    )  # fmt: skip
    return halves
