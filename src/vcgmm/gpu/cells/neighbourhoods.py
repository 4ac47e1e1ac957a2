"""Which clusters are near which, on the device: the twin of `algorithm.cells.neighbourhoods`, list by list."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from ...algorithm.cells.neighbourhoods import FOLLOWERS, GROUP_SIZE, LINKED_AT_FIRST, LINKED_EVERY, POOL_SIZE
from ...algorithm.random import generator
from ...kernels.cells.neighbors import BAND
from ..device.arena import empty
from ..device.downloads import to_host
from ..device.sizes import pieces_of, power_of_two
from ..kernels.ranking import compare_all, join_lists, list_by_band, mark_listed
from .nearest import Listed, lists_of
from .pieces import Groups, sort_by_group
from .ranking import distinct_in_order, in_order, ranked
from .sorting import label_type

#: Lists of up to so many proposals are joined by comparing each with all before it, so many of those at a time.
COMPARED, AT_ONCE = 512, 8

#: Up to so many clusters are all compared with one another: on a GPU that is no more work than to divide them.
ALL_COMPARED = 4096

#: Clusters, others and features of them that a program compares at a time.
COMPARED_ROWS, COMPARED_OTHERS, COMPARED_FEATURES = 64, 128, 16

#: Up to so many clusters have a bit for each of them, so many a number, that says whether it is on a list; of more
#: lists are put in order.
MARKED, MARKS = 4096, 32

#: Places on lists that a program looks at.
LISTED = 1024

#: Warps that make one list of candidates.
JOINING_WARPS = 2

#: Members of a node looked at to find one far from a first.
PROBES = 8

#: What random numbers are for.
CUTS, EXPLORATION = range(2)

#: Values of pools, and of distances between groups, that are in memory at a time.
POOL_VALUES = 1 << 28


class DeviceNeighbourhoods:
    """G_c and the shared candidates, kept up to date as the means move.

    Parameters
    ----------
    n_clusters, n_neighbors, n_candidates, n_explore : int
    seed : int or callable
        What gives it where it may never be asked for.
    device : torch.device

    Attributes
    ----------
    neighbors : (C, G) int32 tensor, itself first
    nearest : (C, L) int32 tensor, itself first, then in order
    candidates : (C, min(C, L + n_explore)) int32 tensor, no cluster twice
    listed : Listed, likewise
    lists : Lists, of the candidates
    """

    def __init__(
        self,
        n_clusters: int,
        n_neighbors: int,
        n_candidates: int,
        n_explore: int,
        seed: int | Callable[[], int],
        device: torch.device,
    ) -> None:
        self.n_explore = n_explore
        self.n_neighbors = n_neighbors
        self.width = min(n_clusters, n_candidates + n_explore)
        self._seed = seed
        self.n_updates = 0
        shape = (n_clusters, n_candidates)
        if n_clusters <= max(self._pool_size(*shape), ALL_COMPARED):  # nobody looks before there is anything
            self.nearest = empty(shape, torch.int32, device)
        else:
            self.nearest = torch.full(shape, -1, dtype=torch.int32, device=device)
        self.neighbors = self.nearest[:, :n_neighbors]
        self.candidates = empty((n_clusters, self.width), torch.int32, device)
        marked = n_clusters <= MARKED
        width = pieces_of(n_clusters, MARKS) if marked else self.width
        self.listed = Listed(empty((n_clusters, width), torch.int32, device), marked)
        self.lists = lists_of(self.candidates)
        self._ahead: tuple[torch.Tensor, int] | None = None

    @property
    def seed(self) -> int:
        """Of its random numbers."""
        if callable(self._seed):
            self._seed = self._seed()
        return self._seed

    @seed.setter
    def seed(self, seed: int) -> None:
        self._seed = seed

    def update_ahead(self, means: torch.Tensor) -> None:
        """Make the next update before it is asked for: the device need not wait for that.

        Nobody must look at anything here before, and it must be asked for with these means, (C, D) float32.
        """
        self._ahead = (means, self.update(means))

    def update(self, means: torch.Tensor) -> int:
        """Find neighbours and candidates for these means (C, D) float32; returns the number of distances computed.

        Linked anew as often as on the CPU: at first, then every few updates.
        """
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead[0] is means:
            return ahead[1]
        linked = self._is_linked_next
        n_evaluations = self._link(means) if linked else 0
        if linked or self.n_explore:
            self._join()
        self.n_updates += 1
        return n_evaluations

    @property
    def _is_linked_next(self) -> bool:
        return self.n_updates < LINKED_AT_FIRST or self.n_updates % LINKED_EVERY == 0

    @property
    def stays(self) -> bool:
        """Whether the next update will leave all as it is, whatever the means."""
        return not self._is_linked_next and self.n_explore == 0

    def _draws(self, purpose: int) -> torch.Generator:
        """Random numbers of this update, for one of several purposes."""
        draws = torch.Generator(self.nearest.device)
        return draws.manual_seed(int(generator(self.seed, self.n_updates, purpose).integers(1 << 62)))

    def state(self) -> dict[str, Any]:
        """All that the next update depends on, on the host."""
        lists = {"neighbors": self.neighbors, "nearest": self.nearest, "candidates": self.candidates}
        if not self.n_updates:  # nobody is known to be near, and nobody looks at the others before the first
            lists = {name: torch.full_like(ids, -1 if name == "nearest" else 0) for name, ids in lists.items()}
        return {**{name: to_host(ids).numpy() for name, ids in lists.items()}, "n_updates": self.n_updates}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        device = self.nearest.device
        self.nearest = torch.from_numpy(state["nearest"]).to(device)
        self.neighbors = self.nearest[:, : self.n_neighbors]
        self.n_updates = state["n_updates"]
        self._take(torch.from_numpy(state["candidates"]).to(device))

    def _link(self, means: torch.Tensor) -> int:
        """Fill `nearest` with the nearest of each cluster's pool."""
        n_clusters, length = self.nearest.shape
        pool_size = self._pool_size(n_clusters, length)
        if n_clusters <= max(pool_size, ALL_COMPARED):
            self._rank_all(means)
            return n_clusters * n_clusters
        depth = math.ceil(math.log2(n_clusters / GROUP_SIZE))
        order = random_cuts(means, depth, self._draws(CUTS))
        groups = leaves(order, depth)
        near = near_groups(means, groups, pool_size)
        step = max(1, POOL_VALUES // (pool_size * means.shape[1]))
        nearest = torch.empty_like(self.nearest)
        for first in range(0, len(groups), step):
            members = groups[first : first + step]
            known = self.nearest[members].transpose(1, 2).reshape(len(members), -1).long()
            others = groups[near[first : first + step]].reshape(len(members), -1)
            pools = distinct_in_order(torch.cat([members, known, others], dim=1), pool_size, n_clusters)
            self._rank_in_pools(means, members, pools, nearest)
        self.nearest = nearest
        self.neighbors = nearest[:, : self.n_neighbors]
        return len(groups) * (len(groups) + groups.shape[1] * pool_size)

    @staticmethod
    def _pool_size(n_clusters: int, length: int) -> int:
        """Clusters among which the nearest are looked for."""
        return min(n_clusters, max(POOL_SIZE, 2 * length))

    def _rank_all(self, means: torch.Tensor) -> None:
        """Fill `nearest` with the nearest of all clusters."""
        n_clusters, length = self.nearest.shape
        step = max(1, POOL_VALUES // n_clusters)  # all are compared with some of them at a time
        nearest = empty((n_clusters, length), torch.int32, means.device)
        for first in range(0, n_clusters, step):
            distances = self._compare_with_all(means, slice(first, min(first + step, n_clusters)))
            ranked(distances, length, nearest[first : first + step])
        self.nearest = nearest
        self.neighbors = nearest[:, : self.n_neighbors]

    def _compare_with_all(self, means: torch.Tensor, some: slice) -> torch.Tensor:
        """What some clusters rank all by, (s, C) float32: less is nearer, and themselves come first of all."""
        n_clusters, n_rows = means.shape[0], some.stop - some.start
        distances = empty((n_rows, n_clusters), torch.float32, means.device)
        compare_all[(pieces_of(n_rows, COMPARED_ROWS), pieces_of(n_clusters, COMPARED_OTHERS))](
            means, means.stride(0), some.start, n_rows, n_clusters, distances, ROWS=COMPARED_ROWS,
            OTHERS=COMPARED_OTHERS, FEATURES=COMPARED_FEATURES,
        )  # fmt: skip
        return distances

    def _rank_in_pools(
        self, means: torch.Tensor, members: torch.Tensor, pools: torch.Tensor, out: torch.Tensor
    ) -> None:
        """The nearest of the pool (g, p) for all members (g, s) of some groups, itself first; -1 is nobody."""
        distances = self._compare(means, members.clamp(min=0), pools.clamp(min=0))
        distances.masked_fill_((pools < 0).unsqueeze(1), torch.inf)
        # It comes first, even among others in the same place.
        distances.masked_fill_(pools.unsqueeze(1) == members.unsqueeze(2), -torch.inf)
        places = ranked(distances, out.shape[1])
        found = torch.gather(pools.unsqueeze(1).expand(-1, members.shape[1], -1), 2, places).to(torch.int32)
        inside = members >= 0
        out[members[inside]] = found[inside]

    def _compare(self, means: torch.Tensor, members: torch.Tensor, pools: torch.Tensor) -> torch.Tensor:
        """What members (g, s) rank the clusters of their pools (g, p) by, (g, s, p) float32: less is nearer."""
        origin = means[members[:, :1]]
        rows, centres = means[members] - origin, means[pools] - origin
        squares = torch.linalg.vecdot(centres, centres).unsqueeze(1)
        # Less the square of the row itself: that changes no ranking.
        return torch.baddbmm(squares, rows, centres.transpose(1, 2), alpha=-2)

    def _join(self) -> None:
        """Candidates: the search space of the paper, the nearest, followers, then random ones."""
        n_clusters, length = self.nearest.shape
        room = int(FOLLOWERS * length)
        if self.width > length:
            candidates = joined(self.nearest, self.n_neighbors, room)
            self._take(with_random(candidates, self.width, n_clusters, self._draws(EXPLORATION)))
        else:
            self._take(joined(self.nearest, self.n_neighbors, room, self.candidates))

    def _take(self, candidates: torch.Tensor) -> None:
        if candidates is not self.candidates:
            self.candidates.copy_(candidates)
        table = self.listed.table
        if self.listed.marked:
            (n_clusters, length), n_words = self.candidates.shape, table.shape[1]
            mark_listed[(n_clusters,)](
                self.candidates, length, n_words, table, COUNT=power_of_two(length), WORDS=power_of_two(n_words)
            )
        else:
            ordered, _ = in_order(self.candidates, out=table)
            if ordered is not table:
                table.copy_(ordered)


def random_cuts(means: torch.Tensor, depth: int, draws: torch.Generator) -> torch.Tensor:
    """Clusters in an order in which each of 2^depth runs of equal length holds neighbours, (C,) int64.

    Every node of a tree halves its clusters at the median of their projections onto the line between two of them
    that lie far apart, all nodes of a level at once.
    """
    n_clusters = len(means)
    device = means.device
    order = torch.arange(n_clusters, device=device)
    place = torch.arange(n_clusters, device=device)
    for level in range(depth):
        n_nodes = 1 << level
        low = n_clusters * torch.arange(n_nodes + 1, device=device) // n_nodes
        size = low.diff()
        node = torch.searchsorted(low, place, right=True) - 1
        pick = (torch.rand(n_nodes, generator=draws, device=device) * size).long().clamp(max=n_clusters)
        pick = torch.minimum(pick, size - 1)
        probes = pick.unsqueeze(1) + 1 + torch.arange(PROBES, device=device) * size.unsqueeze(1) // PROBES
        others = order[low[:-1].unsqueeze(1) + probes % size.unsqueeze(1)]
        a = means[order[low[:-1] + pick]]
        farthest = ((means[others] - a.unsqueeze(1)) ** 2).sum(2).argmax(1, keepdim=True)
        direction = means[others.gather(1, farthest).squeeze(1)] - a
        keys = (means[order] * direction[node]).sum(1)
        by_key = torch.argsort(keys, stable=True)
        order = order[by_key[torch.argsort(node[by_key], stable=True)]]
    return order


def leaves(order: torch.Tensor, depth: int) -> torch.Tensor:
    """The runs of `random_cuts` as a table (2^depth, longest run), -1 where a run is shorter."""
    n_clusters, n_groups = len(order), 1 << depth
    start = n_clusters * torch.arange(n_groups + 1, device=order.device) // n_groups
    longest = -(-n_clusters // n_groups)
    places = start[:-1].unsqueeze(1) + torch.arange(longest, device=order.device)
    inside = places < start[1:].unsqueeze(1)
    return torch.where(inside, order[places.clamp(max=n_clusters - 1)], -1)


def near_groups(means: torch.Tensor, groups: torch.Tensor, pool_size: int) -> torch.Tensor:
    """For every group itself and those whose centroids are nearest, enough to fill a pool, (n_groups, k) int64."""
    n_groups = len(groups)
    wanted = min(n_groups, math.ceil(pool_size / max(1, len(means) // n_groups)) + 1)
    inside = (groups >= 0).unsqueeze(2)
    centroids = torch.empty((n_groups, means.shape[1]), device=means.device)
    step = max(1, POOL_VALUES // (groups.shape[1] * means.shape[1]))
    for first in range(0, n_groups, step):
        part = slice(first, first + step)
        rows = means[groups[part].clamp(min=0)] * inside[part]
        centroids[part] = rows.sum(1) / inside[part].sum(1)
    squares = (centroids * centroids).sum(1)
    near = torch.empty((n_groups, wanted), dtype=torch.int64, device=means.device)
    step = max(1, POOL_VALUES // n_groups)
    for first in range(0, n_groups, step):
        part = slice(first, first + step)
        distances = squares[part].unsqueeze(1) + squares - 2 * (centroids[part] @ centroids.T)
        near[part] = ranked(distances.clamp_(min=0), wanted)
    return near


def joined(nearest: torch.Tensor, n_neighbors: int, room: int, out: torch.Tensor | None = None) -> torch.Tensor:
    """Candidates from lists (C, L) int32, as many: itself, neighbours of neighbours, the nearest, some followers.

    Parameters
    ----------
    nearest : (C, L) int32 tensor, itself first, then in order
    n_neighbors : int
    room : int
        Followers that come before as many of those that are listed last.
    out : (C, L) int32 tensor, optional
        Where they may be put.
    """
    n_clusters, length = nearest.shape
    n_places = 1 + n_neighbors * n_neighbors + length + room
    if n_places <= COMPARED:
        groups = follower_groups(nearest)
        candidates = torch.empty_like(nearest) if out is None else out
        proposals = empty((n_clusters, n_places), torch.int32, nearest.device)
        join_lists[(n_clusters,)](
            nearest, groups.order, groups.start, n_clusters, length, n_neighbors, room, n_places, proposals,
            candidates, BAND=BAND, PLACES=power_of_two(n_places), COUNT=power_of_two(length),
            AT_ONCE=min(AT_ONCE, power_of_two(n_places)), num_warps=JOINING_WARPS,
        )  # fmt: skip
        return candidates
    neighbors = nearest[:, :n_neighbors]
    every = [
        torch.arange(n_clusters, dtype=torch.int32, device=nearest.device).unsqueeze(1),
        neighbors[neighbors].reshape(n_clusters, -1),
        nearest[:, : length - room],
        followers_of(nearest, room),
        nearest[:, length - room :],
    ]
    return distinct_in_order(torch.cat(every, dim=1), length, n_clusters)


def follower_groups(nearest: torch.Tensor) -> Groups:
    """Places in lists (C, L) int32, without those of the cluster itself, by who is listed there.

    Band by band, and within a band follower by follower: in this order followers come to their places.
    """
    n_clusters, length = nearest.shape
    n_places = length - 1 + -(length - 1) % BAND
    n_listed = n_clusters * n_places
    listed = empty((n_listed,), label_type(n_clusters), nearest.device)
    if n_listed:
        list_by_band[(pieces_of(n_listed, LISTED),)](
            nearest, n_clusters, length, n_listed, listed, BAND=BAND, PLACES=LISTED
        )
    return sort_by_group(listed, n_clusters)


def followers_of(nearest: torch.Tensor, room: int) -> torch.Tensor:
    """For every cluster those that have it high on their own lists (C, L) int32, the highest first; -1: none."""
    n_clusters, length = nearest.shape
    if room == 0 or length < 2:
        return torch.full((n_clusters, room), -1, dtype=torch.int32, device=nearest.device)
    groups = follower_groups(nearest)
    places = groups.start[:-1].unsqueeze(1) + torch.arange(room, device=nearest.device)
    found = groups.order[places.clamp(max=len(groups.order) - 1)]
    followers = torch.div(found, BAND, rounding_mode="floor") % n_clusters
    return torch.where(places < groups.start[1:].unsqueeze(1), followers, -1).to(torch.int32)


def with_random(candidates: torch.Tensor, width: int, n_clusters: int, draws: torch.Generator) -> torch.Tensor:
    """Candidates (C, L) filled up to `width` with random clusters that are not among them."""
    n_rows, length = candidates.shape
    missing = width - length
    drawn = torch.randint(n_clusters, (n_rows, missing), generator=draws, device=candidates.device)
    # Where a drawn one is known already, one of the clusters after it is not: as many as could be known are tried.
    tries = (drawn.unsqueeze(2) + torch.arange(width, device=candidates.device)) % n_clusters
    tries = tries.transpose(1, 2).reshape(n_rows, -1)
    return distinct_in_order(torch.cat([candidates, tries], dim=1), width, n_clusters)
