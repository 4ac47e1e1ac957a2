"""Blocked search over clusters with weights and variances of their own."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...kernels.exact_sums import rounding_constant
from ...kernels.joint import farthest_square, search_joints
from ...kernels.joint_links import link_joint_groups
from ...kernels.selection import key_indices, key_type
from ..blocked import RESORT_SHARE, BlockedSearch
from ..cells import LINKED_EVERY, Neighbourhoods, cut_into_tasks, sort_by_cluster
from ..estep import FAR
from .mixture import Mixture, Natural
from .mstep import JointStatistics

#: Sums of squares are good to so many times the type's precision.
NOISE = 8.0


class JointNeighbourhoods(Neighbourhoods):
    """G_c and shared candidates, ranked by the mean log joint over a cluster's members."""

    natural: Natural

    def update_to(self, natural: Natural) -> int:
        """Find neighbours and candidates for these clusters; returns the number of costs computed."""
        self.natural = natural
        return self.update(natural.means)

    def _link_groups(
        self,
        start: np.ndarray,
        order: np.ndarray,
        near_groups: np.ndarray,
        known: np.ndarray,
        pool_size: int,
        means: np.ndarray,
        nearest: np.ndarray,
        counts: np.ndarray,
    ) -> None:
        now = self.natural

        def link(_thread: int, first: int, last: int) -> None:
            link_joint_groups(
                first, last, start, order, near_groups, known, pool_size, means, now.variances, now.precisions,
                now.offsets, self.neighbors, nearest, counts,
            )  # fmt: skip

        self.workers.run(link, len(counts))


class JointSearch(BlockedSearch):
    """A blocked search whose E-steps may also be those of clusters with weights and variances of their own.

    Parameters as those of `BlockedSearch`.  It goes on from the winners of the E-steps before; neighbourhoods are
    found anew, by costs.

    Attributes
    ----------
    sums, squares : (D,) float64
        sum_n gamma y_d and sum_n gamma y_d^2.
    """

    _joint: JointNeighbourhoods | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Before the points are put in another order, which would change the last bits.
        self.sums, self.squares = self._feature_sums()

    def joint_e_step(self, mixture: Mixture) -> JointStatistics:
        """New winners and neighbours, and the sums of the M-step."""
        natural = mixture.natural(self.points.dtype)
        n_clusters = len(natural.means)
        linked = self.compare_joints().update_to(natural)
        order, start = sort_by_cluster(self.winners[:, 0], n_clusters)
        if self._misplaced > RESORT_SHARE * len(order):
            order = self._put_in_order(order)
        task_cell, task_start = cut_into_tasks(start)
        candidates = self.neighbourhoods.candidates
        n_candidates = candidates.shape[1]
        indices = key_indices(n_candidates, key_type(self.points.dtype, n_candidates))
        shift_magic, magic_row, mass_magic = self._quanta.magic_numbers(natural.means)
        scatter_magic = self._scatter_magic(natural, magic_row, shift_magic.shape[0])
        farthest = farthest_square(self.points.dtype)
        n_threads = self.workers.n_threads
        shifts = np.zeros((n_threads, *natural.means.shape))
        scatters = np.zeros((n_threads, n_clusters, 2, natural.precisions.shape[1]))
        masses = np.zeros((n_threads, n_clusters))
        facts = np.zeros((len(task_cell), 4))

        def work(thread: int, first: int, last: int) -> None:
            search_joints(
                first, last, task_cell, task_start, self.points, self.weights, order, candidates, natural.means,
                natural.precisions, natural.offsets, self.winners, indices, farthest, shift_magic, scatter_magic,
                magic_row, mass_magic, shifts[thread], scatters[thread], masses[thread], facts,
            )  # fmt: skip

        self.workers.run(work, len(task_cell))
        totals = facts.sum(axis=0)
        self._misplaced += int(totals[2])
        cell_masses = np.bincount(task_cell, facts[:, 1], n_clusters)
        return JointStatistics(
            means=natural.means.astype(np.float64),
            shifts=shifts.sum(axis=0),
            scatters=scatters.sum(axis=0).sum(axis=1),
            masses=masses.sum(axis=0),
            log_sum=float(totals[0]) - self.total_weight * natural.constant,
            cell_bounds=np.bincount(task_cell, facts[:, 0], n_clusters) - cell_masses * natural.constant,
            cell_masses=cell_masses,
            n_evaluations=int(totals[3]) + linked,
            noise=NOISE * float(np.finfo(self.points.dtype).eps),
        )

    def link_anew(self) -> None:
        """Let the next E-step find all neighbours anew: clusters have come or gone."""
        if self._joint is not None:
            self._joint.n_updates += -self._joint.n_updates % LINKED_EVERY

    def compare_joints(self) -> JointNeighbourhoods:
        """Rank clusters by joints from now on; the neighbourhoods."""
        if self._joint is None:
            old = self.neighbourhoods
            n_candidates = old.nearest.shape[1]
            self._joint = JointNeighbourhoods(
                len(old.neighbors), old.neighbors.shape[1], n_candidates, old.n_explore, old.seed + 1, self.workers
            )
            self._joint.nearest[:] = old.nearest
            self.neighbourhoods = self._joint
        return self._joint

    def _scatter_magic(self, natural: Natural, magic_row: np.ndarray, n_rows: int) -> np.ndarray:
        """Rounding constants for sums of squares (k, V): none exceeds 2 sum gamma y_d^2 + 2 mu_cd^2 sum gamma."""
        reach = FAR * self._quanta.absolute / self.total_weight
        largest = np.tile(reach, (n_rows, 1))
        far = np.flatnonzero(magic_row)
        largest[magic_row[far]] = np.maximum(reach, np.abs(natural.means[far]).astype(np.float64))
        limit = 2 * (self.squares + largest**2 * self.total_weight)
        if natural.precisions.shape[1] != natural.means.shape[1]:
            limit = limit.sum(axis=1, keepdims=True)
        return rounding_constant(limit)

    def _feature_sums(self) -> tuple[np.ndarray, np.ndarray]:
        """sum_n gamma y_d and sum_n gamma y_d^2, (D,) each, in blocks that do not depend on the threads."""
        n_features = self.points.shape[1]
        step = max(1, (1 << 18) // n_features)
        sums = np.empty((-(-len(self.points) // step), 2, n_features))

        def work(_thread: int, first: int, last: int) -> None:
            for i in range(first, last):
                rows = self.points[i * step : (i + 1) * step].astype(np.float64)
                weights = self.weights[i * step : (i + 1) * step]
                sums[i] = weights @ rows, weights @ rows**2

        self.workers.run(work, len(sums))
        total = sums.sum(axis=0)
        return total[0], total[1]
