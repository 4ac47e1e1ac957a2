"""The blocked E-step over the points of cells, and the sums of the M-step that it adds to: one for all models."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...kernels.parts.selection import key_indices, key_type
from ...kernels.search.blocked import search_tasks
from ...kernels.search.short_survey import pays
from ...parallel import Workers
from .extent import Rounding
from .natural import Natural
from .neighbourhoods import cut_into_tasks
from .thread_sums import ThreadSums

#: Effort for every candidate of a point beside its features: selection, and what follows for winners.
SELECTION = 32


@dataclass(frozen=True)
class Totals:
    """Sums over points.

    Attributes
    ----------
    facts : (6,) float64
        Those of `kernels.search.blocked.search_tasks`, of which the properties are.
    shifts : (C, D) float64
        sum_n gamma s_c (y - mu_c).
    scatters : (C, V) float64 or None
        sum_n gamma s_c (y - mu_c)^2, by feature for V = D, over all features for V = 1.
    masses : (C,) float64
        R_c = sum_n gamma s_c.
    """

    facts: np.ndarray
    shifts: np.ndarray
    scatters: np.ndarray | None
    masses: np.ndarray

    @property
    def log_sum(self) -> float:
        """sum_n gamma log sum_{c in K(n)} exp(-cost precision)."""
        return float(self.facts[0])

    @property
    def scatter(self) -> float:
        """sum_n sum_c gamma s_c cost."""
        return float(self.facts[1])

    @property
    def error(self) -> float:
        """sum_n gamma cost of the first winner."""
        return float(self.facts[2])

    @property
    def weight(self) -> float:
        """sum_n gamma."""
        return float(self.facts[3])

    @property
    def n_moved(self) -> int:
        """Points whose first winner changed."""
        return int(self.facts[4])

    @property
    def n_evaluations(self) -> int:
        """Costs computed."""
        return int(self.facts[5])

    def __add__(self, other: Totals) -> Totals:
        """Of both sets of points together; the arrays are new."""
        return Totals(
            self.facts + other.facts,
            self.shifts + other.shifts,
            None if self.scatters is None or other.scatters is None else self.scatters + other.scatters,
            self.masses + other.masses,
        )


class Sums:
    """Sums of the M-step and of the bound over all points that have been searched.

    Parameters
    ----------
    natural : Natural
    rounding : Rounding
        Of the extent of all points whose sums will be added up.
    workers : Workers

    Attributes
    ----------
    cell_bounds, cell_masses : (C,) float64
        The parts of `Totals.log_sum` and of the weight of points whose first winner was c before the search.
    """

    def __init__(self, natural: Natural, rounding: Rounding, workers: Workers) -> None:
        n_clusters, n_squares = len(natural.means), natural.n_squares
        self.natural = natural
        self.rounding = rounding
        self.workers = workers
        scatters = [(n_clusters, 2, n_squares)] if n_squares else []
        self._sums = ThreadSums(workers, natural.means.shape, (n_clusters,), *scatters)
        self._facts = np.zeros(6)
        self.cell_bounds, self.cell_masses = np.zeros(n_clusters), np.zeros(n_clusters)

    def search(
        self,
        points: np.ndarray,
        weights: np.ndarray,
        winners: np.ndarray,
        order: np.ndarray,
        start: np.ndarray,
        candidates: np.ndarray,
        precision: float = 1.0,
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
        precision : float
            1 / (2 sigma^2) where clusters share a variance; negative: the first winner takes all.
        """
        natural, rounding = self.natural, self.rounding
        task_cell, task_start = cut_into_tasks(start)
        n_candidates = candidates.shape[1]
        indices = key_indices(n_candidates, key_type(points.dtype, n_candidates))
        facts = np.zeros((len(task_cell), 6))
        farthest = natural.farthest
        in_steps = None  # not even compiled
        if not natural.n_squares and pays(points.dtype, points.shape[1], winners.shape[1]):
            in_steps = True

        def work(thread: int, first: int, last: int) -> None:
            shifts, masses, *scatters = self._sums.of(thread)
            search_tasks(
                first, last, task_cell, task_start, points, weights, order, candidates, natural.means,
                natural.precisions, natural.offsets, winners, precision, indices, in_steps, farthest,
                rounding.shifts, rounding.scatters, rounding.rows, rounding.masses, shifts,
                scatters[0] if scatters else None, masses, facts,
            )  # fmt: skip

        effort = len(points) * n_candidates * (points.shape[1] + SELECTION)
        self.workers.run(work, len(task_cell), effort)
        self._facts += facts.sum(axis=0)
        if natural.n_squares:
            self.cell_bounds += np.bincount(task_cell, facts[:, 0], len(natural.means))
            self.cell_masses += np.bincount(task_cell, facts[:, 3], len(natural.means))

    @property
    def n_moved(self) -> int:
        """Points whose first winner has changed."""
        return int(self._facts[4])

    def totals(self) -> Totals:
        """All sums; to be asked for once, since the threads' own are gone then."""
        shifts, masses, *scatters = self._sums.total()
        return Totals(self._facts, shifts, scatters[0].sum(axis=1) if scatters else None, masses)
