"""Which clusters are moved where."""

from __future__ import annotations

import numpy as np

from ..jit import kernel


@kernel
def pair_moves(
    cheapest: np.ndarray,
    losses: np.ndarray,
    first: np.ndarray,
    last: np.ndarray,
    takers: np.ndarray,
    splits: np.ndarray,
    gains: np.ndarray,
    involved: np.ndarray,
    moves: np.ndarray,
) -> int:
    """Take the cheapest clusters away for the splits that gain most; returns the number of moves.

    Parameters
    ----------
    cheapest : (m,) int64, IN, clusters that may be taken away, the one that is missed least first
    losses : (m,) float64, IN, what that adds to the error
    first, last : (m,) int64, IN, where the takers of each are
    takers : (n,) int32, IN, clusters that would take over its points, any of them several times
    splits : (k,) int64, IN, clusters that may be split, the one that gains most first
    gains : (k,) float64, IN, what that takes from the error
    involved : (C,) bool, IN and OUT, clusters that are part of no further move
    moves : (2, k) int64, OUT, places in `cheapest`, and for each of them one in `splits`
    """
    n_moves, at = 0, 0
    for place in range(len(splits)):
        if involved[splits[place]]:
            continue
        involved[splits[place]] = True  # not to be taken away itself, or to take over points
        while at < len(cheapest):  # what has been passed over is part of a move already, and stays so
            if not gains[place] > losses[at]:
                return n_moves
            free = not involved[cheapest[at]]
            for i in range(first[at], last[at]):
                if not free:
                    break
                free = not involved[takers[i]]
            if free:
                break
            at += 1
        if at == len(cheapest):
            return n_moves
        involved[cheapest[at]] = True
        for i in range(first[at], last[at]):
            involved[takers[i]] = True
        moves[0, n_moves], moves[1, n_moves] = at, place
        n_moves += 1
        at += 1
    return n_moves


@kernel
def plan_moves(
    numbers: np.ndarray,
    values: np.ndarray,
    takers: np.ndarray,
    n_clusters: int,
    n_tried: int,
    looked_at: int,
    chosen: np.ndarray,
    facts: np.ndarray,
) -> int:
    """Which moves are made, from what a device tells, and what it is to be told; returns their number.

    Parameters
    ----------
    numbers : (7 k + C + 1,) int64, IN, with k = n_tried and C = n_clusters: clusters that were split, points of
        all clusters, points of second halves, places among the split by gain, gains, clusters that are missed
        least, where their takers end, losses, the error of all
    values : likewise, float64, IN, the same bits
    takers : (n,) int32, IN
    looked_at : int, IN, points of a cluster that its halves look at, at most
    chosen : (C + 3 k,) int64, OUT, fates of all clusters: who has the second half, -1 for those that stay and -2
        for those that go; then, as many each as there are moves, who is split, who goes, and places of the halves
    facts : (5,) float64, OUT, the error before, what the moves gain, points that have another cluster for it, and
        two sums over those that were split: of points that halves look at, and of all points
    """
    all_sizes, n_second = n_tried, n_tried + n_clusters
    by_gain, gains = n_second + n_tried, n_second + 2 * n_tried
    cheapest, last, losses = gains + n_tried, gains + 2 * n_tried, gains + 3 * n_tried
    involved = np.empty(n_clusters, np.bool_)
    for cluster in range(n_clusters):
        involved[cluster] = False
        chosen[cluster] = -1
    splits, first = np.empty(n_tried, np.int64), np.empty(n_tried, np.int64)
    moves = np.empty((2, n_tried), np.int64)
    n_some, n_all = 0, 0
    for i in range(n_tried):
        splits[i] = numbers[numbers[by_gain + i]]
        first[i] = numbers[last + i - 1] if i > 0 else 0
        size = numbers[all_sizes + numbers[i]]
        n_some += min(size, looked_at)
        n_all += size
    n_moves = pair_moves(
        numbers[cheapest:last],
        values[losses : losses + n_tried],
        first,
        numbers[last:losses],
        takers,
        splits,
        values[gains:cheapest],
        involved,
        moves,
    )
    gained, n_points = 0.0, 0
    for move in range(n_moves):
        at, best = moves[0, move], moves[1, move]
        removed, place, kept = numbers[cheapest + at], numbers[by_gain + best], splits[best]
        chosen[removed], chosen[kept] = -2, removed
        chosen[n_clusters + move] = kept
        chosen[n_clusters + n_moves + move] = removed
        chosen[n_clusters + 2 * n_moves + move] = place
        gained += values[gains + best] - values[losses + at]
        n_points += numbers[last + at] - first[at] + numbers[n_second + place]
    facts[0], facts[1], facts[2] = values[losses + n_tried], gained, n_points
    facts[3], facts[4] = n_some, n_all
    return n_moves
