"""Inner loops of seeding: D^2 sampling and the Markov chains of AFK-MC^2."""

from __future__ import annotations

import numpy as np

from ..jit import kernel
from ..parts.distances import squared_distance


@kernel
def lower_distances(
    first: int,
    last: int,
    points: np.ndarray,
    centre: int,
    distances: np.ndarray,
) -> None:
    """distances[n] = min(distances[n], ||y_n - y_centre||^2) for points first..last-1."""
    for n in range(first, last):
        distance = squared_distance(points, n, points, centre)
        if distance < distances[n]:
            distances[n] = distance


@kernel
def run_chains(
    rows: np.ndarray,
    potential: np.ndarray,
    distances: np.ndarray,
    uniforms: np.ndarray,
    chosen: np.ndarray,
) -> None:
    """A batch of Markov chains, one new centre each; distances to centres of earlier batches are given.

    Parameters
    ----------
    rows : (b * m, D) float, IN, the points proposed: proposal `step` of a chain is row chain * m + step
    potential : (b, m) float64, IN, gamma_n / q_n of the proposals
    distances : (b, m) float64, IN/OUT, squared distance to the nearest centre so far
    uniforms : (b, m) float64, IN
    chosen : (b,) int64, OUT, the proposals that became centres, as rows of `rows`; -1 where every state of the
        chain was a centre already
    """
    n_chains, length = distances.shape
    for chain in range(n_chains):
        state = chain * length
        state_distance = distances[chain, 0]
        state_mass = potential[chain, 0] * state_distance
        for step in range(1, length):
            mass = potential[chain, step] * distances[chain, step]
            if state_distance == 0.0 or uniforms[chain, step] * state_mass < mass:
                state = chain * length + step
                state_distance = distances[chain, step]
                state_mass = mass
        chosen[chain] = state if state_distance > 0.0 else -1
        if chosen[chain] < 0:
            continue
        for later in range(chain + 1, n_chains):
            for step in range(length):
                distance = np.float64(squared_distance(rows, later * length + step, rows, state))
                if distance < distances[later, step]:
                    distances[later, step] = distance
