"""Fitted parameters applied to rows on the device: the twin of `evaluation.Evaluator`."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch

from ..algorithm.frame import Frame
from ..data import Part, Rows
from ..evaluation import SAFE_FLOAT32, BlockSum
from .nearest import distances_of, nearest_of_all
from .points import DevicePoints, current
from .routing import DeviceRouting
from .tensors import TensorRows

#: Values of rows that are on the device at a time, and of their distances to all means in float64.
BLOCK_VALUES = 1 << 27
PRODUCT_VALUES = 1 << 27

_routings: WeakKeyDictionary[object, tuple[np.ndarray, DeviceRouting]] = WeakKeyDictionary()


class DeviceEvaluator:
    """Means in the coordinates of a fit, and searches over them; nearest means are compared in float32.

    Parameters
    ----------
    means : (C, D) float64 array, in data coordinates
    frame : Frame
    device : torch.device
    advance : callable
        Told how many rows have been done since the last call.
    """

    def __init__(
        self, means: np.ndarray, frame: Frame, device: torch.device, advance: Callable[[int], None]
    ) -> None:
        self.frame = frame
        self.device = device
        self.advance = advance
        self.data_means = means
        self.origin = torch.from_numpy(frame.origin).to(device)
        self.means = (torch.from_numpy(means).to(device) - self.origin) * frame.scale
        self.centres = self.means.float()

    def _blocks(self, rows: Rows) -> Generator[tuple[int, DevicePoints], None, None]:
        """All rows as points on the device, some at a time, each with the first one's index."""
        if isinstance(rows, TensorRows) and rows.tensor.device == self.device:
            step = max(1, BLOCK_VALUES // rows.n_features)
            for first in range(0, rows.n_samples, step):
                yield first, self._points(rows, first, rows.tensor[first : first + step])
            return
        for part in rows.parts():
            block = torch.from_numpy(np.ascontiguousarray(part.rows)).to(self.device)
            yield part.first, self._points(rows, part.first, block, part)

    def _points(self, rows: Rows, first: int, block: torch.Tensor, part: Part | None = None) -> DevicePoints:
        local = ((block.double() - self.origin) * self.frame.scale).float()
        if not bool(local.abs().max() < SAFE_FLOAT32):
            if part is not None:
                for bounds in part.bounds():
                    part.refuse_nonfinite(*bounds)
            if not bool(torch.isfinite(block).all()):
                row, feature = torch.nonzero(~torch.isfinite(block))[0].tolist()
                raise ValueError(
                    f"Input {rows.name} contains NaN or infinity: the first in {rows.locate(first + row)}, "
                    f"feature {feature}. Remove such rows or impute their values."
                )
            raise ValueError(
                f"{rows.name} holds values so far from the data of the fit that their squares overflow float32: "
                f"the first of them is in rows {first} to {first + len(block) - 1}. Check their units, or use "
                f"device='cpu'."
            )
        frame = Frame(np.zeros(local.shape[1]), 1.0, self.frame.dtype)
        return DevicePoints(local, 1.0, torch.ones(len(local), device=self.device), frame, "fp32")

    def _parts(
        self, rows: Rows, work: Callable[[DevicePoints], Any]
    ) -> Generator[tuple[int, int, Any], None, None]:
        """First row, number of rows and what is made of them, for some rows at a time."""
        for first, points in self._blocks(rows):
            with current(self.device):
                result = work(points)
            yield first, len(points), result
            self.advance(len(points))

    def label_pieces(self, rows: Rows) -> Generator[np.ndarray, None, None]:
        """Nearest mean, some (n,) int32 at a time."""
        for _, _, ids in self._parts(rows, lambda points: nearest_of_all(points, self.centres)[0]):
            yield ids[:, 0].cpu().numpy()

    def routing(self, owner: object, neighbors: np.ndarray) -> DeviceRouting:  # noqa: ARG002 (found anew)
        """What `near_label_pieces` needs, made once for an owner of means, and again when it has others."""
        means, routing = _routings.get(owner, (None, None))
        if routing is None or means is not self.data_means or routing.means.device != self.device:
            with current(self.device):
                routing = DeviceRouting(self.centres)
            _routings[owner] = self.data_means, routing
        return routing

    def near_label_pieces(self, rows: Rows, routing: DeviceRouting) -> Generator[np.ndarray, None, None]:
        """A mean that is near, and mostly the nearest, at a cost that does not grow with C; some at a time."""
        for _, _, labels in self._parts(rows, routing.labels_of):
            yield labels.cpu().numpy()

    def _nearest(self, points: DevicePoints, k: int) -> tuple[np.ndarray, np.ndarray]:
        ids, _ = nearest_of_all(points, self.centres, k)
        every = torch.arange(len(points), device=self.device).repeat_interleave(k)
        exact = distances_of(points, every, ids.view(-1), self.centres).view(-1, k)
        near, order = torch.sort(exact.double(), dim=1, stable=True)
        return ids.gather(1, order).cpu().numpy(), (near / self.frame.scale**2).cpu().numpy()

    def k_nearest(self, rows: Rows, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The k nearest means (N, k) int32, nearest first, and squared distances (N, k) float64."""
        ids, distances = np.empty((rows.n_samples, k), np.int32), np.empty((rows.n_samples, k))
        for first, n, found in self._parts(rows, lambda points: self._nearest(points, k)):
            ids[first : first + n], distances[first : first + n] = found
        return ids, distances

    def labels_and_error(self, rows: Rows, weights: np.ndarray | None) -> tuple[np.ndarray, float]:
        """Nearest mean (N,) int32, and the weighted sum of squared distances to it."""
        ids, distances = self.k_nearest(rows, 1)
        return ids[:, 0].copy(), _weighted(rows, distances[:, 0], weights).value * rows.weight_unit

    def error(self, rows: Rows, weights: np.ndarray | None) -> float:
        """Weighted sum of squared distances to the nearest mean."""
        return self.labels_and_error(rows, weights)[1]

    def _log_density(self, points: DevicePoints, variance: float) -> np.ndarray:
        """Exact log p(y) over all components (Eq. 1), in float64."""
        n_clusters, n_features = self.means.shape
        constant = math.log(n_clusters) + 0.5 * n_features * math.log(2 * math.pi * variance)
        rate = 0.5 / (variance * self.frame.scale**2)
        squares = (self.means * self.means).sum(1)
        out = torch.empty(len(points), dtype=torch.float64, device=self.device)
        step = max(1, PRODUCT_VALUES // n_clusters)
        for first in range(0, len(points), step):
            block = points.at(slice(first, first + step)).double()
            distances = squares - 2 * (block @ self.means.T)
            distances += (block * block).sum(1, keepdim=True)
            out[first : first + step] = torch.logsumexp(distances.clamp_(min=0).mul_(-rate), dim=1)
        return (out - constant).cpu().numpy()

    def log_density_parts(self, rows: Rows, variance: float) -> Generator[tuple[int, np.ndarray], None, None]:
        """Exact log p(y) of every row (n,) float64, some at a time, each with the first one's index."""
        for first, _, found in self._parts(rows, lambda points: self._log_density(points, variance)):
            yield first, found

    def mean_log_density(self, rows: Rows, variance: float, weights: np.ndarray | None) -> float:
        """Weighted mean of log p(y)."""
        densities = np.concatenate([found for _, found in self.log_density_parts(rows, variance)])
        total = _weighted(rows, densities, weights)
        return total.value / total.mass


def _weighted(rows: Rows, values: np.ndarray, weights: np.ndarray | None) -> BlockSum:
    """Weighted sum of values (N,), one for each row."""
    total = BlockSum(weights)
    if isinstance(rows, TensorRows):
        total.add(Part(0, values[:, None], None, rows), values)
        return total
    for part in rows.parts():
        total.add(part, values[part.first : part.first + len(part)])
    return total
