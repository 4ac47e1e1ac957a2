"""Fitted parameters applied to rows, block by block: labels, neighbours, densities, quantization error."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .algorithm.frame import Frame
from .algorithm.nearest import Centres
from .data import ArrayRows
from .parallel import Workers

#: Local coordinates beyond this (far from all the data of the fit) are squared in float64.
SAFE_FLOAT32 = 1e15


class Evaluator:
    """Means in the coordinates of a fit, and exact searches over them.

    Parameters
    ----------
    means : (C, D) float64, in data coordinates
    frame : Frame
    """

    def __init__(self, means: np.ndarray, frame: Frame) -> None:
        self.frame = frame
        self.means = frame.enter(means, np.dtype(np.float64))
        self._centres: dict[np.dtype, Centres] = {}

    def _ready(self, dtype: np.dtype) -> Centres:
        if dtype not in self._centres:
            self._centres[dtype] = Centres(self.means, dtype)
        return self._centres[dtype]

    def _points(self, block: np.ndarray) -> np.ndarray:
        points = self.frame.enter(block)
        if points.dtype == np.float32 and not np.abs(points).max(initial=0.0) < SAFE_FLOAT32:
            points = self.frame.enter(block, np.dtype(np.float64))
        return points

    def _each_block(self, rows: ArrayRows, workers: Workers, use: Callable[[int, int, np.ndarray], None]) -> None:
        """Call use(first, last, block) for every block of rows, on all threads."""
        for dtype in (self.frame.dtype, np.dtype(np.float64)):
            self._ready(dtype)

        def work(_thread: int, first: int, last: int) -> None:
            for i in range(first, last):
                use(*rows.bounds(i), rows.block(i))

        workers.run(work, rows.n_blocks)

    def nearest(self, rows: ArrayRows, workers: Workers) -> tuple[np.ndarray, np.ndarray]:
        """Nearest mean (N,) int32 and squared distance to it (N,) float64, in data coordinates."""
        ids = np.empty(rows.n_samples, np.int32)
        distances = np.empty(rows.n_samples)

        def use(first: int, last: int, block: np.ndarray) -> None:
            points = self._points(block)
            near = np.empty(len(points), points.dtype)
            self._ready(points.dtype).nearest_of(points, ids[first:last], near)
            distances[first:last] = near

        self._each_block(rows, workers, use)
        distances /= self.frame.scale**2
        return ids, distances

    def k_nearest(self, rows: ArrayRows, k: int, workers: Workers) -> tuple[np.ndarray, np.ndarray]:
        """The k nearest means (N, k) int32, nearest first, and squared distances (N, k) float64."""
        ids = np.empty((rows.n_samples, k), np.int32)
        distances = np.empty((rows.n_samples, k))

        def use(first: int, last: int, block: np.ndarray) -> None:
            points = self._points(block)
            near = np.empty((len(points), k), points.dtype)
            self._ready(points.dtype).k_nearest_of(points, ids[first:last], near)
            distances[first:last] = near

        self._each_block(rows, workers, use)
        distances /= self.frame.scale**2
        return ids, distances

    def log_density(self, rows: ArrayRows, variance: float, workers: Workers) -> np.ndarray:
        """Exact log p(y) of every row (N,) float64, over all components (Eq. 1)."""
        out = np.empty(rows.n_samples)
        local_variance = variance * self.frame.scale**2
        ready = self._ready(np.dtype(np.float64))

        def use(first: int, last: int, block: np.ndarray) -> None:
            ready.log_sum_of(self.frame.enter(block, np.dtype(np.float64)), 0.5 / local_variance, out[first:last])

        self._each_block(rows, workers, use)
        n_clusters, n_features = self.means.shape
        out -= math.log(n_clusters) + 0.5 * n_features * math.log(2 * math.pi * variance)
        return out
