"""Exact sums of weights, displacements and squares, for clusters that have variances of their own.

As in `exact_sums`, every term is rounded to a multiple of a quantum, so that no sum depends on the order of its
terms.  Squares are taken about the cluster's own mean before they are added: a variance is then never the small
difference of two large numbers.
"""

from __future__ import annotations

import numpy as np

from .jit import kernel, strict_kernel

#: What rounding leaves of a square is added up too, in quanta this much finer: squares of narrow clusters may be
#: as small as the quantum for those of all the data.  Up to 2^27 such rests add up exactly.
FINER = 2.0**-22


@strict_kernel
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


@kernel
def moved_squares(sums: np.ndarray, slot: int, mass: float, means: np.ndarray, cluster: int, cell: int) -> float:
    """Sum over features of mass d^2 - 2 d S1, as in `add_joint_moments`; in an order of the compiler's choice."""
    total = 0.0
    for d in range(means.shape[1]):
        way = np.float64(means[cluster, d]) - np.float64(means[cell, d])
        total += (mass * way - 2.0 * np.float64(sums[slot, d])) * way
    return total


@strict_kernel
def add_joint_moments(
    shifts: np.ndarray,
    scatters: np.ndarray,
    masses: np.ndarray,
    cluster: int,
    sums: np.ndarray,
    slot: int,
    mass: float,
    means: np.ndarray,
    cell: int,
    shift_magic: np.ndarray,
    scatter_magic: np.ndarray,
    magic_row: np.ndarray,
    mass_magic: float,
) -> None:
    """Move local sums S1 of points and S2 of squares into a cluster's totals, about the cluster's own mean.

    With d = mu_cluster - mu_cell: S1 - mass d, and S2 - 2 d S1 + mass d^2.  sums[slot] = 0.

    Parameters
    ----------
    shifts : (C, D) float64, IN/OUT, sum of gamma s (y - mu_c)
    scatters : (C, 2, V) float64, IN/OUT, sum of gamma s (y - mu_c)^2, by feature (V = D) or over all (V = 1), as
        `add_square` has it
    masses : (C,) float64, IN/OUT
    cluster : int, IN
    sums : (L, D + V) float, IN/OUT, in coordinates local to the cell's mean: S1, then S2
    slot : int, IN
    mass : float64, IN, the sum of the weights
    means : (C, D) float, IN
    cell : int, IN
    shift_magic : (k, D) float64, IN, from `exact_sums.rounding_constant`
    scatter_magic : (k, V) float64, IN, likewise
    magic_row : (C,) int32, IN, the row of both for each cluster
    mass_magic : float64, IN
    """
    row = magic_row[cluster]
    n_features, n_squares = means.shape[1], scatters.shape[2]
    masses[cluster] += (mass + mass_magic) - mass_magic
    if n_squares == n_features:
        for d in range(n_features):
            way = np.float64(means[cluster, d]) - np.float64(means[cell, d])
            change = (mass * way - 2.0 * np.float64(sums[slot, d])) * way
            square = np.float64(sums[slot, n_features + d]) + change
            add_square(scatters, cluster, d, square, scatter_magic[row, d])
    else:
        square = np.float64(sums[slot, n_features]) + moved_squares(sums, slot, mass, means, cluster, cell)
        add_square(scatters, cluster, 0, square, scatter_magic[row, 0])
    for d in range(n_features):
        way = np.float64(means[cluster, d]) - np.float64(means[cell, d])
        value = np.float64(sums[slot, d]) - mass * way
        shifts[cluster, d] += (value + shift_magic[row, d]) - shift_magic[row, d]
        sums[slot, d] = 0
    for v in range(n_squares):
        sums[slot, n_features + v] = 0


@strict_kernel
def add_joint_point(
    shifts: np.ndarray,
    scatters: np.ndarray,
    masses: np.ndarray,
    cluster: int,
    points: np.ndarray,
    point: int,
    means: np.ndarray,
    weight: float,
    shift_magic: np.ndarray,
    scatter_magic: np.ndarray,
    magic_row: np.ndarray,
    mass_magic: float,
) -> None:
    """Add one point to a cluster's totals, with a weight; arrays as in `add_joint_moments`."""
    row = magic_row[cluster]
    n_features, n_squares = means.shape[1], scatters.shape[2]
    masses[cluster] += (weight + mass_magic) - mass_magic
    total = 0.0
    for d in range(n_features):
        difference = np.float64(points[point, d]) - np.float64(means[cluster, d])
        value = weight * difference
        shifts[cluster, d] += (value + shift_magic[row, d]) - shift_magic[row, d]
        square = value * difference
        if n_squares == n_features:
            add_square(scatters, cluster, d, square, scatter_magic[row, d])
        else:
            total += square
    if n_squares != n_features:
        add_square(scatters, cluster, 0, total, scatter_magic[row, 0])
