"""Random numbers keyed by what they are for: (seed, purpose, iteration, row), never by thread."""

from __future__ import annotations

import numpy as np


def generator(seed: int, *purpose: int) -> np.random.Generator:
    """An independent stream of random numbers for each purpose."""
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(seed, spawn_key=purpose)))


def random_clusters(shape: tuple[int, int], n_clusters: int, rng: np.random.Generator) -> np.ndarray:
    """Clusters drawn with replacement, (rows, k) int32."""
    return (rng.random(shape) * n_clusters).astype(np.int32)


def distinct_clusters(n_rows: int, size: int, n_clusters: int, rng: np.random.Generator) -> np.ndarray:
    """For every row `size` different clusters, (n_rows, size) int32, in memory of that size."""
    if 2 * size > n_clusters:  # most of them: shuffle all, a few rows at a time
        out = np.empty((n_rows, size), np.int32)
        step = max(1, (1 << 20) // n_clusters)
        for first in range(0, n_rows, step):
            rows = np.tile(np.arange(n_clusters, dtype=np.int32), (min(step, n_rows - first), 1))
            out[first : first + step] = rng.permuted(rows, axis=1)[:, :size]
        return out
    out = random_clusters((n_rows, size), n_clusters, rng)
    again = np.arange(n_rows)
    while True:  # redraw rows that hold a cluster twice
        ordered = np.sort(out[again], axis=1)
        again = again[(ordered[:, 1:] == ordered[:, :-1]).any(axis=1)]
        if not len(again):
            return out
        out[again] = random_clusters((len(again), size), n_clusters, rng)
