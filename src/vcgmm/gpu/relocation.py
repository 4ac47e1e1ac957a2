"""Clusters are moved to where they are needed most: the twin of `algorithm.relocation`, all clusters at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from ..algorithm.inside_cells import SEED_SAMPLE, TRIALS
from ..algorithm.relocation import SAMPLE, STEPS, TRIED
from ..kernels.moves import pair_moves
from .cells import Groups, sort_by_group
from .greedy import draw_seeds
from .kernels.rivals import two_nearest
from .lloyd import lloyd_steps
from .nearest import PAIR_FEATURES, PAIRS, lists_between, nearest_listed
from .partition import Partition, aligned_rows, survey
from .points import DevicePoints, upload
from .sizes import pieces_of, power_of_two
from .tiling import aligned


@dataclass(frozen=True)
class Relocated:
    """Clusters after some of them have been moved.

    Attributes
    ----------
    means : (C, D) float64 tensor
    labels : (N',) int32 tensor
        The nearest cluster of every point, as far as it is known.
    distances : (N',) float32 tensor
        Squared, to it.
    n_moved : int
        Clusters that are somewhere else now.
    n_evaluations : int
        Distances computed.
    """

    means: torch.Tensor
    labels: torch.Tensor
    distances: torch.Tensor
    n_moved: int
    n_evaluations: int


def relocate(
    points: DevicePoints, order: torch.Tensor, winners: torch.Tensor, means: torch.Tensor, draws: torch.Generator
) -> Relocated:
    """Move clusters to where they lower the error more; the host waits twice.

    Of the clusters, as many are looked at as cheapest to take away as are split to see what it gains.

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
    labels, rivals, (near, far) = nearest_winners(points, order, winners, used)
    groups = sort_by_group(labels, n_clusters)
    sizes, masses, errors = survey(groups, points.weights, near).unbind(1)
    losses = survey(groups, points.weights, far - near)[:, 2]
    n_tried = max(1, int(TRIED * n_clusters))
    tried = torch.argsort(errors, descending=True, stable=True)[:n_tried]
    cheapest = torch.argsort(losses, stable=True)[:n_tried]
    facts = [tried.double(), cheapest.double(), sizes[tried], sizes[cheapest], losses[cheapest]]
    *numbers, least_losses = torch.stack(facts).cpu().numpy()
    tried_here, cheapest_here, tried_sizes, cheap_sizes = np.array(numbers).astype(np.int64)

    halves = split_in_two(points, labels, tried, tried_sizes, masses[tried], used, draws)
    gains = errors[tried] - halves.errors
    dearest = torch.argsort(gains, descending=True, stable=True)
    handed_over = rivals[members_of(groups, cheapest, sizes[cheapest], int(cheap_sizes.sum()))]
    by_gain, most_gains = torch.stack([dearest.double(), gains[dearest]]).cpu().numpy()
    by_gain = by_gain.astype(np.int64)
    last = np.cumsum(cheap_sizes)
    moves = np.empty((2, n_tried), np.int64)
    n_moves = pair_moves(
        cheapest_here, least_losses, last - cheap_sizes, last, handed_over.cpu().numpy(), tried_here[by_gain],
        most_gains, np.zeros(n_clusters, bool), moves,
    )  # fmt: skip
    moves = moves[:, :n_moves]
    removed, split = upload(np.stack([cheapest_here[moves[0]], by_gain[moves[1]]]), device)
    kept = tried[split]

    is_gone = torch.zeros(n_clusters, dtype=torch.bool, device=device)
    is_gone[removed] = True
    partner = torch.full((n_clusters,), -1, dtype=torch.int32, device=device)
    partner[kept] = removed.to(torch.int32)
    own = labels.long()
    is_gone, partner = is_gone[own], partner[own]
    is_split = partner >= 0
    labels = torch.where(is_gone, rivals, torch.where(is_split & halves.second, partner, labels))
    near = torch.where(is_gone, far, torch.where(is_split, halves.distances, near))
    means = means.clone()
    means[kept], means[removed] = halves.centres[2 * split].double(), halves.centres[2 * split + 1].double()
    return Relocated(means, labels, near, n_moves, winners.numel() + halves.n_evaluations)


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
    labels, rivals = torch.empty((2, n_points), dtype=torch.int32, device=device)
    distances = torch.empty((2, n_points), device=device)
    two_nearest[(pieces_of(n_points, PAIRS),)](
        points.stored, points.stored.stride(0), points.n_features, points.scale, order, n_points, winners, means,
        means.stride(0), labels, rivals, distances, N_BEST=winners.shape[1], POINTS=PAIRS,
        FEATURES=min(PAIR_FEATURES, power_of_two(points.n_features)),
    )  # fmt: skip
    return labels, rivals, distances


def members_of(groups: Groups, some: torch.Tensor, sizes: torch.Tensor, n_members: int) -> torch.Tensor:
    """Members of some groups (k,) of known sizes (k,), one after the other: (n_members,) int64."""
    counts = sizes.long()
    skipped = groups.start[some] - (counts.cumsum(0) - counts)
    places = torch.arange(n_members, device=some.device)
    return groups.order[places + torch.repeat_interleave(skipped, counts, output_size=n_members)]


@dataclass(frozen=True)
class Halves:
    """Clusters split in two.

    Attributes
    ----------
    centres : (2 k, D) float32 tensor
        Of both halves of each.
    errors : (k,) float64 tensor
        Weighted squared error of the points of both; infinite where a cluster cannot be split.
    second : (N',) bool tensor
        Points of the second halves, where clusters were split.
    distances : (N',) float32 tensor
        Squared, of their points to the nearer half.
    n_evaluations : int
    """

    centres: torch.Tensor
    errors: torch.Tensor
    second: torch.Tensor
    distances: torch.Tensor
    n_evaluations: int


def split_in_two(
    points: DevicePoints,
    labels: torch.Tensor,
    tried: torch.Tensor,
    sizes: np.ndarray,
    masses: torch.Tensor,
    means: torch.Tensor,
    draws: torch.Generator,
) -> Halves:
    """Split clusters in two by a small k-means inside each.

    Parameters
    ----------
    points, draws : as in `relocate`
    labels : (N',) int32 tensor
        The cluster of every point.
    tried : (k,) int64 tensor
        Clusters.
    sizes : (k,) int64 array, masses : (k,) float64 tensor
        How many points they have, and their weight.
    means : (C, D) float32 tensor
    """
    device, n_tried = points.device, len(tried)
    place = torch.full((len(means),), n_tried, dtype=torch.int32, device=device)
    place[tried] = torch.arange(n_tried, dtype=torch.int32, device=device)
    groups = sort_by_group(place[labels.long()], n_tried)
    cells = Partition(groups, sizes, masses, np.empty(0))
    seeds = draw_seeds(points, cells, np.full(n_tried, 2), SEED_SAMPLE, TRIALS, draws)[0].view(torch.int64)
    lists = lists_between(np.arange(0, 2 * n_tried + 1, 2), device)
    looked_at = np.minimum(sizes, 2 * SAMPLE)
    some = cells.sample(looked_at, draws)
    origins = aligned(means[tried])
    centres = lloyd_steps(points, some.groups, origins, lists, aligned_rows(points, seeds.clamp(min=0)), STEPS)
    ids, distances = nearest_listed(points, groups, origins, lists, centres)
    second = (ids.view(-1) & 1).bool()
    errors = survey(groups, points.weights, distances.view(-1))[:, 2]
    mass = survey(groups, points.weights, second.float())[:, 2]
    # Not those whose points are all the same, nor those of which one half took all.
    whole = (seeds.view(-1, 2)[:, 1] >= 0) & (mass > 0) & (mass < masses)
    n_evaluations = np.minimum(sizes, 2 * SEED_SAMPLE) * (TRIALS + 1) + 2 * (looked_at * STEPS + sizes)
    errors = torch.where(whole, errors, torch.inf)
    return Halves(centres, errors, second, distances.view(-1), int(n_evaluations.sum()))
