"""Which clusters are moved where."""

from __future__ import annotations

import numpy as np

from .jit import kernel


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
