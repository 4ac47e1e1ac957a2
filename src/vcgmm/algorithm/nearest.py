"""Exact searches over all clusters: nearest, k nearest, log density.  Memory does not grow with N x C."""

from __future__ import annotations

import math

import numpy as np

from ..kernels.nearest.all_centres import (
    POINTS,
    log_sum_joint,
    nearest_centre,
    nearest_centres,
    product_slack,
    squared_norms,
)
from ..kernels.nearest.nearest_tiles import HEIGHT
from ..kernels.nearest.two_nearest import round_centres
from ..kernels.parts.shorts import FEATURES, LARGEST, NOTHING, PRODUCTS
from ..parallel import Workers

#: Squared norms of centres from which on those of points might not be numbers.
MOST = 1e300


class Centres:
    """Centres made ready for products.

    Parameters
    ----------
    centres : (C, D) float
    dtype : float32 or float64
    """

    def __init__(self, centres: np.ndarray, dtype: np.dtype) -> None:
        self.centres = np.ascontiguousarray(centres, dtype=dtype)
        self.squares = np.empty(len(centres), dtype)
        squared_norms(self.centres, self.squares)
        self.slack = product_slack(self.centres.dtype, centres.shape[1])
        self.steps, self.way = 0.0, 0.0
        n_centres, n_features = centres.shape
        largest = float(self.squares.max(initial=0.0))
        if n_features >= FEATURES and n_centres >= PRODUCTS and NOTHING < largest < MOST:
            self.steps = LARGEST / math.sqrt(largest)
        rounded = -(-n_centres // HEIGHT) * HEIGHT if self.steps else 0
        self.shorts = np.empty((rounded, (n_features + 1) // 2), np.float32)  # bits of pairs
        self.short_squares = np.empty(rounded, np.int32)
        if self.steps:
            self.way = round_centres(self.centres, self.steps, self.shorts, self.short_squares)

    def nearest_of(self, points: np.ndarray, ids: np.ndarray, distances: np.ndarray) -> None:
        """Fill ids (n,) int32 and squared distances (n,) of the nearest centre to points (n, D)."""
        nearest_centre(
            0, len(points), points, self.centres, self.squares, self.slack, self.steps, self.shorts,
            self.short_squares, self.way, ids, distances,
        )  # fmt: skip

    def k_nearest_of(self, points: np.ndarray, ids: np.ndarray, distances: np.ndarray) -> None:
        """Fill ids (n, k) int32 and squared distances (n, k), nearest first."""
        nearest_centres(0, len(points), points, self.centres, self.squares, self.slack, ids, distances)

    def log_sum_of(self, points: np.ndarray, precision: float, out: np.ndarray) -> None:
        """Fill out (n,) with log sum_c exp(-||y - mu_c||^2 precision)."""
        log_sum_joint(0, len(points), points, self.centres, self.squares, precision, out)


def nearest(points: np.ndarray, centres: np.ndarray, workers: Workers) -> tuple[np.ndarray, np.ndarray]:
    """Nearest of all centres for points in the same coordinates.

    Parameters
    ----------
    points : (n, D) float32 or float64
    centres : (C, D) float
    workers : Workers

    Returns
    -------
    ids : (n,) int32
    distances : (n,) of the points' dtype, squared
    """
    ready = Centres(centres, points.dtype)
    ids = np.empty(len(points), np.int32)
    distances = np.empty(len(points), points.dtype)

    def work(_thread: int, first: int, last: int) -> None:
        # Which points are looked at together does not matter: whatever is in doubt is settled.
        rows = slice(first * POINTS, last * POINTS)
        ready.nearest_of(points[rows], ids[rows], distances[rows])

    workers.run(work, -(-len(points) // POINTS))
    return ids, distances


def k_nearest(points: np.ndarray, centres: np.ndarray, k: int, workers: Workers) -> np.ndarray:
    """The k nearest of all centres, nearest first, (n, k) int32."""
    ready = Centres(centres, points.dtype)
    ids = np.empty((len(points), k), np.int32)
    distances = np.empty((len(points), k), points.dtype)

    def work(_thread: int, first: int, last: int) -> None:
        rows = slice(first * POINTS, last * POINTS)
        ready.k_nearest_of(points[rows], ids[rows], distances[rows])

    workers.run(work, -(-len(points) // POINTS))
    return ids
