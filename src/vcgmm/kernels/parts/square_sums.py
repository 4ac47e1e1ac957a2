"""Exact sums of squares about the clusters' means, for clusters that have variances of their own.

As in `exact_sums`, every term is rounded to a multiple of a quantum, so that no sum depends on the order of its
terms.  Squares are taken about the cluster's own mean before they are added: a variance is then never the small
difference of two large numbers.
"""

from __future__ import annotations

import numpy as np

from ..jit import part, strict_part

#: What rounding leaves of a square is added up too, in quanta this much finer: squares of narrow clusters may be
#: as small as the quantum for those of all the data.  Up to 2^27 such rests add up exactly.
FINER = 2.0**-22


@strict_part
def add_square(totals: np.ndarray, cluster: int, place: int, value: float, magic: float) -> None:
    """Add a value to a sum in two parts, each a multiple of its own quantum.

    Parameters
    ----------
    totals : (C, 2, V) float64, IN/OUT, [:, 0] in quanta of `magic`, [:, 1] in finer ones
    cluster, place : int, IN
    value : float64, IN
    magic : float64, IN, from `exact_sums.rounding_constant`
    """
    rounded = (value + magic) - magic
    finer = magic * FINER
    totals[cluster, 0, place] += rounded
    totals[cluster, 1, place] += ((value - rounded) + finer) - finer


@part
def moved_squares(sums: np.ndarray, slot: int, mass: float, means: np.ndarray, cluster: int, cell: int) -> float:
    """Sum over features of mass d^2 - 2 d S1, as in `add_moment_squares`; in an order of the compiler's choice."""
    total = 0.0
    for d in range(means.shape[1]):
        way = np.float64(means[cluster, d]) - np.float64(means[cell, d])
        total += (mass * way - 2.0 * np.float64(sums[slot, d])) * way
    return total


@strict_part
def add_moment_squares(
    scatters: np.ndarray,
    cluster: int,
    sums: np.ndarray,
    slot: int,
    mass: float,
    means: np.ndarray,
    cell: int,
    magic: np.ndarray,
    magic_row: np.ndarray,
) -> None:
    """Move local sums S1 of points and S2 of squares into a cluster's squares about its own mean.

    With d = mu_cluster - mu_cell: S2 - 2 d S1 + mass d^2.

    Parameters
    ----------
    scatters : (C, 2, V) float64, IN/OUT, sum of gamma s (y - mu_c)^2, by feature (V = D) or over all (V = 1), as
        `add_square` has it
    cluster : int, IN
    sums : (L, D + V) float, IN, in coordinates local to the cell's mean: S1, then S2
    slot : int, IN
    mass : float64, IN, the sum of the weights
    means : (C, D) float, IN
    cell : int, IN
    magic : (k, V) float64, IN, from `exact_sums.rounding_constant`
    magic_row : (C,) int32, IN, the row of it for each cluster
    """
    row = magic_row[cluster]
    n_features = means.shape[1]
    if scatters.shape[2] == n_features:
        for d in range(n_features):
            way = np.float64(means[cluster, d]) - np.float64(means[cell, d])
            change = (mass * way - 2.0 * np.float64(sums[slot, d])) * way
            square = np.float64(sums[slot, n_features + d]) + change
            add_square(scatters, cluster, d, square, magic[row, d])
    else:
        square = np.float64(sums[slot, n_features]) + moved_squares(sums, slot, mass, means, cluster, cell)
        add_square(scatters, cluster, 0, square, magic[row, 0])


@strict_part
def add_point_squares(
    scatters: np.ndarray,
    cluster: int,
    points: np.ndarray,
    point: int,
    means: np.ndarray,
    weight: float,
    magic: np.ndarray,
    magic_row: np.ndarray,
) -> None:
    """Add one point's squares about a cluster's mean, with a weight; arrays as in `add_moment_squares`."""
    row = magic_row[cluster]
    n_features = means.shape[1]
    total = 0.0
    for d in range(n_features):
        difference = np.float64(points[point, d]) - np.float64(means[cluster, d])
        square = weight * difference * difference
        if scatters.shape[2] == n_features:
            add_square(scatters, cluster, d, square, magic[row, d])
        else:
            total += square
    if scatters.shape[2] != n_features:
        add_square(scatters, cluster, 0, total, magic[row, 0])
