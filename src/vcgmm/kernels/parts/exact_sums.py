"""Sums that do not depend on the order of their terms.

Adding floats is not associative, so a sum over threads would depend on how many there are.  Here every term is
first rounded to a multiple of a *quantum* q, chosen so large that no partial sum can reach 2^53 q: then every
addition is exact in float64, and any order gives the same bits.  The rounding costs at most q/2 per term, some
2^-51 of the largest sum possible: 1e-15 of all the data's weight times their extent.  For a cluster that holds a
share r of the weight this is 1e-15 / r of its mean, so means are good to 1e-6 of the extent down to r = 1e-9.

With m from `rounding_constant`, (x + m) - m rounds x.  Whole loops are compiled here, strictly: LLVM does not
inline a strict function into one that may reorder, and a call for every number would cost more than the sum.
"""

from __future__ import annotations

import numpy as np

from ..jit import strict_part
from .prefetch import hint_row

#: Totals are fetched so many candidates ahead.
SOON = 4


def rounding_constant(largest_sum: np.ndarray) -> np.ndarray:
    """Magic number m for which (x + m) - m rounds x to a multiple of the quantum.

    Parameters
    ----------
    largest_sum : ndarray
        Bound of the absolute value of every sum that will be formed.

    Returns
    -------
    ndarray of float64
        1.5 * 2^52 * q, with the quantum q a power of two and 2^50 q >= largest_sum.
    """
    exponent = np.frexp(np.maximum(largest_sum, 1e-250))[1]
    magic: np.ndarray = np.ldexp(1.5, exponent + 2)
    return magic


@strict_part
def add_moments(
    totals: np.ndarray,
    masses: np.ndarray,
    clusters: np.ndarray,
    sums: np.ndarray,
    sum_masses: np.ndarray,
    means: np.ndarray,
    cell: int,
    magic: np.ndarray,
    magic_row: np.ndarray,
    mass_magic: float,
) -> None:
    """Move local sums of points into clusters' totals, as displacements from the clusters' means.

    totals[c] += sums[i] - sum_masses[i] (mu_c - mu_cell) and masses[c] += sum_masses[i] for c = clusters[i], each
    term rounded to the quantum; sums and sum_masses become 0.

    Parameters
    ----------
    totals : (C, D) float64, IN/OUT
    masses : (C,) float64, IN/OUT
    clusters : (m,) int, IN
    sums : (m, >= D) float, IN/OUT, weighted sums of points in coordinates local to the mean of `cell`
    sum_masses : (m,) float64, IN/OUT, sums of the weights; 0 where there is nothing to be moved
    means : (C, D) float, IN
    cell : int, IN
    magic : (k, D) float64, IN, from `rounding_constant`
    magic_row : (C,) int32, IN, the row of `magic` for each cluster
    mass_magic : float64, IN, likewise for the masses
    """
    n = clusters.shape[0]
    for i in range(n):
        mass = sum_masses[i]
        if i + SOON < n and sum_masses[i + SOON] > 0.0:
            hint_row(totals, int(clusters[i + SOON]))
        if mass == 0.0:
            continue
        cluster = clusters[i]
        row = magic_row[cluster]
        masses[cluster] += (mass + mass_magic) - mass_magic
        for d in range(totals.shape[1]):
            way = np.float64(means[cluster, d]) - np.float64(means[cell, d])
            value = np.float64(sums[i, d]) - mass * way
            totals[cluster, d] += (value + magic[row, d]) - magic[row, d]
        sums[i] = 0
        sum_masses[i] = 0.0


@strict_part
def add_point(
    totals: np.ndarray,
    masses: np.ndarray,
    cluster: int,
    points: np.ndarray,
    point: int,
    means: np.ndarray,
    weight: float,
    magic: np.ndarray,
    magic_row: np.ndarray,
    mass_magic: float,
) -> None:
    """Add one point to a cluster: totals += weight * (y - mu) and masses += weight, rounded to the quantum.

    Parameters
    ----------
    totals : (C, D) float64, IN/OUT
    masses : (C,) float64, IN/OUT
    points : (N', D) float, IN
    means : (C, D) float, IN
    magic, magic_row : IN, as in `add_moments`
    mass_magic : float64, IN
    """
    row = magic_row[cluster]
    masses[cluster] += (weight + mass_magic) - mass_magic
    for d in range(totals.shape[1]):
        value = weight * (np.float64(points[point, d]) - np.float64(means[cluster, d]))
        totals[cluster, d] += (value + magic[row, d]) - magic[row, d]
