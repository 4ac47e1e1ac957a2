"""Cells: the points of each cluster, the clusters near each cluster, and the candidates their points share."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...kernels.cells.grouping import random_cuts
from ...kernels.cells.links import link_groups
from ...kernels.cells.neighbors import join_neighbourhoods, turn_round
from ...kernels.cells.sorting import RUNS, begin_labels, count_labels, place_points
from ...parallel import MOVING, Workers
from ..places import place_type
from ..random import generator, random_clusters
from .few_clusters import order_of_all
from .natural import Natural

#: Clusters in a group that shares one pool, and clusters in the pool.
GROUP_SIZE = 32
POOL_SIZE = 1024

#: Up to so many clusters are put in order by NumPy where all are candidates of all.
FEW = 256

#: Share of a list that followers may take.
FOLLOWERS = 0.5

#: E-steps at the start that each link the clusters anew, and which of the later ones do.
LINKED_AT_FIRST = 2
LINKED_EVERY = 4

#: Effort for every candidate on a list when lists are joined.
JOINING = 128

#: Threads sort parts of at least so many points, and of so many for every counter that a part needs.
SORTED_APART = 3 << 16
POINTS_PER_COUNTER = 4

#: A cell with more points is searched in several tasks.
POINTS_PER_TASK = 2048


def sort_by_cluster(
    labels: np.ndarray, n_clusters: int, workers: Workers | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The partition I_c: members of cluster c are order[start[c]:start[c + 1]], in the order they came.

    Parameters
    ----------
    labels : (N',) or (N', C') int32
        Of winners, the first.
    n_clusters : int
    workers : Workers, optional
        The order is the same with any number of threads.

    Returns
    -------
    order : (N',) of `place_type`
    start : (C + 1,) int64
    """
    order = np.empty(len(labels), place_type(len(labels)))
    start = np.empty(n_clusters + 1, np.int64)
    rows = np.ascontiguousarray(labels if labels.ndim == 2 else labels[:, None])  # compiled for these
    worth = len(rows) // max(SORTED_APART, POINTS_PER_COUNTER * RUNS * n_clusters)
    n_parts = 1 if workers is None else max(1, min(worth, workers.n_threads))
    counts = np.empty((n_parts, n_clusters, RUNS), order.dtype)

    def count(_thread: int, first: int, last: int) -> None:
        count_labels(first, last, rows, counts)

    def place(_thread: int, first: int, last: int) -> None:
        place_points(first, last, rows, counts, order)

    if workers is None:
        count(0, 0, n_parts)
        begin_labels(counts, start)
        place(0, 0, n_parts)
    else:
        workers.run(count, n_parts)
        begin_labels(counts, start)
        workers.run(place, n_parts)
    return order, start


