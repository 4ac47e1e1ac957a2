"""Blocked search over clusters with weights and variances of their own."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...kernels.joint_links import link_joint_groups
from ..blocked import RESORT_SHARE, BlockedSearch
from ..cells import LINKED_EVERY, Neighbourhoods, sort_by_cluster
from .cells import Extent, JointSums, feature_sums
from .mixture import Mixture, Natural
from .mstep import JointStatistics


class JointNeighbourhoods(Neighbourhoods):
    """G_c and shared candidates, ranked by the mean log joint over a cluster's members."""

    natural: Natural

    def update_to(self, natural: Natural) -> int:
        """Find neighbours and candidates for these clusters; returns the number of costs computed."""
        self.natural = natural
        return self.update(natural.means)

    def link_anew(self) -> None:
        """Let the next update find all neighbours anew."""
        self.n_updates += -self.n_updates % LINKED_EVERY

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
        self.sums, self.squares = feature_sums(self.points, self.weights, self.workers)

    def joint_e_step(self, mixture: Mixture) -> JointStatistics:
        """New winners and neighbours, and the sums of the M-step."""
        natural = mixture.natural(self.points.dtype)
        linked = self.compare_joints().update_to(natural)
        order, start = sort_by_cluster(self.winners[:, 0], len(natural.means))
        if self._misplaced > RESORT_SHARE * len(order):
            order = self._put_in_order(order)
        extent = Extent(self.total_weight, self._quanta.absolute, self.squares)
        sums = JointSums(natural, extent, self.workers)
        sums.search(self.points, self.weights, self.winners, order, start, self.neighbourhoods.candidates)
        self._misplaced += sums.n_moved
        return sums.statistics(linked)

    def link_anew(self) -> None:
        """Let the next E-step find all neighbours anew: clusters have come or gone."""
        if self._joint is not None:
            self._joint.link_anew()

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
