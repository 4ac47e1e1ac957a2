"""Fitted mixtures with weights and variances of their own on the device: the twin of `joint_evaluation`."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator

import numpy as np
import torch

from ...algorithm.coreset.frame import Frame
from ...algorithm.models.families import Family
from ...algorithm.models.mixture import Mixture
from ...data import Rows
from ...kernels.cells.costs import farthest_square
from ...parallel import Workers
from ..cells.costs import Costs
from ..coreset.points import DevicePoints
from ..device.downloads import put, to_host
from .densities import log_sum_of_joints
from .evaluation import PRODUCT_VALUES, DeviceEvaluator
from .joint_routing import JointRouting


class DeviceJointEvaluator(DeviceEvaluator):
    """A mixture in the coordinates of a fit, and exact searches over all its clusters, in float64.

    Labels and densities are those of the mixture; distances and errors are still those to the means.

    Parameters
    ----------
    mixture : Mixture, in data coordinates
    family : Family
    frame : Frame
    device : torch.device
    workers : Workers
    advance : callable
        Told how many rows have been done since the last call.
    """

    def __init__(
        self,
        mixture: Mixture,
        family: Family,
        frame: Frame,
        device: torch.device,
        workers: Workers,
        advance: Callable[[int], None],
    ) -> None:
        super().__init__(mixture.means, frame, device, workers, advance)
        self.local = Mixture(to_host(self.means).numpy(), mixture.variances * frame.scale**2, mixture.weights)
        self.family = family
        active = np.flatnonzero(mixture.active)
        self.clusters = torch.from_numpy(active.astype(np.int32)).to(device)
        means, rates = (
            torch.from_numpy(values[active]).to(device)
            for values in (self.local.means, 0.5 / self.local.variances)
        )
        # log p(c, y) = constant_c + coefficients_c . (y, y^2), the squares added up where variances are by cluster
        self._coefficients = torch.cat([2 * rates * means, -rates], dim=1).T
        offsets, constant = self.local.offsets()
        constants = torch.from_numpy(offsets[active] + constant).to(device)
        squares = (rates * means**2).sum(1)
        self._constants = -squares - constants
        self._by_feature = rates.shape[1] == means.shape[1]
        # A cluster that is narrow beside its distance from the origin would lose its digits in a product.
        far = torch.nonzero(squares > farthest_square(np.dtype(np.float64))).view(-1).tolist()
        self._directly = [(c, means[c], rates[c], constants[c]) for c in far]

    def _joints(self, points: DevicePoints) -> Iterator[tuple[slice, torch.Tensor]]:
        """Log joints with all clusters that are left: a range of points and (n, k) float64."""
        step = max(1, PRODUCT_VALUES // max(self._coefficients.shape))
        for first in range(0, len(points), step):
            rows = points.at(slice(first, first + step)).double()
            squares = rows**2 if self._by_feature else (rows**2).sum(1, keepdim=True)
            joints = (torch.cat([rows, squares], dim=1) @ self._coefficients).add_(self._constants)
            for c, mean, rate, constant in self._directly:
                joints[:, c] = -((rows - mean) ** 2 * rate).sum(1) - constant
            yield slice(first, first + len(rows)), joints

    def _labels(self, points: DevicePoints) -> np.ndarray:
        out = torch.empty(len(points), dtype=torch.int32, device=self.device)
        for part, joints in self._joints(points):
            out[part] = self.clusters[joints.argmax(1)]
        return to_host(out).numpy()

    def label_pieces(self, rows: Rows) -> Generator[np.ndarray, None, None]:
        """The cluster with the largest posterior, some (n,) int32 at a time."""
        for _, labels in self._parts(rows, self._labels):
            yield labels

    def labels_and_error(self, rows: Rows, weights: np.ndarray | None) -> tuple[np.ndarray, float]:
        """The cluster with the largest posterior, (N,) int32; the weighted error of the nearest means."""
        return np.concatenate(list(self.label_pieces(rows))), self.error(rows, weights)

    def largest(self, rows: Rows, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The k clusters with the largest joints, (N, k) int32, and their logs less a row's largest."""
        k = min(k, len(self.clusters))
        ids, logs = np.empty((rows.n_samples, k), np.int32), np.empty((rows.n_samples, k))

        def work(points: DevicePoints) -> tuple[torch.Tensor, torch.Tensor]:
            found = [torch.topk(joints, k, dim=1) for _, joints in self._joints(points)]
            places, values = torch.cat([one.indices for one in found]), torch.cat([one.values for one in found])
            return self.clusters[places], values - values[:, :1]

        for part, some in self._parts(rows, work):
            here = slice(part.first, part.first + len(part))
            put(some[0], ids[here])
            put(some[1], logs[here])
        return ids, logs

    def _log_density(self, points: DevicePoints, variance: float) -> np.ndarray:  # noqa: ARG002 (it has its own)
        out = torch.empty(len(points), dtype=torch.float64, device=self.device)
        for part, joints in self._joints(points):
            log_sum_of_joints(joints, out[part])
        return to_host(out + self.means.shape[1] * self.frame.log_scale).numpy()

    def _make_routing(self) -> JointRouting:
        natural = self.local.natural(np.dtype(np.float32))
        return JointRouting(self.centres, Costs.of(natural, self.family, self.device))
