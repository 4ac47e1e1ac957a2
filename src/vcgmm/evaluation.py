"""Fitted parameters applied to rows, block by block: labels, neighbours, densities, quantization error."""

from __future__ import annotations

import math
from collections.abc import Callable
from weakref import WeakKeyDictionary

import numpy as np

from .algorithm.frame import Frame
from .algorithm.nearest import Centres
from .algorithm.routing import Routing
from .data import ArrayRows
from .kernels.distances import distances_to
from .parallel import Workers

#: Local coordinates beyond these (far from all the data of the fit) cannot be squared in float32, or at all.
SAFE_FLOAT32 = 1e15
SAFE_FLOAT64 = 1e150


#: Up to so many components, comparing with all of them takes no longer than finding a way to the near ones.
FEW_COMPONENTS = 512

#: Values of rows that find their way together, and rows at least: the more meet at a cluster, the faster.
VALUES_TOGETHER = 1 << 25
LEAST_TOGETHER = 8192

#: Beside the models, not in them: they are as quickly copied and pickled as before.
_routings: WeakKeyDictionary[object, tuple[np.ndarray, Routing]] = WeakKeyDictionary()


class Evaluator:
    """Means in the coordinates of a fit, and exact searches over them.

    Parameters
    ----------
    means : (C, D) float64, in data coordinates
    frame : Frame
    workers : Workers
    advance : callable
        Told how many rows have been done since the last call.
    """

    def __init__(self, means: np.ndarray, frame: Frame, workers: Workers, advance: Callable[[int], None]) -> None:
        self.frame = frame
        self.workers = workers
        self.advance = advance
        self.data_means = means
        self.means = frame.enter(means, np.dtype(np.float64))
        self.dtype = frame.dtype if np.abs(self.means).max() < SAFE_FLOAT32 else np.dtype(np.float64)
        self._centres: dict[np.dtype, Centres] = {}

    def _ready(self, dtype: np.dtype) -> Centres:
        if dtype not in self._centres:
            self._centres[dtype] = Centres(self.means, dtype)
        return self._centres[dtype]

    def _points(self, rows: ArrayRows, i: int, block: np.ndarray, dtype: np.dtype) -> np.ndarray:
        """Block i in local coordinates, in float64 where float32 would not do."""
        points = self.frame.enter(block, dtype)
        largest = np.abs(points).max(initial=0.0)
        if largest < SAFE_FLOAT32:
            return points
        rows.refuse_nonfinite(i)
        points = self.frame.enter(block, np.dtype(np.float64))
        if not np.abs(points).max() < SAFE_FLOAT64:
            raise ValueError(
                f"{rows.name} holds values so far from the data of the fit that their squares overflow: the first "
                f"of them is in rows {rows.bounds(i)[0]} to {rows.bounds(i)[1] - 1}. Check their units."
            )
        return points

    def _each_block(
        self, rows: ArrayRows, dtype: np.dtype, use: Callable[[slice, np.ndarray, np.ndarray], None]
    ) -> None:
        """Call use(part, block, points) for every block, as given and in local coordinates, on all threads."""
        for needed in (dtype, np.dtype(np.float64)):
            self._ready(needed)

        def work(_thread: int, first: int, last: int) -> None:
            for i in range(first, last):
                block = rows.block(i)
                use(slice(*rows.bounds(i)), block, self._points(rows, i, block, dtype))
                self.advance(len(block))

        self.workers.run(work, rows.n_blocks)

    def labels(self, rows: ArrayRows) -> np.ndarray:
        """Nearest mean (N,) int32."""
        ids = np.empty(rows.n_samples, np.int32)

        def use(part: slice, _block: np.ndarray, points: np.ndarray) -> None:
            self._ready(points.dtype).nearest_of(points, ids[part], np.empty(len(points), points.dtype))

        self._each_block(rows, self.dtype, use)
        return ids

    def routing(self, owner: object, neighbors: np.ndarray) -> Routing:
        """What `near_labels` needs, made once for an owner of means, and again when it has others."""
        means, routing = _routings.get(owner, (None, None))
        if routing is None or means is not self.data_means or routing.means.dtype != self.dtype:
            routing = Routing(self.means, self.dtype, neighbors, self.workers)
            _routings[owner] = self.data_means, routing
        return routing

    def near_labels(self, rows: ArrayRows, routing: Routing) -> np.ndarray:
        """A mean that is near, and mostly the nearest, (N,) int32, at a cost that does not grow with C."""
        ids = np.empty(rows.n_samples, np.int32)
        together = max(LEAST_TOGETHER, VALUES_TOGETHER // rows.n_features) // rows.rows_per_block + 1
        for begin in range(0, rows.n_blocks, together):
            self._route(rows, begin, min(begin + together, rows.n_blocks), routing, ids)
        return ids

    def _route(self, rows: ArrayRows, begin: int, end: int, routing: Routing, ids: np.ndarray) -> None:
        """`near_labels` of blocks begin..end-1."""
        low, high = rows.bounds(begin)[0], rows.bounds(end - 1)[1]
        points = np.zeros((high - low, rows.n_features), routing.means.dtype)
        far: list[tuple[int, np.ndarray]] = []

        def work(_thread: int, first: int, last: int) -> None:
            for i in range(begin + first, begin + last):
                a, b = rows.bounds(i)
                local = self._points(rows, i, rows.block(i), points.dtype)
                if local.dtype == points.dtype:
                    points[a - low : b - low] = local
                else:
                    far.append((i, local))

        self.workers.run(work, end - begin)
        ids[low:high], _ = routing.labels_of(points, self.workers)
        for i, local in far:  # very rare: compared with all means
            self._ready(local.dtype).nearest_of(local, ids[slice(*rows.bounds(i))], np.empty(len(local)))
        self.advance(high - low)

    def nearest(self, rows: ArrayRows) -> tuple[np.ndarray, np.ndarray]:
        """Nearest mean (N,) int32 and squared distance to it (N,) float64, in data coordinates."""
        ids = np.empty(rows.n_samples, np.int32)
        distances = np.empty(rows.n_samples)

        def use(part: slice, block: np.ndarray, points: np.ndarray) -> None:
            near = np.empty(len(points), points.dtype)
            self._ready(points.dtype).nearest_of(points, ids[part], near)
            distances_to(block, self.data_means, ids[part, None], distances[part, None])

        self._each_block(rows, self.dtype, use)
        return ids, distances

    def k_nearest(self, rows: ArrayRows, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The k nearest means (N, k) int32, nearest first, and squared distances (N, k) float64."""
        ids = np.empty((rows.n_samples, k), np.int32)
        distances = np.empty((rows.n_samples, k))

        def use(part: slice, block: np.ndarray, points: np.ndarray) -> None:
            near = np.empty((len(points), k), points.dtype)
            self._ready(points.dtype).k_nearest_of(points, ids[part], near)
            distances_to(block, self.data_means, ids[part], distances[part])

        self._each_block(rows, self.dtype, use)
        return ids, distances

    def log_density(self, rows: ArrayRows, variance: float) -> np.ndarray:
        """Exact log p(y) of every row (N,) float64, over all components (Eq. 1)."""
        out = np.empty(rows.n_samples)
        local_variance = variance * self.frame.scale**2
        ready = self._ready(np.dtype(np.float64))

        def use(part: slice, _block: np.ndarray, points: np.ndarray) -> None:
            ready.log_sum_of(points, 0.5 / local_variance, out[part])

        self._each_block(rows, np.dtype(np.float64), use)
        n_clusters, n_features = self.means.shape
        out -= math.log(n_clusters) + 0.5 * n_features * math.log(2 * math.pi * variance)
        return out
