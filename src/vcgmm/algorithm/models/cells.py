"""One search by joints over the points of cells, and the sums it adds to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...kernels.exact_sums import rounding_constant
from ...kernels.joint import farthest_square, search_joints
from ...kernels.selection import key_indices, key_type
from ...parallel import Workers
from ..cells import cut_into_tasks
from ..estep import FAR, magic_numbers
from .mixture import Natural
from .mstep import JointStatistics

#: Sums of squares are good to so many times the type's precision.
NOISE = 8.0


@dataclass(frozen=True)
class Extent:
    """How large sums over points can become, for exact sums.

    Attributes
    ----------
    total_weight : float
    absolute, squares : (D,) float64
        Not less than sum_n gamma |y_d| and sum_n gamma y_d^2.
    """

    total_weight: float
    absolute: np.ndarray
    squares: np.ndarray


@dataclass(frozen=True)
class Rounding:
    """Constants of exact sums: shifts (k, D), squares (k, V), each cluster's row in them (C,), and masses."""

    shifts: np.ndarray
    scatters: np.ndarray
    rows: np.ndarray
    masses: float

    @classmethod
    def of(cls, extent: Extent, natural: Natural) -> Rounding:
        """No sum of squares about a mean exceeds 2 sum gamma y_d^2 + 2 mu_cd^2 sum gamma."""
        shifts, rows, masses = magic_numbers(extent.absolute, extent.total_weight, natural.means)
        reach = FAR * extent.absolute / extent.total_weight
        largest = np.tile(reach, (len(shifts), 1))
        far = np.flatnonzero(rows)
        largest[rows[far]] = np.maximum(reach, np.abs(natural.means[far]).astype(np.float64))
        limit = 2 * (extent.squares + largest**2 * extent.total_weight)
        if natural.precisions.shape[1] != natural.means.shape[1]:
            limit = limit.sum(axis=1, keepdims=True)
        return cls(shifts, rounding_constant(limit), rows, masses)


class JointSums:
    """Sums of the M-step and of the bound over all points that have been searched.

    Parameters
    ----------
    natural : Natural
    extent : Extent
        Of all points that will be.
    workers : Workers

    Attributes
    ----------
    n_moved : int
        Points whose first winner has changed.
    n_evaluations : int
        Costs computed.
    """

    def __init__(self, natural: Natural, extent: Extent, workers: Workers) -> None:
        n_clusters, n_squares = len(natural.means), natural.precisions.shape[1]
        self.natural = natural
        self.extent = extent
        self.workers = workers
        self.rounding = Rounding.of(extent, natural)
        # One of each for every thread: they are exact, so how they are shared does not matter.
        self._shifts = np.zeros((workers.n_threads, *natural.means.shape))
        self._scatters = np.zeros((workers.n_threads, n_clusters, 2, n_squares))
        self._masses = np.zeros((workers.n_threads, n_clusters))
        self._log_sum = 0.0
        self._cell_bounds, self._cell_masses = np.zeros(n_clusters), np.zeros(n_clusters)
        self.n_moved = self.n_evaluations = 0

    def search(
        self,
        points: np.ndarray,
        weights: np.ndarray,
        winners: np.ndarray,
        order: np.ndarray,
        start: np.ndarray,
        candidates: np.ndarray,
    ) -> None:
        """New winners of points, which are added to the sums.

        Parameters
        ----------
        points : (n, D) float
        weights : (n,) float64
        winners : (n, C') int32
            Changed in place.
        order, start
            From `sort_by_cluster`.
        candidates : (C, L) int32
        """
        natural, rounding = self.natural, self.rounding
        task_cell, task_start = cut_into_tasks(start)
        n_candidates = candidates.shape[1]
        indices = key_indices(n_candidates, key_type(points.dtype, n_candidates))
        farthest = farthest_square(points.dtype)
        facts = np.zeros((len(task_cell), 4))

        def work(thread: int, first: int, last: int) -> None:
            search_joints(
                first, last, task_cell, task_start, points, weights, order, candidates, natural.means,
                natural.precisions, natural.offsets, winners, indices, farthest, rounding.shifts,
                rounding.scatters, rounding.rows, rounding.masses, self._shifts[thread], self._scatters[thread],
                self._masses[thread], facts,
            )  # fmt: skip

        self.workers.run(work, len(task_cell))
        totals, n_clusters = facts.sum(axis=0), len(natural.means)
        self._log_sum += float(totals[0])
        self._cell_bounds += np.bincount(task_cell, facts[:, 0], n_clusters)
        self._cell_masses += np.bincount(task_cell, facts[:, 1], n_clusters)
        self.n_moved += int(totals[2])
        self.n_evaluations += int(totals[3])

    def statistics(self, n_evaluations: int) -> JointStatistics:
        """What the M-step needs, with so many costs computed elsewhere."""
        natural, total_weight = self.natural, self.extent.total_weight
        return JointStatistics(
            means=natural.means.astype(np.float64),
            shifts=self._shifts.sum(axis=0),
            scatters=self._scatters.sum(axis=0).sum(axis=1),
            masses=self._masses.sum(axis=0),
            log_sum=self._log_sum - total_weight * natural.constant,
            cell_bounds=self._cell_bounds - self._cell_masses * natural.constant,
            cell_masses=self._cell_masses,
            n_evaluations=self.n_evaluations + n_evaluations,
            noise=NOISE * float(np.finfo(natural.means.dtype).eps),
        )


def feature_sums(points: np.ndarray, weights: np.ndarray, workers: Workers) -> tuple[np.ndarray, np.ndarray]:
    """sum_n gamma y_d and sum_n gamma y_d^2, (D,) each, in blocks that do not depend on the threads."""
    n_features = points.shape[1]
    step = max(1, (1 << 18) // n_features)
    sums = np.empty((-(-len(points) // step), 2, n_features))

    def work(_thread: int, first: int, last: int) -> None:
        for i in range(first, last):
            rows = points[i * step : (i + 1) * step].astype(np.float64)
            mass = weights[i * step : (i + 1) * step]
            sums[i] = mass @ rows, mass @ rows**2

    workers.run(work, len(sums))
    total = sums.sum(axis=0)
    return total[0], total[1]
