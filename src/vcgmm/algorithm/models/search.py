"""Blocked search over clusters with weights and variances of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ...parallel import Workers
from ..search.blocked import BlockedSearch
from .mixture import Mixture
from .mstep import JointStatistics


class JointSearch(BlockedSearch):
    """A blocked search whose E-steps may also be those of clusters with weights and variances of their own.

    Parameters as those of `BlockedSearch`.  It goes on from the winners of the E-steps before; neighbourhoods are
    found anew, by costs.

    Attributes
    ----------
    sums, squares : (D,) float64
        sum_n gamma y_d and sum_n gamma y_d^2.
    """

    _by_joints = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Before the points are put in another order, which would change the last bits.
        self.sums, self.squares = feature_sums(self.points, self.weights, self.workers)
        self._extent = replace(self._extent, squares=self.squares)

    def joint_e_step(self, mixture: Mixture) -> JointStatistics:
        """New winners and neighbours, and the sums of the M-step."""
        self.compare_joints()
        return JointStatistics.of(*self._search(mixture.natural(self.points.dtype), 1.0))

    def link_anew(self) -> None:
        """Let the next E-step find all neighbours anew: clusters have come or gone."""
        if self._by_joints:
            self.neighbourhoods.link_anew()

    def compare_joints(self) -> None:
        """Rank clusters by joints from now on."""
        if not self._by_joints:
            self._by_joints = True
            self.neighbourhoods.begin_anew()


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
