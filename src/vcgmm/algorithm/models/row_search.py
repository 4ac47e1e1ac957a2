"""E-steps by joints over all rows, a chunk at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...data import Rows
from ...parallel import Workers
from ..cells import sort_by_cluster
from ..frame import Frame
from ..row_search import REMEMBERED, RowSearch
from ..settings import Settings
from .cells import Extent, JointSums
from .mixture import Mixture
from .mstep import JointStatistics
from .search import JointNeighbourhoods


class JointRowSearch(RowSearch):
    """E-steps over rows that are read anew in each of them, with clusters of their own weights and variances.

    In the first pass a near cluster of every row is found as in `RowSearch`, by distance; from there rows search
    by joints.  Parameters as those of `RowSearch`.
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
        super().__init__(rows, weights, total_weight, frame, settings, absolute, variance_floor, workers, advance)
        before = self._neighbourhoods
        self._joint = JointNeighbourhoods(
            settings.n_components,
            before.neighbors.shape[1],
            before.nearest.shape[1],
            settings.n_explore,
            before.seed,
            workers,
        )
        self._neighbourhoods = self._joint
        # In the frame of these rows the mean square of all features together is at most 2 for each.
        squares = np.full(rows.n_features, 2.0 * rows.n_features * total_weight)
        self.extent = Extent(total_weight, absolute, squares)

    def joint_e_step(self, mixture: Mixture) -> JointStatistics:
        """A pass over all rows, for the sums of the M-step."""
        natural = mixture.natural(self.frame.dtype)
        n_evaluations = self._joint.update_to(natural)
        if self._means is None:
            n_evaluations += self._prepare(natural.means)
        remembered = self._labels
        if remembered is None and self.rows.n_samples <= REMEMBERED:
            remembered = np.empty(self.rows.n_samples, np.int32)
        sums = JointSums(natural, self.extent, self.workers)
        for chunk in self._chunks():
            labels, found = self._start(chunk)
            winners = np.full((len(labels), self.truncation), -1, np.int32)
            winners[:, 0] = labels
            order, start = sort_by_cluster(labels, self.n_clusters)
            sums.search(chunk.points, chunk.weights, winners, order, start, self._joint.candidates)
            if remembered is not None:
                remembered[chunk.first : chunk.first + len(labels)] = winners[:, 0]
            n_evaluations += found
            self.advance(len(labels))
        self._labels = remembered
        return sums.statistics(n_evaluations)

    def link_anew(self) -> None:
        """Let the next E-step find all neighbours anew: clusters have come or gone."""
        self._joint.link_anew()
