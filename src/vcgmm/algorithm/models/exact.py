"""Exact searches over all clusters of a mixture, in float64.  Memory does not grow with N x C."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...kernels.cells.costs import farthest_square
from .mixture import Mixture

#: Costs in one block.
BLOCK_VALUES = 1 << 19


class Joints:
    """Log joints log p(c, y) of points in a mixture's coordinates; dropped clusters are left out.

    Parameters
    ----------
    mixture : Mixture
    """

    def __init__(self, mixture: Mixture) -> None:
        self.clusters = np.flatnonzero(mixture.active).astype(np.int32)
        means, precisions = mixture.means[self.clusters], 0.5 / mixture.variances[self.clusters]
        # log p(c, y) = constant_c + coefficients_c . (y, y^2), the squares added up where variances are by cluster
        self.coefficients = np.hstack([2 * precisions * means, -precisions])
        offsets, constant = mixture.offsets()
        offsets = offsets[self.clusters] + constant
        squares = (precisions * means**2).sum(axis=1)
        self.constants = -squares - offsets
        self.by_feature = precisions.shape[1] == means.shape[1]
        # A cluster that is narrow beside its distance from the origin would lose its digits in a product.
        far = np.flatnonzero(squares > farthest_square(np.dtype(np.float64)))
        self.directly = [(c, means[c], precisions[c], offsets[c]) for c in far]

    def blocks(self, points: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Log joints of points (n, D) with all clusters that are left: a range of points and (m, k) float64."""
        step = max(1, BLOCK_VALUES // len(self.clusters))
        for low in range(0, len(points), step):
            rows = points[low : low + step].astype(np.float64)
            squares = rows**2 if self.by_feature else (rows**2).sum(axis=1, keepdims=True)
            joints = np.hstack([rows, squares]) @ self.coefficients.T + self.constants
            for c, mean, precision, offset in self.directly:
                joints[:, c] = -((rows - mean) ** 2 * precision).sum(axis=1) - offset
            yield slice(low, low + len(rows)), joints

    def labels(self, points: np.ndarray) -> np.ndarray:
        """The cluster with the largest joint, (n,) int32."""
        out = np.empty(len(points), np.int32)
        for part, joints in self.blocks(points):
            out[part] = self.clusters[joints.argmax(axis=1)]
        return out

    def largest(self, points: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The k clusters with the largest joints, (n, k) int32, and these, (n, k) float64, the largest first."""
        ids, values = np.empty((len(points), k), np.int32), np.empty((len(points), k))
        for part, joints in self.blocks(points):
            best = np.argpartition(-joints, k - 1, axis=1)[:, :k]
            found = np.take_along_axis(joints, best, axis=1)
            order = np.argsort(-found, axis=1, kind="stable")
            ids[part] = self.clusters[np.take_along_axis(best, order, axis=1)]
            values[part] = np.take_along_axis(found, order, axis=1)
        return ids, values

    def log_density(self, points: np.ndarray) -> np.ndarray:
        """Log p(y), (n,) float64."""
        out = np.empty(len(points))
        for part, joints in self.blocks(points):
            largest = joints.max(axis=1)
            joints -= largest[:, None]
            np.exp(joints, out=joints)
            out[part] = np.log(joints.sum(axis=1)) + largest
        return out
