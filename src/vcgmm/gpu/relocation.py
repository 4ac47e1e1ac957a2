"""Clusters are moved to where they are needed most: the twin of `algorithm.relocation`, all clusters at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ..algorithm.inside_cells import TRIALS
from ..algorithm.relocation import SAMPLE, STEPS, TRIED, Relocated
from ..kernels.moves import pair_moves
from ..kernels.rivals import LOOKED_AT
from .arrays import DeviceArray
from .cells import Groups, sort_by_group
from .kernels.halving import halve_cells
from .kernels.rivals import hand_over, list_takers, survey_rivals, two_nearest
from .points import DevicePoints, upload
from .sizes import pieces_of, power_of_two
from .tiling import aligned

#: Points, and features of them, that a program compares with their winners.
COMPARED, COMPARED_FEATURES = 32, 128

#: Members of a cluster that are added up at a time, and points that are given new labels.
SURVEYED, RELABELLED = 256, 1024

#: Features of a cell's points that are read at a time.
FEATURES = 32

#: What becomes of clusters that are not split.
STAYS, GONE = -1, -2


def relocate(
    points: DevicePoints, order: torch.Tensor, winners: torch.Tensor, means: torch.Tensor, draws: torch.Generator
) -> Relocated:
    """Move clusters to where they lower the error more; means and labels are on the device.

    As many clusters may be taken away, those that are missed least, as are split to see what it gains.  The host
    waits for what it chooses by, and for who would take over the points of the former.

    Parameters
    ----------
    points : DevicePoints
    order : (N',) int64 tensor
        All points, those near each other together.
    winners : (N', C') int32 tensor
        Clusters near each point; -1 where there is none, the first one always is.
    means : (C, D) float64 tensor
    draws : torch.Generator
    """
    n_clusters, device = len(means), points.device
    used = aligned(means)
    labels, rivals, distances = nearest_winners(points, order, winners, used)
    groups = sort_by_group(labels, n_clusters)
    errors, losses = survey(points, groups, distances)
    n_tried = max(1, int(TRIED * n_clusters))
    tried = torch.argsort(errors, descending=True, stable=True)[:n_tried]
    least, cheapest = (found[:n_tried] for found in torch.sort(losses, stable=True))
    takers, handed = takers_of(groups, rivals, cheapest)
    centres, second, left = split_in_two(points, groups, tried, used, draws)
    most, dearest = torch.sort(errors[tried] - left, descending=True, stable=True)

    # All in one copy, whose numbers are floats to begin with, and integers from there on.
    amounts = torch.cat([least, most, errors.sum().view(1)])
    told = (
        torch.cat([amounts.view(torch.int64), cheapest, handed, tried, groups.sizes[tried], dearest]).cpu().numpy()
    )
    amounts_here, told = told[: 2 * n_tried + 1].view(np.float64), told[2 * n_tried + 1 :].reshape(5, -1)
    least_here, most_here = amounts_here[:-1].reshape(2, -1)
    cheapest_here, last, tried_here, tried_sizes, dearest_here = told
    moves = np.empty((2, n_tried), np.int64)
    n_moves = pair_moves(
        cheapest_here, least_here, np.append(0, last[:-1]), last, takers[: last[-1]].cpu().numpy(),
        tried_here[dearest_here], most_here, np.zeros(n_clusters, bool), moves,
    )  # fmt: skip
    takes, splits = moves[:, :n_moves]
    places = dearest_here[splits]
    kept, removed = tried_here[places], cheapest_here[takes]
    fates = np.full(n_clusters, STAYS, np.int32)
    fates[removed], fates[kept] = GONE, removed

    gained = float(most_here[splits].sum() - least_here[takes].sum())
    moved: Any = DeviceArray(means.clone())
    facts = upload(np.stack([kept, removed, places]), device)
    moved.tensor[facts[:2].T] = centres[facts[2]].double()
    new_labels: Any = torch.empty_like(labels)
    hand_over[(pieces_of(len(labels), RELABELLED),)](
        labels, rivals, second, upload(fates, device), len(labels), new_labels, POINTS=RELABELLED
    )
    looked_at = np.minimum(tried_sizes, 2 * SAMPLE)
    n_evaluations = len(points) * min(winners.shape[1], LOOKED_AT)
    n_evaluations += int((looked_at * (1 + TRIALS + 2 * STEPS) + 2 * tried_sizes).sum())
    error = float(amounts_here[-1]) - gained
    return Relocated(moved, new_labels, error, gained, n_moves, n_evaluations)


def nearest_winners(
    points: DevicePoints, order: torch.Tensor, winners: torch.Tensor, means: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Nearest and second nearest winner of every point, (N',) int32 each, and squared distances, (2, N') float32.

    Parameters
    ----------
    points, order, winners : as in `relocate`
    means : (C, D) float32 tensor
    """
    n_points, device = len(points), points.device
    labels, rivals = (torch.empty(n_points, dtype=torch.int32, device=device) for _ in range(2))
    distances = torch.empty((2, n_points), device=device)
    two_nearest[(pieces_of(n_points, COMPARED),)](
        points.stored, points.stored.stride(0), points.n_features, points.scale, order, n_points, winners, means,
        means.stride(0), labels, rivals, distances, N_BEST=winners.shape[1],
        LOOKED_AT=min(winners.shape[1], LOOKED_AT), POINTS=COMPARED,
        FEATURES=min(COMPARED_FEATURES, power_of_two(points.n_features)),
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


def takers_of(groups: Groups, rivals: torch.Tensor, cheapest: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Who would take over the points of some clusters (k,) int64, one cluster after the other.

    Returns
    -------
    takers : (N',) int32 tensor
        The rival of every point; as many as those clusters have.
    last : (k,) int64 tensor
        Where those of each cluster end.
    """
    takers, last = torch.empty_like(rivals), torch.cumsum(groups.sizes[cheapest], 0)
    list_takers[(len(cheapest),)](groups.order, groups.start, cheapest, rivals, last, takers, MEMBERS=SURVEYED)
    return takers, last


def split_in_two(
    points: DevicePoints, groups: Groups, tried: torch.Tensor, means: torch.Tensor, draws: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Split clusters tried (k,) int64 in two by a small k-means inside each.

    Parameters
    ----------
    points, draws : as in `relocate`
    groups : Groups
        Points of all clusters.
    means : (C, D) float32 tensor

    Returns
    -------
    centres : (k, 2, D) float32 tensor
    second : (N',) int8 tensor
        1 for points of second halves; whatever for those of other clusters.
    errors : (k,) float64 tensor
        Weighted squared error of both halves; infinite where a cluster cannot be split.
    """
    device, n_tried, n_features = points.device, len(tried), points.n_features
    uniforms = torch.rand((n_tried, 1 + TRIALS), generator=draws, device=device)
    centres = torch.empty((n_tried, 2, n_features), device=device)
    second = torch.empty(len(points), dtype=torch.int8, device=device)
    errors = torch.empty(n_tried, dtype=torch.float64, device=device)
    halve_cells[(n_tried,)](
        points.stored, points.stored.stride(0), n_features, points.scale, groups.order, groups.start, tried,
        points.weights, means, means.stride(0), uniforms, centres, second, errors, STEPS=STEPS, N_TRIALS=TRIALS,
        ROWS=2 * SAMPLE, FEATURES=min(FEATURES, power_of_two(n_features)),
    )  # fmt: skip
    return centres, second, errors