def cut_into_tasks(start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pieces of work: runs of at most POINTS_PER_TASK points of one cell, cut by the data alone.

    Returns
    -------
    task_cell : (n_tasks,) int32
    task_start : (n_tasks + 1,) int64
    """
    sizes = np.diff(start)
    if len(sizes) and sizes.max() <= POINTS_PER_TASK:  # of small cells, as most are, each is one
        cells = np.flatnonzero(sizes)
        return cells.astype(np.int32), np.append(start[cells], start[-1])
    pieces = -(-sizes // POINTS_PER_TASK)
    cells = np.repeat(np.arange(len(sizes)), pieces)
    piece = np.arange(len(cells)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    begins = start[cells] + sizes[cells] * piece // np.maximum(pieces[cells], 1)
    return cells.astype(np.int32), np.append(begins, start[-1])


class Neighbourhoods:
    """G_c and the shared candidates, kept up to date as the means move.

    The candidates of a cluster hold the union of G_c' over c' in G_c, which is the paper's search space of a
    point whose winners are G_c, the nearest others, and clusters that have this one high on their own lists,
    `n_candidates` in all, then `n_explore` random ones.
    G_c ranks clusters by mean cost over its members: where they share a variance by the distance between means, up
    to a constant (the paper averages distances).

    Parameters
    ----------
    n_clusters, n_neighbors, n_candidates, n_explore : int
    seed : int
    workers : Workers
    """

    def __init__(
        self,
        n_clusters: int,
        n_neighbors: int,
        n_candidates: int,
        n_explore: int,
        seed: int,
        workers: Workers,
    ) -> None:
        width = min(n_clusters, n_candidates + n_explore)
        self.neighbors = np.zeros((n_clusters, n_neighbors), np.int32)
        self.nearest = np.full((n_clusters, n_candidates), -1, np.int32)
        self.candidates = np.zeros((n_clusters, width), np.int32)
        self.n_explore = n_explore
        self.seed = seed
        self.workers = workers
        self.n_updates = 0

    def update(self, natural: Natural) -> int:
        """Find neighbours and candidates for these clusters; returns the number of costs computed.

        Means move little after the first iterations: from then on they are linked anew now and then.
        """
        update = self.n_updates
        linked = update < LINKED_AT_FIRST or update % LINKED_EVERY == 0
        self.n_updates += 1
        if self.nearest.shape[1] == len(self.nearest) <= FEW:
            return self._link_all(natural) if linked else 0
        rng = generator(self.seed, update)
        n_evaluations = self._link(natural, rng) if linked else 0
        if linked or self.n_explore:
            self.join(rng)
        return n_evaluations

    def link_anew(self) -> None:
        """Let the next update find all neighbours anew."""
        self.n_updates += -self.n_updates % LINKED_EVERY

    def begin_anew(self) -> None:
        """Link as at first, from what is known: clusters are compared in another way from now on."""
        self.n_updates = 0
        self.seed += 1

    def state(self) -> dict[str, Any]:
        """All that the next update depends on, as `Search.state` has it."""
        return {
            "neighbors": self.neighbors,
            "nearest": self.nearest,
            "candidates": self.candidates,
            "n_updates": self.n_updates,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.neighbors, self.nearest = state["neighbors"], state["nearest"]
        self.candidates, self.n_updates = state["candidates"], state["n_updates"]

    def _link_all(self, natural: Natural) -> int:
        """Lists that have room for all clusters."""
        order = order_of_all(natural)
        self.neighbors[:] = order[:, : self.neighbors.shape[1]]
        self.nearest[:] = self.candidates[:] = order
        return order.size

    def _link(self, natural: Natural, rng: np.random.Generator) -> int:
        means, n_clusters = natural.means, len(natural.means)
        pool_size = min(n_clusters, max(POOL_SIZE, 2 * self.nearest.shape[1]))
        depth = max(0, math.ceil(math.log2(n_clusters / GROUP_SIZE)))
        n_groups = 1 << depth
        order = np.arange(n_clusters, dtype=np.int32)
        if pool_size < n_clusters:
            self._cut(means, rng.random(n_groups), depth, order)
        start = n_clusters * np.arange(n_groups + 1) // n_groups
        near_groups, n_evaluations = self._near_groups(means, order, start, pool_size)
        # A pool of all clusters needs no memory of earlier ones.
        known = self.nearest if pool_size < n_clusters else np.empty((n_clusters, 0), np.int32)
        counts = np.empty(n_groups, np.int64)

        def link(_thread: int, first: int, last: int) -> None:
            link_groups(
                first, last, start, order, near_groups, known, pool_size, means, natural.variances,
                natural.precisions, natural.offsets, self.neighbors, self.nearest, counts,
            )  # fmt: skip

        # A group looks up what its own clusters know, then writes over it.
        self.workers.run(link, n_groups, means.size * pool_size)
        return n_evaluations + int(counts.sum())

    def _cut(self, means: np.ndarray, uniforms: np.ndarray, depth: int, order: np.ndarray) -> None:
        """Put clusters that lie near each other next to each other, level by level."""
        for level in range(depth):

            def cut(_thread: int, first: int, last: int, level: int = level) -> None:
                random_cuts(first, last, level, means, uniforms, order)

            self.workers.run(cut, 1 << level, MOVING * means.size)

    def join(self, rng: np.random.Generator) -> None:
        """Make candidates of the lists of neighbours that there are."""
        n_clusters = len(self.neighbors)
        explored = random_clusters((n_clusters, self.n_explore), n_clusters, rng)
        room = int(FOLLOWERS * self.nearest.shape[1])
        followers = np.empty((n_clusters, room + 1), np.int32)
        counts = np.empty(n_clusters, np.int32)
        turn_round(self.nearest, followers, counts)

        def join(_thread: int, first: int, last: int) -> None:
            join_neighbourhoods(
                first, last, self.neighbors, self.nearest, followers, counts, explored, self.candidates
            )

        self.workers.run(join, n_clusters, JOINING * self.candidates.size)

    def _near_groups(
        self, means: np.ndarray, order: np.ndarray, start: np.ndarray, pool_size: int
    ) -> tuple[np.ndarray, int]:
        """For every group, itself and the groups whose centroids are nearest, enough of them to fill a pool."""
        n_groups = len(start) - 1
        wanted = min(n_groups, math.ceil(pool_size / max(1, len(means) // n_groups)) + 1)
        if wanted == n_groups:
            return np.tile(np.arange(n_groups, dtype=np.int32), (n_groups, 1)), 0
        centroids = np.add.reduceat(means[order], start[:-1], axis=0) / np.diff(start)[:, None].astype(means.dtype)
        squares = np.einsum("gd,gd->g", centroids, centroids)
        near = np.empty((n_groups, wanted), np.int32)

        step = max(1, (1 << 18) // n_groups)  # fixed blocks: the same products for any number of threads

        def rank(_thread: int, first: int, last: int) -> None:
            for low in range(first * step, min(last * step, n_groups), step):
                distances = squares - 2 * (centroids[low : low + step] @ centroids.T)
                near[low : low + step] = np.argpartition(distances, wanted - 1, axis=1)[:, :wanted]

        self.workers.run(rank, -(-n_groups // step))
        return near, n_groups * n_groups
