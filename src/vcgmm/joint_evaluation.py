"""Fitted mixtures with weights and variances of their own applied to rows, block by block."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .algorithm.frame import Frame
from .algorithm.models.exact import Joints
from .algorithm.models.mixture import Mixture
from .data import ArrayRows
from .evaluation import Evaluator
from .parallel import Workers


class JointEvaluator(Evaluator):
    """A mixture in the coordinates of a fit, and exact searches over all its clusters, in float64.

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
        self.joints = Joints(Mixture(self.means, mixture.variances * frame.scale**2, mixture.weights))

    def labels(self, rows: ArrayRows) -> np.ndarray:
        """The cluster with the largest posterior, (N,) int32."""
        ids = np.empty(rows.n_samples, np.int32)

        def use(part: slice, _block: np.ndarray, points: np.ndarray) -> None:
            ids[part] = self.joints.labels(points)

        self._each_block(rows, np.dtype(np.float64), use)
        return ids

    def posteriors(self, rows: ArrayRows, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The k clusters with the largest posteriors, (N, k) int32, and these, (N, k), each row adding up to 1."""
        k = min(k, len(self.joints.clusters))
        ids, shares = np.empty((rows.n_samples, k), np.int32), np.empty((rows.n_samples, k))

        def use(part: slice, _block: np.ndarray, points: np.ndarray) -> None:
            ids[part], joints = self.joints.largest(points, k)
            found = np.exp(joints - joints[:, :1])
            shares[part] = found / found.sum(axis=1, keepdims=True)

        self._each_block(rows, np.dtype(np.float64), use)
        return ids, shares

    def log_densities(self, rows: ArrayRows) -> np.ndarray:
        """Log p(y) of every row, (N,) float64."""
        out = np.empty(rows.n_samples)
        constant = self.means.shape[1] * self.frame.log_scale

        def use(part: slice, _block: np.ndarray, points: np.ndarray) -> None:
            out[part] = self.joints.log_density(points) + constant

        self._each_block(rows, np.dtype(np.float64), use)
        return out
