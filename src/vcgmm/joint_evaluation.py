"""Fitted mixtures with weights and variances of their own applied to rows, part by part."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing

import numpy as np

from .algorithm.coreset.frame import Frame
from .algorithm.models.exact import Joints
from .algorithm.models.mixture import Mixture
from .algorithm.models.routing import JointRouting
from .data import Part, Rows
from .evaluation import Evaluator, Way, gathered
from .parallel import Workers

_WIDE = np.dtype(np.float64)


class JointEvaluator(Evaluator):
    """A mixture in the coordinates of a fit, and exact searches over all its clusters, in float64.

    Labels and densities are those of the mixture; distances and errors are still those to the means.

    Parameters
    ----------
    mixture : Mixture, in data coordinates
    frame : Frame
    workers : Workers
    advance : callable
        Told how many rows have been done since the last call.
    """

    def __init__(self, mixture: Mixture, frame: Frame, workers: Workers, advance: Callable[[int], None]) -> None:
        super().__init__(mixture.means, frame, workers, advance)
        self.local = Mixture(self.means, mixture.variances * frame.scale**2, mixture.weights)
        self.joints = Joints(self.local)

    def label_pieces(self, rows: Rows) -> Generator[np.ndarray, None, None]:
        """The cluster with the largest posterior, some (n,) int32 at a time."""

        def work(part: Part) -> np.ndarray:
            ids = np.empty(len(part), np.int32)

            def use(place: slice, _block: np.ndarray, points: np.ndarray) -> None:
                ids[place] = self._label(points)

            self._each_block(part, _WIDE, use)
            return ids

        with closing(self._in_order(rows, work)) as parts:
            for _, ids in parts:
                yield ids

    def _label(self, points: np.ndarray) -> np.ndarray:
        """The cluster with the largest posterior for points in local coordinates, (n,) int32."""
        return self.joints.labels(points)

    def _make_routing(self, neighbors: np.ndarray) -> Way:
        return JointRouting(self.local, self.dtype, neighbors, self.workers)

    def labels_and_error(self, rows: Rows, weights: np.ndarray | None) -> tuple[np.ndarray, float]:
        """The cluster with the largest posterior, (N,) int32; the weighted error of the nearest means."""
        labels = gathered(self.label_pieces(rows), np.empty(rows.n_samples, np.int32))
        return labels, self.error(rows, weights)

    def largest(self, rows: Rows, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The k clusters with the largest joints, (N, k) int32, and their logs less a row's largest."""
        k = min(k, len(self.joints.clusters))
        ids, logs = np.empty((rows.n_samples, k), np.int32), np.empty((rows.n_samples, k))

        def work(part: Part) -> None:
            def use(place: slice, _block: np.ndarray, points: np.ndarray) -> None:
                here = slice(part.first + place.start, part.first + place.stop)
                ids[here], found = self.joints.largest(points, k)
                logs[here] = found - found[:, :1]

            self._each_block(part, _WIDE, use)

        for _ in self._in_order(rows, work):
            pass
        return ids, logs

    def log_density_parts(
        self,
        rows: Rows,
        variance: float,  # noqa: ARG002 (the mixture has its own)
    ) -> Generator[tuple[Part, np.ndarray], None, None]:
        """Exact log p(y) of every row (n,) float64, over all components, part by part."""
        constant = self.means.shape[1] * self.frame.log_scale

        def work(part: Part) -> np.ndarray:
            out = np.empty(len(part))

            def use(place: slice, _block: np.ndarray, points: np.ndarray) -> None:
                out[place] = self.joints.log_density(points) + constant

            self._each_block(part, _WIDE, use)
            return out

        return self._in_order(rows, work)
