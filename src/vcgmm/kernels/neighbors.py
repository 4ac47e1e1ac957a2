"""The candidates that all points of a cluster search: clusters near it, and those that have it near."""

from __future__ import annotations

import numpy as np

from .jit import kernel

#: Ranks looked at together when lists are turned round: as many as share a line of cache.
BAND = 16


@kernel
def turn_round(first: int, last: int, nearest: np.ndarray, followers: np.ndarray, counts: np.ndarray) -> None:
    """For clusters first..last-1 those that have them high on their own lists, the highest first.

    Nothing is asked that a processor would have to guess: what is of no use is written where nobody looks.

    Parameters
    ----------
    nearest : (C, L) int32, IN, itself first, then roughly in order
    followers : (C + 1, room + 1) int32, OUT, the last row and column are of no use
    counts : (C,) int32, OUT, how many places of `followers` are filled, at most room
    """
    n_clusters, n_nearest = nearest.shape
    room = np.int32(followers.shape[1] - 1)
    n_own = last - first
    filled = np.empty(n_own + 1, np.int32)  # one more for the clusters of others
    filled[:] = 0
    filled[n_own] = room
    for band in range(1, n_nearest, BAND):
        for follower in range(n_clusters):
            for k in range(band, min(band + BAND, n_nearest)):
                distance = np.int64(nearest[follower, k]) - first
                own = distance if 0 <= distance < n_own else n_own
                place = filled[own]
                followers[first + own, place] = follower
                filled[own] = place + np.int32(place < room)
    for own in range(n_own):  # a slice would be compiled with all that its error message could need
        counts[first + own] = filled[own]


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
    followers : (C + 1, room + 1) int32, IN, from `turn_round`
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
