"""Fitted parameters applied to rows, part by part: labels, neighbours, densities, quantization error."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from typing import Protocol, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from .algorithm.coreset.frame import Frame
from .algorithm.nearest import Centres
from .algorithm.passes.routing import Routing
from .data import Part, Rows
from .kernels.parts.distances import distances_to
from .parallel import Workers

#: Local coordinates beyond these (far from all the data of the fit) cannot be squared in float32, or at all.
SAFE_FLOAT32 = 1e15
SAFE_FLOAT64 = 1e150

#: What of a part is used: rows as given, and in local coordinates, and the places where results go.
Use = Callable[[slice, np.ndarray, np.ndarray], None]
T = TypeVar("T")

#: Up to so many components, comparing joints with all of them takes no longer than finding a way to the near ones.
FEW_COMPONENTS = 1024

#: Values of rows that find their way together, and rows at least: the more meet at a cluster, the faster.
VALUES_TOGETHER = 1 << 25
LEAST_TOGETHER = 8192

#: Beside the models, not in them: they are as quickly copied and pickled as before.
_routings: WeakKeyDictionary[object, tuple[np.ndarray, Way]] = WeakKeyDictionary()


class Way(Protocol):
    """Finds a near cluster of points at a cost that does not grow with C."""

    @property
    def means(self) -> np.ndarray:
        """(C, D), of the type computed in."""
        ...

    def labels_of(self, points: np.ndarray, workers: Workers) -> tuple[np.ndarray, int]:
        """A near cluster (n,) int32 of points (n, D), and the number of distances computed."""
        ...


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

    def _points(self, part: Part, first: int, last: int, block: np.ndarray, dtype: np.dtype) -> np.ndarray:
        """A block in local coordinates, in float64 where float32 would not do."""
        points = self.frame.enter(block, dtype)
        largest = np.abs(points).max(initial=0.0)
        if largest < SAFE_FLOAT32:
            return points
        part.refuse_nonfinite(first, last)
        points = self.frame.enter(block, np.dtype(np.float64))
        if not np.abs(points).max() < SAFE_FLOAT64:
            raise ValueError(
                f"{part.owner.name} holds values so far from the data of the fit that their squares overflow: the "
                f"first of them is in rows {part.first + first} to {part.first + last - 1}. Check their units."
            )
        return points

    def _each_block(self, part: Part, dtype: np.dtype, use: Use) -> None:
        """Call use(place, block, points) for every block of a part, as given and in local coordinates."""
        for first, last in part.bounds():
            block = part.block(first, last)
            use(slice(first, last), block, self._points(part, first, last, block, dtype))

    def _in_order(self, rows: Rows, work: Callable[[Part], T]) -> Generator[tuple[Part, T], None, None]:
        """Every part with what is made of it, on all threads."""
        for dtype in (self.dtype, np.dtype(np.float64)):
            self._ready(dtype)
        with closing(self.workers.in_order(work, rows.parts())) as parts:
            for part, result in parts:
                yield part, result
                self.advance(len(part))

    def label_pieces(self, rows: Rows) -> Generator[np.ndarray, None, None]:
        """Nearest mean, some (n,) int32 at a time."""

        def work(part: Part) -> np.ndarray:
            ids = np.empty(len(part), np.int32)

            def use(place: slice, _block: np.ndarray, points: np.ndarray) -> None:
                ids[place] = self._label(points)

            self._each_block(part, self.dtype, use)
            return ids

        with closing(self._in_order(rows, work)) as parts:
            for _, ids in parts:
                yield ids

    def _nearest_parts(
        self, rows: Rows, k: int
    ) -> Generator[tuple[Part, tuple[np.ndarray, np.ndarray]], None, None]:
        """The k nearest means (n, k) int32, nearest first, and squared distances (n, k) float64, part by part."""

        def work(part: Part) -> tuple[np.ndarray, np.ndarray]:
            ids, distances = np.empty((len(part), k), np.int32), np.empty((len(part), k))

            def use(place: slice, block: np.ndarray, points: np.ndarray) -> None:
                ready = self._ready(points.dtype)
                near = np.empty((len(points), k), points.dtype)
                if k == 1:
                    ready.nearest_of(points, ids[place, 0], near[:, 0])
                else:
                    ready.k_nearest_of(points, ids[place], near)
                distances_to(block, self.data_means, ids[place], distances[place])

            self._each_block(part, self.dtype, use)
            return ids, distances

        return self._in_order(rows, work)

    def log_density_parts(self, rows: Rows, variance: float) -> Generator[tuple[Part, np.ndarray], None, None]:
        """Exact log p(y) of every row (n,) float64, over all components (Eq. 1), part by part."""
        n_clusters, n_features = self.means.shape
        constant = math.log(n_clusters) + 0.5 * n_features * math.log(2 * math.pi * variance)
        rate = 0.5 / (variance * self.frame.scale**2)

        def work(part: Part) -> np.ndarray:
            out = np.empty(len(part))

            def use(place: slice, _block: np.ndarray, points: np.ndarray) -> None:
                self._ready(np.dtype(np.float64)).log_sum_of(points, rate, out[place])

            self._each_block(part, np.dtype(np.float64), use)
            out -= constant
            return out

        return self._in_order(rows, work)

    def routing(self, owner: object, neighbors: np.ndarray) -> Way:
        """What `near_label_pieces` needs, made once for an owner of means, and again when it has others."""
        means, routing = _routings.get(owner, (None, None))
        if routing is None or means is not self.data_means or routing.means.dtype != self.dtype:
            routing = self._make_routing(neighbors)
            _routings[owner] = self.data_means, routing
        return routing

    def _make_routing(self, neighbors: np.ndarray) -> Way:
        return Routing(self.means, self.dtype, neighbors, self.workers)

    def _label(self, points: np.ndarray) -> np.ndarray:
        """The nearest mean of points in local coordinates, (n,) int32."""
        ids = np.empty(len(points), np.int32)
        self._ready(points.dtype).nearest_of(points, ids, np.empty(len(points), points.dtype))
        return ids

    def near_label_pieces(self, rows: Rows, routing: Way) -> Generator[np.ndarray, None, None]:
        """A mean that is near, and mostly the nearest, at a cost that does not grow with C; some at a time."""
        dtype = routing.means.dtype
        together = max(LEAST_TOGETHER, VALUES_TOGETHER // rows.n_features) // rows.rows_per_block + 1
        points = np.empty((min(together * rows.rows_per_block, rows.n_samples), rows.n_features), dtype)
        far: list[tuple[slice, np.ndarray]] = []
        n = 0

        def enter(part: Part) -> list[np.ndarray]:
            return [self._points(part, *bounds, part.block(*bounds), dtype) for bounds in part.bounds()]

        def labels() -> np.ndarray:
            ids, _ = routing.labels_of(points[:n], self.workers)
            for place, local in far:  # very rare: compared with all means
                ids[place] = self._label(local)
            far.clear()
            return ids

        with closing(self._in_order(rows, enter)) as parts:
            for _, blocks in parts:
                for local in blocks:
                    place = slice(n, n + len(local))
                    if local.dtype == dtype:
                        points[place] = local
                    else:
                        points[place] = 0
                        far.append((place, local))
                    n += len(local)
                    if n == len(points):
                        yield labels()
                        n = 0
        if n:
            yield labels()

    def labels_and_error(self, rows: Rows, weights: np.ndarray | None) -> tuple[np.ndarray, float]:
        """Nearest mean (N,) int32, and the weighted sum of squared distances to it."""
        ids = np.empty(rows.n_samples, np.int32)
        total = BlockSum(weights)
        for part, (found, distances) in self._nearest_parts(rows, 1):
            ids[part.first : part.first + len(part)] = found[:, 0]
            total.add(part, distances[:, 0])
        return ids, total.value * rows.weight_unit

    def error(self, rows: Rows, weights: np.ndarray | None) -> float:
        """Weighted sum of squared distances to the nearest mean."""
        total = BlockSum(weights)
        for part, (_, distances) in self._nearest_parts(rows, 1):
            total.add(part, distances[:, 0])
        return total.value * rows.weight_unit

    def k_nearest(self, rows: Rows, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The k nearest means (N, k) int32, nearest first, and squared distances (N, k) float64."""
        ids, distances = np.empty((rows.n_samples, k), np.int32), np.empty((rows.n_samples, k))
        for part, found in self._nearest_parts(rows, k):
            here = slice(part.first, part.first + len(part))
            ids[here], distances[here] = found
        return ids, distances

    def mean_log_density(self, rows: Rows, variance: float, weights: np.ndarray | None) -> float:
        """Weighted mean of log p(y)."""
        total = BlockSum(weights)
        for part, found in self.log_density_parts(rows, variance):
            total.add(part, found)
        return total.value / total.mass


def gathered(pieces: Iterable[np.ndarray], out: np.ndarray) -> np.ndarray:
    """Pieces one after the other in one array, which they fill."""
    n = 0
    for piece in pieces:
        out[n : n + len(piece)] = piece
        n += len(piece)
    return out


class BlockSum:
    """A weighted sum over rows, taken block by block: the same however they are read.

    Parameters
    ----------
    weights : (N,) float64 or None
        None: those that the rows come with, if any.
    """

    def __init__(self, weights: np.ndarray | None) -> None:
        self._weights = weights
        self.value = 0.0
        self.mass = 0.0

    def add(self, part: Part, values: np.ndarray) -> None:
        """Add the values (n,) of a part's rows."""
        mass = part.weights(self._weights)
        for first, last in part.bounds():
            if mass is None:
                self.value += float(values[first:last].sum())
                self.mass += last - first
            else:
                self.value += float((mass[first:last] * values[first:last]).sum())
                self.mass += float(mass[first:last].sum())
