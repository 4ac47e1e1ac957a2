"""E-steps over all rows, a chunk at a time: sums are kept, and of every row its nearest cluster alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from ...data import Part, Rows
from ...parallel import Workers
from ..cells.extent import Extent
from ..cells.natural import Natural
from ..cells.neighbourhoods import Neighbourhoods, sort_by_cluster
from ..cells.sums import Sums, Totals
from ..coreset.frame import Frame
from ..estep import scatter_of
from ..mstep import LocalStatistics, Statistics, initial_variance
from ..nearest import nearest
from ..random import generator
from ..settings import Settings
from .routing import Routing, finds_its_way

#: What its random numbers are for, beside the purposes of `attempts`.
ROW_SEARCH = 16

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


class RowSearch:
    """E-steps over rows that are read anew in each of them.

    In the first pass a near cluster of every row is found by `Routing`, later it is the nearest of the pass
    before.  From there rows search as in the blocked search: the candidates that the rows of a cluster share.

    Parameters
    ----------
    rows : Rows
    weights : (N,) float64 or None
        None: those that the rows come with, if any.
    extent : Extent
        In local coordinates.
    frame : Frame
    settings : Settings
    variance_floor : float
    workers : Workers
    advance : callable
        Told how many rows have been read since the last call.
    """

    def __init__(
        self,
        rows: Rows,
        weights: np.ndarray | None,
        extent: Extent,
        frame: Frame,
        settings: Settings,
        variance_floor: float,
        workers: Workers,
        advance: Callable[[int], None],
    ) -> None:
        self.rows = rows
        self.weights = weights
        self.frame = frame
        self.n_clusters, self.truncation = settings.n_components, settings.truncation
        self.extent = extent
        self.variance_floor = variance_floor
        self.workers = workers
        self.advance = advance
        self.total_weight = extent.total_weight
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
        totals, n_evaluations = self._plain_pass(means, -1.0)
        return self.error, totals.n_evaluations + n_evaluations

    def e_step(self, means: np.ndarray, variance: float | None) -> Statistics:
        """A pass over all rows, for the sums of the M-step."""
        if variance is None:
            self.warm_up(means)
            variance = initial_variance(self.error, self.total_weight, means.shape[1], self.variance_floor)
        totals, n_evaluations = self._plain_pass(means, 0.5 / variance)
        used = means.astype(self.frame.dtype)
        return LocalStatistics.of(used, variance, totals, self.total_weight, n_evaluations, workers=self.workers)

    def scatter(self, statistics: Statistics, means: np.ndarray) -> float:
        """Scatter about other means, by one more pass in which rows search from the cluster they are at now."""
        sums = self._no_sums(Natural.shared(statistics.means.astype(self.frame.dtype)))
        total = 0.0
        for chunk in self._chunks():
            winners = self._search(chunk, self._start(chunk)[0], -1.0, sums)
            total += scatter_of(
                chunk.points, chunk.weights, winners, statistics.means, statistics.variance, means, self.workers
            )
        return total

    def _plain_pass(self, means: np.ndarray, precision: float) -> tuple[Totals, int]:
        """A pass by distances; remembers the error."""
        sums, n_evaluations = self._pass(Natural.shared(means.astype(self.frame.dtype)), precision)
        totals = sums.totals()
        self.error = totals.error
        return totals, n_evaluations

    def _pass(self, natural: Natural, precision: float) -> tuple[Sums, int]:
        """Sums over all rows, and the number of costs computed beside those of the search."""
        n_evaluations = self._neighbourhoods.update(natural)
        if self._means is None:
            n_evaluations += self._prepare(natural)
        remembered = self._labels
        if remembered is None and self.rows.n_samples <= REMEMBERED:
            remembered = np.empty(self.rows.n_samples, np.int32)
        sums = self._no_sums(natural)
        for chunk in self._chunks():
            labels, found = self._start(chunk)
            winners = self._search(chunk, labels, precision, sums)
            if remembered is not None:
                remembered[chunk.first : chunk.first + len(labels)] = winners[:, 0]
            n_evaluations += found
            self.advance(len(labels))
        self._labels = remembered
        return sums, n_evaluations

    def _no_sums(self, natural: Natural) -> Sums:
        """Before the first row."""
        return Sums(natural, self.extent.rounding(natural), self.workers)

    def _prepare(self, natural: Natural) -> int:
        """Make ready for rows of which nothing is known; returns the number of distances computed."""
        self._means = means = natural.means
        # One look at clusters from random groups is not enough to know the nearest of each.
        n_evaluations = self._neighbourhoods.update(natural)
        if finds_its_way(*means.shape) and self.rows.n_samples > len(means):
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

    def _search(self, chunk: Chunk, labels: np.ndarray, precision: float, sums: Sums) -> np.ndarray:
        """Winners (n, C') int32 of a chunk from a near cluster of each row; adds to the sums."""
        winners = np.full((len(labels), self.truncation), -1, np.int32)
        winners[:, 0] = labels
        order, start = sort_by_cluster(labels, self.n_clusters)
        candidates = self._neighbourhoods.candidates
        sums.search(chunk.points, chunk.weights, winners, order, start, candidates, precision)
        return winners
