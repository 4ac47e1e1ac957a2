"""Costs of clusters for points, one by one and by a matrix product.

The cost of a cluster is its -log p(c, y) up to what all clusters have in common.  Where clusters have variances
and weights of their own, with p_c = 1 / (2 v_c), one number for all features (V = 1) or one for each (V = D), and
q_c = 1/2 sum_d log v_cd - log pi_c less the smallest of them,

    cost_c(y) = sum_d p_cd (y_d - mu_cd)^2 + q_c >= 0,

which is linear in the statistics t(y) = (y, y^2), with the squares added up for V = 1.  Where all share one
variance and equal weights, the paper's model, squares cost the same for all clusters: no statistic (V = 0), and

    cost_c(y) = ||y - mu_c||^2

in units of 2 sigma^2.  The product of the rows that `natural_rows` makes with those of `statistics_rows` gives
the costs of all candidates at once.

Precisions that are None say V = 0.  numba compiles a kernel anew for None and leaves out what is not for it: the
paper's model costs what it would without the others.
"""

from __future__ import annotations

import numpy as np

from ..jit import part
from ..parts.differences import subtract
from ..parts.distances import squared_distance
from ..parts.prefetch import hint_row

#: Rows that lie anywhere are fetched so many ahead.
AHEAD = 8

#: Nats by which a cost from a product may be off: a candidate where rounding could exceed it is taken directly.
COST_ERROR = 1e-4


def farthest_square(dtype: np.dtype) -> float:
    """Up to this sum_d p_d (mu_d - origin_d)^2 a product gives a cluster's cost to COST_ERROR."""
    return COST_ERROR / float(np.finfo(dtype).eps)


@part
def dearest(itemsize: int) -> float:
    """What a candidate costs at most by its place alone, in floats of so many bytes, so that keys are numbers."""
    return 1.6e38 if itemsize == 4 else 8e307  # somewhat less than half of the largest number


@part
def statistics_rows(
    source: np.ndarray,
    rows: np.ndarray,
    first: int,
    last: int,
    origin: np.ndarray,
    n_squares: int,
    out: np.ndarray,
    norms: np.ndarray,
) -> None:
    """t(y) of rows in coordinates local to an origin: out[j] = (y - origin, (y - origin)^2).

    Parameters
    ----------
    source : (n, D) float, IN
    rows : (m,) int, IN
    first, last : int, IN, the range of `rows` to take
    origin : (D,) float, IN
    n_squares : int, IN, V: D for every square, 1 for their sum, 0 for none
    out : (>= last - first, >= D + V) float, OUT
    norms : (>= last - first,) float, OUT, what is to be added to every cost: ||y - origin||^2 for V = 0, else 0
    """
    n_features = origin.shape[0]
    for j in range(last - first):
        row = rows[first + j]
        if first + j + AHEAD < rows.shape[0]:
            hint_row(source, int(rows[first + j + AHEAD]))
        total = subtract(source, row, origin, out, j)
        norms[j] = total
        if n_squares == 0:
            continue
        norms[j] = 0
        if n_squares == n_features:
            for d in range(n_features):
                out[j, n_features + d] = out[j, d] * out[j, d]
        else:
            out[j, n_features] = total


@part
def natural_rows(
    means: np.ndarray,
    precisions: np.ndarray | None,
    offsets: np.ndarray | None,
    clusters: np.ndarray,
    origin: np.ndarray,
    rows: np.ndarray,
    constants: np.ndarray,
    squares: np.ndarray,
) -> None:
    """Clusters as linear functions of t(y - origin): cost = constant - 2 row . t (+ norm).

    Parameters
    ----------
    means : (C, D) float, IN
    precisions : (C, V) float or None, IN, p; None: V = 0
    offsets : (C,) float or None, IN, q
    clusters : (m,) int, IN
    origin : (D,) float, IN
    rows : (>= m, D + V) float, OUT, coefficients of the statistics
    constants : (>= m,) float, OUT, `dearest` at most
    squares : (>= m,) float, OUT, sum_d p_cd (mu_cd - origin_d)^2, by which a cost from a product may lose digits
    """
    n_features, most = means.shape[1], constants.dtype.type(dearest(constants.itemsize))
    for i in range(clusters.shape[0]):
        squares[i] = subtract(means, clusters[i], origin, rows, i)
    if precisions is not None:
        weigh_rows(precisions, clusters, n_features, rows, squares)
    for i in range(clusters.shape[0]):
        constant = squares[i]
        if offsets is not None:
            constant += offsets[clusters[i]]
        constants[i] = constant if constant < most else most


@part
def weigh_rows(
    precisions: np.ndarray, clusters: np.ndarray, n_features: int, rows: np.ndarray, squares: np.ndarray
) -> None:
    """From differences mu - origin to coefficients of t(y - origin); arrays as in `natural_rows`."""
    n_squares, after = precisions.shape[1], np.uint64(n_features)
    half = rows.dtype.type(-0.5)
    for i in range(clusters.shape[0]):
        c = clusters[i]
        common = precisions[c, 0]
        total = squares.dtype.type(0)
        for d in range(n_features):
            total += (precisions[c, d] if n_squares == n_features else common) * (rows[i, d] * rows[i, d])
        squares[i] = total
        for d in range(n_features):
            rows[i, d] *= precisions[c, d] if n_squares == n_features else common
        for v in range(n_squares):  # unsigned: an index that might be negative keeps LLVM from vectorising
            rows[i, after + np.uint64(v)] = half * precisions[c, v]


@part
def own_cost(
    points: np.ndarray, point: int, means: np.ndarray, precisions: np.ndarray, offsets: np.ndarray, cluster: int
) -> float:
    """Cost of one cluster with a variance of its own for one point, directly."""
    total = points.dtype.type(0)
    if precisions.shape[1] == means.shape[1]:
        for d in range(means.shape[1]):
            difference = points[point, d] - means[cluster, d]
            total += precisions[cluster, d] * (difference * difference)
    else:
        total = squared_distance(points, point, means, cluster) * precisions[cluster, 0]
    return total + offsets[cluster]


@part
def costs_of_pairs(
    n: int,
    rows: np.ndarray,
    clusters: np.ndarray,
    points: np.ndarray,
    means: np.ndarray,
    precisions: np.ndarray | None,
    offsets: np.ndarray | None,
    out: np.ndarray,
) -> None:
    """out[i] = cost of clusters[i] for points[rows[i]], directly, for i < n."""
    if precisions is None or offsets is None:
        for i in range(n):
            out[i] = squared_distance(points, rows[i], means, clusters[i])
    else:
        for i in range(n):
            out[i] = own_cost(points, rows[i], means, precisions, offsets, clusters[i])
