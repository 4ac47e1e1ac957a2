"""E-steps over all rows, a chunk at a time: sums are kept, and of every row its nearest cluster alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from ..data import Part, Rows
from ..kernels.blocked import search_tasks
from ..kernels.selection import key_indices, key_type
from ..parallel import Workers
from .cells import Neighbourhoods, cut_into_tasks, sort_by_cluster
from .estep import magic_numbers, scatter_of
from .frame import Frame
from .mstep import Statistics, initial_variance
from .nearest import nearest
from .random import generator
from .routing import Routing
from .settings import Settings

#: What its random numbers are for, beside the purposes of `attempts`.
ROW_SEARCH = 16

#: Up to so many clusters, all of them are compared with a row of which nothing is known.
ALL_COMPARED = 2048

#: Rows of a chunk for each cluster: with few, a cluster's candidates are made ready for hardly any row …
ROWS_PER_CLUSTER = 64

#: … but not more values than this in a chunk.
CHUNK_VALUES = 1 << 26

#: Up to so many rows their clusters are remembered between passes, 4 bytes each; of more they are found anew.
REMEMBERED = 1 << 29


@dataclass(frozen=True)
class Chunk:
    """Some rows that follow one another.

    Attributes
    ----------
    first : int
        The row that it begins with.
    points : (n, D) float32 or float64
        In local coordinates.
    weights : (n,) float64
    """

    first: int
    points: np.ndarray
    weights: np.ndarray


@dataclass
class Sums:
    """Sums of the M-step, one of each for every thread: they are exact, so how they are shared does not matter."""

    shifts: np.ndarray
    masses: np.ndarray

    @classmethod
    def zeros(cls, n_threads: int, n_clusters: int, n_features: int) -> Sums:
        """Before the first row."""
        return cls(np.zeros((n_threads, n_clusters, n_features)), np.zeros((n_threads, n_clusters)))


class RowSearch:
    """E-steps over rows that are read anew in each of them.

    In the first pass a near cluster of every row is found by `Routing`, later it is the nearest of the pass
    before.  From there rows search as in the blocked search: the candidates that the rows of a cluster share.

    Parameters
    ----------
    rows : Rows
    weights : (N,) float64 or None
        None: those that the rows come with, if any.
    total_weight : float
    frame : Frame
    settings : Settings
    absolute : (D,) float64
        Not less than sum_n gamma |y_nd| in local coordinates, for the exact sums.
    variance_floor : float
    workers : Workers
    advance : callable
        Told how many rows have been read since the last call.
    """

    def __init__(
        self,
        rows: Rows,
        weights: np.ndarray | None,
        total_weight: float,
        frame: Frame,
        settings: Settings,
        absolute: np.ndarray,
        variance_floor: float,
        workers: Workers,
        advance: Callable[[int], None],
    ) -> None:
        self.rows = rows
        self.weights = weights
        self.frame = frame
        self.n_clusters, self.truncation = settings.n_components, settings.truncation
        self.absolute = absolute
        self.variance_floor = variance_floor
        self.workers = workers
        self.advance = advance
        self.total_weight = total_weight
        self.error = math.nan  # weighted squared distance to the nearest winners, in the last pass
        self._rng = generator(settings.seed, ROW_SEARCH)
        self._neighbourhoods = Neighbourhoods(
            settings.n_components,
            settings.n_neighbors,
            max(settings.n_candidates, settings.truncation),
            settings.n_explore,
            int(self._rng.integers(1 << 62)),
            workers,
        )
        self._means: np.ndarray | None = None
        self._routing: Routing | None = None
        self._labels: np.ndarray | None = None

    @property
    def neighbors(self) -> np.ndarray:
        """G_c, (C, G) int32."""
        return self._neighbourhoods.neighbors

    def warm_up(self, means: np.ndarray) -> tuple[float, int]:
        """A pass without responsibilities: error of the nearest winners, distances computed."""
        statistics = self._pass(means.astype(self.frame.dtype), math.nan)
        return self.error, statistics.n_evaluations

    def e_step(self, means: np.ndarray, variance: float | None) -> Statistics:
        """A pass over all rows, for the sums of the M-step."""
        if variance is None:
            self.warm_up(means)
            variance = initial_variance(self.error, self.total_weight, means.shape[1], self.variance_floor)
        return self._pass(means.astype(self.frame.dtype), variance)

    def scatter(self, statistics: Statistics, means: np.ndarray) -> float:
        """Scatter about other means, by one more pass in which rows search from the cluster they are at now."""
        used = statistics.means.astype(self.frame.dtype)
        sums = Sums.zeros(self.workers.n_threads, *used.shape)
        total = 0.0
        for chunk in self._chunks():
            winners, _ = self._search(chunk, self._start(chunk)[0], used, -1.0, sums)
            total += scatter_of(
                chunk.points, chunk.weights, winners, statistics.means, statistics.variance, means, self.workers
            )
        return total

    def _pass(self, means: np.ndarray, variance: float) -> Statistics:
        n_evaluations = self._neighbourhoods.update(means)
        if self._means is None:
            n_evaluations += self._prepare(means)
        precision = -1.0 if math.isnan(variance) else 0.5 / variance
        remembered = self._labels
        if remembered is None and self.rows.n_samples <= REMEMBERED:
            remembered = np.empty(self.rows.n_samples, np.int32)
        sums = Sums.zeros(self.workers.n_threads, *means.shape)
        facts = np.zeros(5)
        for chunk in self._chunks():
            labels, found = self._start(chunk)
            winners, of_chunk = self._search(chunk, labels, means, precision, sums)
            if remembered is not None:
                remembered[chunk.first : chunk.first + len(labels)] = winners[:, 0]
            facts += of_chunk
            n_evaluations += found
            self.advance(len(labels))
        self._labels = remembered
        self.error = float(facts[2])
        return Statistics(
            means=means.astype(np.float64),
            variance=variance,
            shifts=sums.shifts.sum(axis=0),
            masses=sums.masses.sum(axis=0),
            scatter=float(facts[1]),
            log_sum=float(facts[0]),
            total_weight=self.total_weight,
            n_evaluations=n_evaluations + int(facts[4]),
        )

    def _prepare(self, means: np.ndarray) -> int:
        """Make ready for rows of which nothing is known; returns the number of distances computed."""
        self._means = means
        # One look at clusters from random groups is not enough to know the nearest of each.
        n_evaluations = self._neighbourhoods.update(means)
        if len(means) > ALL_COMPARED and self.rows.n_samples > len(means):
            self._routing = Routing(means, means.dtype, self.neighbors, self.workers)
            n_evaluations += self._routing.n_evaluations
        return n_evaluations

    def _chunks(self) -> Iterator[Chunk]:
        """All rows in their order; where chunks begin depends on the shapes alone."""
        rows = self.rows
        most = max(1, min(ROWS_PER_CLUSTER * self.n_clusters, CHUNK_VALUES // rows.n_features))
        size = max(1, most // rows.rows_per_block) * rows.rows_per_block
        first = n = 0
        points, weights = self._room(first, size)
        with closing(self.workers.in_order(self._enter, rows.parts())) as parts:
            for part, local in parts:
                mass = part.weights(self.weights)
                done = 0
                while done < len(part):
                    step = min(len(part) - done, len(points) - n)
                    points[n : n + step] = local[done : done + step]
                    if mass is not None:
                        weights[n : n + step] = mass[done : done + step]
                    done, n = done + step, n + step
                    if n == len(points):
                        yield Chunk(first, points, weights)
                        first, n = first + n, 0
                        points, weights = self._room(first, size)

    def _room(self, first: int, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Where the points and weights of a chunk from row `first` on go."""
        n = min(size, self.rows.n_samples - first)
        return np.empty((n, self.rows.n_features), self.frame.dtype), np.ones(n)

    def _enter(self, part: Part) -> np.ndarray:
        """A part in local coordinates."""
        points = np.empty(part.rows.shape, self.frame.dtype)
        for first, last in part.bounds():
            points[first:last] = self.frame.enter(part.block(first, last))
        return points

    def _start(self, chunk: Chunk) -> tuple[np.ndarray, int]:
        """A near cluster of every row of a chunk, (n,) int32, and the number of distances computed."""
        if self._labels is not None:
            return self._labels[chunk.first : chunk.first + len(chunk.points)], 0
        if self._routing is not None:
            return self._routing.labels_of(chunk.points, self.workers)
        if self._means is None:
            raise RuntimeError("rows are searched before the means are known.")
        labels, _ = nearest(chunk.points, self._means, self.workers)
        return labels, len(labels) * self.n_clusters

    def _search(
        self, chunk: Chunk, labels: np.ndarray, means: np.ndarray, precision: float, sums: Sums
    ) -> tuple[np.ndarray, np.ndarray]:
        """Winners (n, C') int32 of a chunk, and its facts as in `search_tasks`; adds to the sums."""
        winners = np.full((len(labels), self.truncation), -1, np.int32)
        winners[:, 0] = labels
        order, start = sort_by_cluster(labels, self.n_clusters)
        task_cell, task_start = cut_into_tasks(start)
        candidates = self._neighbourhoods.candidates
        indices = key_indices(candidates.shape[1], key_type(chunk.points.dtype, candidates.shape[1]))
        shift_magic, magic_row, mass_magic = magic_numbers(self.absolute, self.total_weight, means)
        facts = np.zeros((len(task_cell), 5))

        def work(thread: int, first: int, last: int) -> None:
            search_tasks(
                first, last, task_cell, task_start, chunk.points, chunk.weights, order, candidates, means,
                winners, precision, indices, shift_magic, magic_row, mass_magic,
                sums.shifts[thread], sums.masses[thread], facts,
            )  # fmt: skip

        self.workers.run(work, len(task_cell))
        return winners, facts.sum(axis=0)
