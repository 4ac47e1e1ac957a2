"""How many clusters each cell of a two-level start gets."""

from __future__ import annotations

import numpy as np


def share_by_error(errors: np.ndarray, sizes: np.ndarray, parents: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """How many clusters each cell should expect: its share of its parent's, by error^(3/4), at least 1."""
    claims = np.where(sizes > 0, np.maximum(errors, 0.0) ** 0.75, 0.0)
    totals = np.bincount(parents, claims, len(expected))[parents]
    shares = expected[parents] * claims / np.where(totals > 0, totals, 1.0)
    return np.clip(np.ceil(shares), np.minimum(sizes, 1), sizes).astype(np.int64)


def share_by_potential(
    potentials: np.ndarray, seed_start: np.ndarray, available: np.ndarray, n_clusters: int
) -> np.ndarray:
    """Clusters for each cell so that the error per cluster is about the same in all.

    A cell with k clusters and error phi(k) gets another one while phi(k) / k is among the largest.

    Parameters
    ----------
    potentials : (n_seeds,) float64
        phi: error of a cell once so many of its seeds are there.
    seed_start : (n_cells + 1,) int64
    available : (n_cells,) int64
        Seeds that each cell has.
    n_clusters : int

    Returns
    -------
    (n_cells,) int64, summing to n_clusters, or to all seeds where those are fewer
    """
    lengths = np.diff(seed_start)
    cell = np.repeat(np.arange(len(lengths)), lengths)
    place = np.arange(len(cell)) - seed_start[cell]
    worth = np.empty(len(cell))
    worth[1:] = potentials[:-1] / np.maximum(place[1:], 1)
    worth[place == 0] = potentials[place == 0]  # where clusters are too few for all cells, large errors go first
    usable = np.flatnonzero(place < available[cell])
    is_first = place[usable] == 0
    chosen = [_largest(worth, usable[is_first], n_clusters)]
    chosen.append(_largest(worth, usable[~is_first], n_clusters - len(chosen[0])))
    return np.bincount(cell[np.concatenate(chosen)], minlength=len(available))


def _largest(worth: np.ndarray, places: np.ndarray, count: int) -> np.ndarray:
    """Those `count` of places (n,) whose worth is largest, among equals the first; all where there are no more."""
    if count >= len(places):
        return places
    values = worth[places]
    least = np.partition(values, len(values) - count)[len(values) - count] if count else np.inf
    above, equal = places[values > least], places[values == least]
    return np.concatenate([above, equal[: count - len(above)]])
