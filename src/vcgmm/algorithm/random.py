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
            all_of_them = np.tile(np.arange(n_clusters, dtype=np.int32), (min(step, n_rows - first), 1))
            out[first : first + step] = rng.permuted(all_of_them, axis=1)[:, :size]
        return out
    out = random_clusters((n_rows, size), n_clusters, rng)
    rows: np.ndarray = np.arange(n_rows)
    while len(rows):  # what a row holds already is drawn again
        order = np.argsort(out[rows], axis=1, kind="stable")
        ordered = np.take_along_axis(out[rows], order, axis=1)
        row, place = np.nonzero(ordered[:, 1:] == ordered[:, :-1])
        out[rows[row], order[row, place + 1]] = random_clusters((len(row), 1), n_clusters, rng)[:, 0]
        rows = rows[np.unique(row)]
    return out
