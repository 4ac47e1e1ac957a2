"""Seeding on weighted points: AFK-MC^2, D^2 sampling (k-means++) and random points.

All three return points of the data, and no point twice while there are others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...kernels.seeding.chains import lower_distances, run_chains
from ...parallel import Workers
from ..coreset.lightweight import row_hashes
from ..nearest import nearest

#: Markov chains run together: their distances to all earlier centres are one matrix product.
CHAINS = 128

#: Draws by which a chain goes on that has met nothing but centres, at first; twice as many each time.
MORE_DRAWS = 8

#: Points whose distances one task of D^2 sampling updates.
POINTS_PER_TASK = 1024


@dataclass
class Start:
    """Where EM begins.

    Attributes
    ----------
    means : (C, D) float64
    labels : (N',) int32
        A near cluster of every point: the nearest as far as the start knows.
    error : float
        Weighted sum of the squared distances to it.
    n_evaluations : int
        Distances computed.
    movable : bool
        Clusters may be moved to where more are needed before EM begins.
    rows : (N',) int or None
        The points lie in the order of these rows of the coreset; None: in its own.  Labels are in the coreset's.
    """

    means: np.ndarray
    labels: np.ndarray
    error: float
    n_evaluations: int
    movable: bool = False
    rows: np.ndarray | None = None


@dataclass
class Seeds:
    """Rows chosen as centres, (C,) int64, and the number of distances computed to choose them."""

    indices: np.ndarray
    n_evaluations: int


def assign(points: np.ndarray, weights: np.ndarray, means: np.ndarray, workers: Workers) -> Start:
    """Start from given means (C, D) float64: every point goes to its nearest, found exactly."""
    labels, distances = nearest(points, means, workers)
    error = float(np.dot(weights, distances.astype(np.float64)))
    return Start(means, labels, error, len(points) * len(means))


def draw_one(masses: np.ndarray, uniform: float) -> int:
    """Index drawn with probability proportional to `masses`, never one of mass 0."""
    running = np.cumsum(masses)
    place = int(np.searchsorted(running, uniform * running[-1], side="right"))
    return place if place < len(masses) and masses[place] > 0 else int(np.flatnonzero(masses)[-1])


def d2_masses(points: np.ndarray, weights: np.ndarray, centres: np.ndarray, workers: Workers) -> np.ndarray:
    """Gamma d^2 of every point, d the distance to the nearest centre; exactly 0 for the centres themselves."""
    _, distances = nearest(points, centres, workers)
    masses: np.ndarray = weights * distances.astype(np.float64)
    return masses


def afkmc2(
    points: np.ndarray,
    weights: np.ndarray,
    n_clusters: int,
    chain_length: int,
    rng: np.random.Generator,
    workers: Workers,
    advance: Callable[[int], None],
) -> Seeds:
    """AFK-MC^2 (Bachem et al. 2016): approximates D^2 sampling by short Markov chains.

    The proposal q = (gamma d_1^2 / sum + gamma / sum) / 2, d_1 the distance to the first centre, never changes:
    all proposals are drawn at once, and the distances of a batch of chains to the centres before it are one
    product.

    Parameters
    ----------
    points : (N', D) float32 or float64
    weights : (N',) float64
    n_clusters : int
    chain_length : int
        m; the first draw counts.
    rng : numpy Generator
    workers : Workers
    advance : callable
        Told how many centres have been found since the last call.
    """
    indices = np.empty(n_clusters, np.int64)
    indices[0] = draw_one(weights, rng.random())
    advance(1)
    first_masses = d2_masses(points, weights, points[indices[:1]], workers)
    share = weights / weights.sum()
    spread = first_masses.sum()
    proposal = 0.5 * first_masses / spread + 0.5 * share if spread > 0 else share
    running = np.cumsum(proposal)
    last = int(np.flatnonzero(proposal)[-1])
    shape = (n_clusters - 1, chain_length)
    proposals = np.minimum(np.searchsorted(running, rng.random(shape) * running[-1], side="right"), last)
    uniforms = rng.random(shape)
    potential = weights / np.where(proposal > 0, proposal, 1.0)
    n_evaluations = len(points)
    centres = np.empty((n_clusters, points.shape[1]), points.dtype)
    centres[0] = points[indices[0]]
    for begin in range(0, n_clusters - 1, CHAINS):
        batch = slice(begin, min(begin + CHAINS, n_clusters - 1))
        drawn = proposals[batch]
        rows = points[drawn.ravel()]
        _, distances = nearest(rows, centres[: begin + 1], workers)
        places = np.empty(len(drawn), np.int64)
        run_chains(
            rows, potential[drawn], distances.astype(np.float64).reshape(drawn.shape), uniforms[batch], places
        )
        chosen = np.where(places >= 0, drawn.ravel()[places], -1)
        n_evaluations += drawn.size * (begin + 1) + chain_length * len(drawn) * (len(drawn) - 1) // 2
        indices[begin + 1 : begin + 1 + len(drawn)] = chosen
        for place in begin + 1 + np.flatnonzero(chosen < 0):  # a chain that met nothing but centres
            found = np.concatenate([indices[:place], chosen[place - begin :]])
            known = points[found[found >= 0]]
            indices[place], n_more = _go_on(points, weights, running, last, known, rng, workers)
            n_evaluations += n_more
        new = slice(begin + 1, begin + 1 + len(drawn))
        centres[new] = points[indices[new]]
        advance(len(drawn))
    return Seeds(indices, n_evaluations)


def _go_on(
    points: np.ndarray,
    weights: np.ndarray,
    running: np.ndarray,
    last: int,
    centres: np.ndarray,
    rng: np.random.Generator,
    workers: Workers,
) -> tuple[int, int]:
    """Where a Markov chain comes to that has met nothing but centres, and the distances computed on the way.

    It leaves a centre for whatever is none: the first such draw from the proposal, given by its running sum.  Once
    it would cost as much, a draw from D^2 itself.
    """
    size, n_drawn = MORE_DRAWS, 0
    while n_drawn + size < len(points):
        drawn = np.minimum(np.searchsorted(running, rng.random(size) * running[-1], side="right"), last)
        _, distances = nearest(points[drawn], centres, workers)
        n_drawn += size
        if distances.any():
            return int(drawn[np.flatnonzero(distances)[0]]), n_drawn * len(centres)
        size *= 2
    masses = d2_masses(points, weights, centres, workers)
    place = draw_one(masses if masses.any() else weights, rng.random())
    return place, (n_drawn + len(points)) * len(centres)


def kmeans_plus_plus(
    points: np.ndarray,
    weights: np.ndarray,
    n_clusters: int,
    rng: np.random.Generator,
    workers: Workers,
    advance: Callable[[int], None],
) -> Seeds:
    """Plain D^2 sampling: each centre is drawn with probability proportional to gamma d^2 to the nearest so far.

    Parameters as in `afkmc2`.
    """
    indices = np.empty(n_clusters, np.int64)
    distances = np.full(len(points), np.inf, points.dtype)
    masses = weights
    n_tasks = -(-len(points) // POINTS_PER_TASK)
    for c in range(n_clusters):
        indices[c] = pick = draw_one(masses if masses.any() else weights, rng.random())

        def update(_thread: int, first: int, last: int, pick: int = int(pick)) -> None:
            end = min(last * POINTS_PER_TASK, len(points))
            lower_distances(first * POINTS_PER_TASK, end, points, pick, distances)

        workers.run(update, n_tasks)
        masses = weights * distances
        advance(1)
    return Seeds(indices, n_clusters * len(points))


def random_points(points: np.ndarray, weights: np.ndarray, n_clusters: int, rng: np.random.Generator) -> Seeds:
    """Different points, drawn without replacement with probability proportional to their weights."""
    # Exponential races: the smallest of E / gamma come first (Efraimidis and Spirakis 2006).
    order = np.argsort(rng.standard_exponential(len(points)) / weights, kind="stable")
    _, firsts = np.unique(row_hashes(points)[order], return_index=True)
    places = np.sort(firsts)
    repeated = np.setdiff1d(np.arange(len(order)), places)
    return Seeds(order[np.concatenate([places, repeated])[:n_clusters]], 0)
