"""Fitted parameters applied to rows on the device: the twin of `evaluation.Evaluator`."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from contextlib import closing
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch

from ...algorithm.coreset.frame import Frame
from ...data import Part, Rows
from ...evaluation import SAFE_FLOAT32, BlockSum
from ...parallel import Workers
from ..cells.nearest import distances_of, nearest_of_all
from ..coreset.points import DevicePoints, current
from ..coreset.reading import local_blocks, points_in
from ..device.downloads import put, to_host
from ..passes.routing import DeviceRouting
from .densities import log_sum_by_distance

#: Distances of rows to all means in float64 that are computed at a time.
PRODUCT_VALUES = 1 << 27

#: Values of rows that find their way together: the more meet at a cluster, the faster.
VALUES_TOGETHER = 1 << 26

_routings: WeakKeyDictionary[object, tuple[np.ndarray, DeviceRouting]] = WeakKeyDictionary()


class DeviceEvaluator:
    """Means in the coordinates of a fit, and searches over them; nearest means are compared in float32.

    Parameters
    ----------
    means : (C, D) float64 array, in data coordinates
    frame : Frame
    device : torch.device
    workers : Workers
    advance : callable
        Told how many rows have been done since the last call.
    """

    def __init__(
        self,
        means: np.ndarray,
        frame: Frame,
        device: torch.device,
        workers: Workers,
        advance: Callable[[int], None],
    ) -> None:
        self.frame = frame
        self.device = device
        self.workers = workers
        self.advance = advance
        self.data_means = means
        self.means = (torch.from_numpy(means).to(device) - torch.from_numpy(frame.origin).to(device)) * frame.scale
        self.centres = self.means.float()

    def _points(self, part: Part, local: torch.Tensor) -> DevicePoints:
        """A block of rows, after a look at whether all can be computed with."""
        if not bool(local.abs().max() < SAFE_FLOAT32):
            if part.rows.shape[1]:
                for bounds in part.bounds():
                    part.refuse_nonfinite(*bounds)
            bad = torch.nonzero(~torch.isfinite(local))
            if len(bad) and not part.rows.shape[1]:
                row, feature = bad[0].tolist()
                raise ValueError(
                    f"Input {part.owner.name} contains NaN or infinity: the first in "
                    f"{part.owner.locate(part.first + row)}, feature {feature}. Remove such rows or impute their "
                    f"values."
                )
            raise ValueError(
                f"{part.owner.name} holds values so far from the data of the fit that their squares overflow "
                f"float32: the first of them is in rows {part.first} to {part.first + len(part) - 1}. Check their "
                f"units, or use device='cpu'."
            )
        return points_in(self.frame, local, None, "fp32")

    def _parts(self, rows: Rows, work: Callable[[DevicePoints], Any]) -> Generator[tuple[Part, Any], None, None]:
        """Every part of the rows with what is made of it."""
        with current(self.device), closing(local_blocks(rows, self.frame, self.device, self.workers)) as blocks:
            for part, local in blocks:
                yield part, work(self._points(part, local))
                self.advance(len(part))

    def label_pieces(self, rows: Rows) -> Generator[np.ndarray, None, None]:
        """Nearest mean, some (n,) int32 at a time."""
        for _, ids in self._parts(rows, lambda points: nearest_of_all(points, self.centres)[0]):
            yield to_host(ids[:, 0]).numpy()

    def routing(self, owner: object, neighbors: np.ndarray) -> DeviceRouting:  # noqa: ARG002 (found anew)
        """What `near_label_pieces` needs, made once for an owner of means, and again when it has others."""
        means, routing = _routings.get(owner, (None, None))
        if routing is None or means is not self.data_means or routing.means.device != self.device:
            with current(self.device):
                routing = self._make_routing()
            _routings[owner] = self.data_means, routing
        return routing

    def _make_routing(self) -> DeviceRouting:
        return DeviceRouting(self.centres)

    def near_label_pieces(self, rows: Rows, routing: DeviceRouting) -> Generator[np.ndarray, None, None]:
        """A mean that is near, and mostly the nearest, at a cost that does not grow with C; some at a time."""
        together: list[torch.Tensor] = []
        for part, points in self._parts(rows, lambda points: points):
            together.append(points.stored)
            full = sum(block.numel() for block in together) >= VALUES_TOGETHER
            if full or part.first + len(part) == rows.n_samples:
                found = routing.labels_of(points_in(self.frame, torch.cat(together), None, "fp32"))
                together = []
                yield to_host(found).numpy()

    def _nearest(self, points: DevicePoints, k: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The k nearest means (n, k) int32, nearest first, and squared distances (n, k) float64, on the device."""
        ids, _ = nearest_of_all(points, self.centres, k)
        every = torch.arange(len(points), device=self.device).repeat_interleave(k)
        exact = distances_of(points, every, ids.view(-1), self.centres).view(-1, k)
        near, order = torch.sort(exact.double(), dim=1, stable=True)
        return ids.gather(1, order), near / self.frame.scale**2

    def k_nearest(self, rows: Rows, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The k nearest means (N, k) int32, nearest first, and squared distances (N, k) float64."""
        ids, distances = np.empty((rows.n_samples, k), np.int32), np.empty((rows.n_samples, k))
        for part, found in self._parts(rows, lambda points: self._nearest(points, k)):
            here = slice(part.first, part.first + len(part))
            put(found[0], ids[here])
            put(found[1], distances[here])
        return ids, distances

    def labels_and_error(self, rows: Rows, weights: np.ndarray | None) -> tuple[np.ndarray, float]:
        """Nearest mean (N,) int32, and the weighted sum of squared distances to it."""
        ids, total = np.empty(rows.n_samples, np.int32), BlockSum(weights)
        for part, (found, distances) in self._parts(rows, lambda points: self._nearest(points, 1)):
            put(found[:, 0], ids[part.first : part.first + len(part)])
            total.add(part, to_host(distances[:, 0]).numpy())
        return ids, total.value * rows.weight_unit

    def error(self, rows: Rows, weights: np.ndarray | None) -> float:
        """Weighted sum of squared distances to the nearest mean."""
        total = BlockSum(weights)
        for part, (_, distances) in self._parts(rows, lambda points: self._nearest(points, 1)):
            total.add(part, to_host(distances[:, 0]).numpy())
        return total.value * rows.weight_unit

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
            log_sum_by_distance(block, self.means, squares, rate, out[first : first + step])
        return to_host(out - constant).numpy()

    def log_density_parts(self, rows: Rows, variance: float) -> Generator[tuple[Part, np.ndarray], None, None]:
        """Exact log p(y) of every row (n,) float64, part by part."""
        return self._parts(rows, lambda points: self._log_density(points, variance))

    def mean_log_density(self, rows: Rows, variance: float, weights: np.ndarray | None) -> float:
        """Weighted mean of log p(y)."""
        total = BlockSum(weights)
        for part, found in self.log_density_parts(rows, variance):
            total.add(part, found)
        return total.value / total.mass
