"""The candidates that all points of a cluster search: clusters near it, and those that have it near."""

from __future__ import annotations

import numpy as np

from ..jit import kernel

#: Ranks looked at together when lists are turned round: as many as share a line of cache.
BAND = 16


@kernel
def turn_round(nearest: np.ndarray, followers: np.ndarray, counts: np.ndarray) -> None:
    """For every cluster those that have it high on their own lists, the highest first.

    Nothing is asked that a processor would have to guess: what there is no room for is written where nobody looks.
    Threads would not help: each would have to read all lists.

    Parameters
    ----------
    nearest : (C, L) int32, IN, itself first, then roughly in order
    followers : (C, room + 1) int32, OUT, the last column is of no use
    counts : (C,) int32, OUT, how many places of `followers` are filled, at most room
    """
    n_clusters, n_nearest = nearest.shape
    room = np.int32(followers.shape[1] - 1)
    counts[:] = 0
    for band in range(1, n_nearest, BAND):
        for follower in range(n_clusters):
            for k in range(band, min(band + BAND, n_nearest)):
                cluster = nearest[follower, k]
                place = counts[cluster]
                followers[cluster, place] = follower
                counts[cluster] = place + np.int32(place < room)


@kernel
def join_neighbourhoods(
    first: int,
    last: int,
    neighbors: np.ndarray,
    nearest: np.ndarray,
    followers: np.ndarray,
    counts: np.ndarray,
    explored: np.ndarray,
    candidates: np.ndarray,
) -> None:
    """Candidates of clusters first..last-1: their search space, the nearest, followers, then random ones.

    The union of G_c' over c' in G_c is the paper's search space G(n) of a point whose winners are G_c.  Then come
    the nearest, but as many places as there could be followers are left to these first.

    Parameters
    ----------
    neighbors : (C, G) int32, IN
    nearest : (C, L) int32, IN
    followers : (C, room + 1) int32, IN, from `turn_round`
    counts : (C,) int32, IN
    explored : (C, n_explore) int32, IN
    candidates : (C, min(C, L + n_explore)) int32, OUT, itself first; no cluster twice
    """
    n_clusters, n_neighbors = neighbors.shape
    room = nearest.shape[1]
    before = room - (followers.shape[1] - 1)
    seen = np.empty(n_clusters, np.int32)
    seen[:] = -1
    for c in range(first, last):
        candidates[c, 0] = c
        seen[c] = c
        place = 1
        for k in range(n_neighbors):
            for i in range(n_neighbors):
                other = neighbors[neighbors[c, k], i]
                if seen[other] != c and place < room:
                    candidates[c, place] = other
                    seen[other] = c
                    place += 1
        for i in range(before):
            other = nearest[c, i]
            if seen[other] != c and place < room:
                candidates[c, place] = other
                seen[other] = c
                place += 1
        for i in range(counts[c]):
            other = followers[c, i]
            if seen[other] != c and place < room:
                candidates[c, place] = other
                seen[other] = c
                place += 1
        for i in range(before, room):
            other = nearest[c, i]
            if seen[other] != c and place < room:
                candidates[c, place] = other
                seen[other] = c
                place += 1
        for i in range(explored.shape[1]):
            other = explored[c, i]
            while place < candidates.shape[1] and seen[other] == c:  # known already: the next that is not
                other = (other + 1) % n_clusters
            if place < candidates.shape[1]:
                candidates[c, place] = other
                seen[other] = c
                place += 1
