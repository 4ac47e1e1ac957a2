"""Clusters are taken from where they are missed least, and put where they are needed most.

EM hardly changes how many clusters a region has: means go where near points are.  Before it begins that can be
mended.  Without cluster c its points would go to their second nearest, at a loss of

    L_c = sum_{n in I_c} gamma_n (d_n2^2 - d_n1^2),

and c split in two would gain what a 2-means inside it lowers the error by.  As long as the largest gain is larger
than the smallest loss, the one is split in two and the other becomes its second half.  None of the two, nor any
cluster that takes over points, is part of another move: losses and gains add up, and the error falls with each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from ...kernels.seeding.moves import pair_moves
from ...kernels.seeding.rivals import two_nearest
from ...kernels.seeding.totals import add_by_label
from ...parallel import MOVING, Workers
from ..cells.neighbourhoods import sort_by_cluster
from .inside_cells import cluster_inside, seed_inside
from .narrowing import taken_from

#: Share of the clusters, those with the largest errors, that are split to see what it gains.
TRIED = 0.25

#: Rows of a cluster that each half looks at in Lloyd steps, and how many steps there are.
SAMPLE = 64
STEPS = 6

#: Points whose distances are at hand at a time; more, where there are more clusters than a sixteenth of that.
AT_ONCE = 1 << 16


@runtime_checkable
class Relocating(Protocol):
    """A search that can move clusters."""

    def relocate(self, means: np.ndarray, rng: np.random.Generator) -> Relocated:
        """Move clusters with these means, by the winners of the last E-step, to where more are needed."""
        ...


@dataclass(frozen=True)
class Relocated:
    """Clusters after some of them have been moved.

    Attributes
    ----------
    means : (C, D) float64
    error : float
        Weighted sum of the squared distances to the nearest cluster of every point, as far as it is known.
    gained : float
        By how much that is less than before.
    n_moved : int
        Clusters that are somewhere else now …
    n_points : int
        … and points that have another cluster for it.
    n_evaluations : int
        Distances computed.
    """

    means: np.ndarray
    error: float
    gained: float
    n_moved: int
    n_points: int
    n_evaluations: int


def relocate(
    points: np.ndarray,
    weights: np.ndarray,
    pairs: np.ndarray,
    errors: np.ndarray,
    losses: np.ndarray,
    means: np.ndarray,
    rng: np.random.Generator,
    workers: Workers,
    room: np.ndarray,
) -> Relocated:
    """Move clusters to where they lower the error more.

    Parameters
    ----------
    points : (N', D) float32 or float64
    weights : (N',) float64
    pairs : (N', 2) int32
        The cluster of each point and its rival, -1 where there is none; or (N', 1), and nobody has one.  In the
        end the first is the nearest as far as it is known, and there is no second.
    errors, losses : (C,) float64
        From `errors_and_losses`.
    means : (C, D) float64
    rng : numpy Generator
    workers : Workers
    room : (n,) int32
        Memory for arrays as long as the points, if there is any.
    """
    n_clusters = len(means)
    order, start = sort_by_cluster(pairs, n_clusters, workers)
    tried = np.argsort(-errors, kind="stable")[: max(1, int(TRIED * n_clusters))]
    halves = split_in_two(points, weights, order, start, tried, rng, workers, room)
    gains = errors[halves.cells] - halves.errors
    rivals = pairs[:, pairs.shape[1] - 1]

    def members(cluster: int) -> np.ndarray:
        return order[start[cluster] : start[cluster + 1]]

    takers = room[: len(order)] if len(room) >= len(order) else np.empty_like(order, np.int32)
    for low in range(0, len(order), AT_ONCE):  # NumPy copies both for as many as are looked up at once
        takers[low : low + AT_ONCE] = rivals[order[low : low + AT_ONCE]]
    removed, split = choose_moves(losses, halves.cells, gains, start, takers)
    means, n_points = means.copy(), 0
    for cluster, place in zip(removed.tolist(), split.tolist(), strict=True):
        kept = halves.cells[place]
        gone, stay = members(cluster), members(kept)
        come = stay[halves.nearer[stay] == 2 * place + 1]
        pairs[gone, 0], pairs[come, 0] = rivals[gone], cluster
        n_points += len(gone) + len(come)
        means[kept], means[cluster] = halves.centres[place]
    pairs[:, 1:] = -1
    gained = float(gains[split].sum() - losses[removed].sum())
    return Relocated(means, float(errors.sum()) - gained, gained, len(removed), n_points, halves.n_evaluations)


def errors_and_losses(
    points: np.ndarray, weights: np.ndarray, winners: np.ndarray, means: np.ndarray, workers: Workers
) -> tuple[np.ndarray, np.ndarray]:
    """Weighted squared error of every cluster, and L_c; (C,) float64 each.

    Winners (N', C') are changed: the first is the nearest of those looked at, the second the second nearest.
    """
    n_clusters, used = len(means), means.astype(points.dtype)
    step = max(AT_ONCE, 16 * n_clusters)
    distances = np.empty((2, min(step, len(points))), points.dtype)
    errors, losses, nowhere = np.zeros((3, n_clusters))
    for low in range(0, len(points), step):
        some, known = points[low : low + step], winners[low : low + step]

        def work(_thread: int, first: int, last: int, some: np.ndarray = some, known: np.ndarray = known) -> None:
            two_nearest(first, last, some, known, used, distances)

        workers.run(work, len(some), MOVING * known.shape[1] * some.size)
        near, far = distances[:, : len(some)]
        add_by_label(known, weights[low : low + step], near, errors, nowhere)
        far -= near
        add_by_label(known, weights[low : low + step], far, losses, nowhere)
    return errors, losses


@dataclass(frozen=True)
class Halves:
    """Clusters split in two.

    Attributes
    ----------
    cells : (k,) int64
        Which.
    centres : (k, 2, D) float64
    errors : (k,) float64
        Weighted squared error of the points of both halves; infinite where one has none.
    nearer : (N',) int32
        2 i or 2 i + 1 for the points of cells[i]: the first half or the second.
    n_evaluations : int
    """

    cells: np.ndarray
    centres: np.ndarray
    errors: np.ndarray
    nearer: np.ndarray
    n_evaluations: int


def split_in_two(
    points: np.ndarray,
    weights: np.ndarray,
    order: np.ndarray,
    start: np.ndarray,
    tried: np.ndarray,
    rng: np.random.Generator,
    workers: Workers,
    room: np.ndarray,
) -> Halves:
    """Split clusters in two by a small k-means inside each; those whose points are all the same are left out.

    Parameters
    ----------
    points, weights, rng, workers, room : as in `relocate`
    order, start
        From `sort_by_cluster`.
    tried : (k,) int64
        Clusters.
    """
    n_clusters = len(start) - 1
    wanted = np.zeros(n_clusters, np.int64)
    wanted[tried] = np.where(np.diff(start)[tried] > 1, 2, 0)
    seeds, _, _, n_evaluations = seed_inside(points, weights, order, start, wanted, rng, workers)
    pairs = seeds.reshape(-1, 2)
    differ = pairs[:, 1] >= 0
    cells, pairs = np.flatnonzero(wanted)[differ], pairs[differ]
    centre_start = np.zeros(n_clusters + 1, np.int64)
    centre_start[cells + 1] = 2
    np.cumsum(centre_start, out=centre_start)
    distances, nearer = taken_from(room, len(points), points.dtype)
    distances[:], nearer[:] = 0, -1
    centres, more = cluster_inside(
        points, weights, order, start, pairs.ravel(), centre_start, SAMPLE, STEPS, nearer, distances, workers,
        label=True,
    )  # fmt: skip
    sums, masses = np.zeros((2, 2 * len(cells)))
    add_by_label(nearer[:, None], weights, distances, sums, masses)
    errors = sums.reshape(-1, 2).sum(axis=1)
    errors[(masses.reshape(-1, 2) == 0).any(axis=1)] = np.inf
    return Halves(cells, centres.reshape(-1, 2, points.shape[1]), errors, nearer, n_evaluations + more)


def choose_moves(
    losses: np.ndarray, cells: np.ndarray, gains: np.ndarray, start: np.ndarray, takers: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Which clusters are taken away, and which are split instead.

    Parameters
    ----------
    losses : (C,) float64
        What taking each away would add to the error; infinite where it cannot be.
    cells : (k,) int64
        Clusters that can be split.
    gains : (k,) float64
        What that would take from the error.
    start : (C + 1,) int64
        Where the takers of each cluster begin.
    takers : (n,) int32
        Clusters that would take over the points of one, as often as may be.

    Returns
    -------
    removed : (n_moves,) int64
        Clusters.
    split : (n_moves,) int64
        For each of them a place in `cells`.
    """
    cheapest, dearest = np.argsort(losses, kind="stable"), np.argsort(-gains, kind="stable")
    moves = np.empty((2, len(cells)), np.int64)
    n_moves = pair_moves(
        cheapest, losses[cheapest], start[cheapest], start[cheapest + 1], takers, cells[dearest], gains[dearest],
        np.zeros(len(losses), np.bool_), moves,
    )  # fmt: skip
    return cheapest[moves[0, :n_moves]], dearest[moves[1, :n_moves]]
