"""The whole of a fit on a device: coreset, seeding, variational EM."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from ..algorithm.attempts import CORESET
from ..algorithm.coreset import Coreset, in_memory
from ..algorithm.frame import Frame, Moments
from ..algorithm.frame import moments as host_moments
from ..algorithm.pipeline import (
    Result,
    check_distinct,
    in_data_coordinates,
    in_units,
    make_coreset,
    refuse_too_few,
    variance_floor,
)
from ..algorithm.random import generator
from ..algorithm.settings import Settings
from ..algorithm.snapshot import STEPS, Costs, Problem
from ..data import Rows, Selection
from ..parallel import Workers
from ..progress import Callback, Progress
from .attempts import DeviceAttempts
from .coreset import lightweight_coreset, moments
from .hashing import count_distinct
from .memory import check_memory
from .points import BLOCK_VALUES, STORED, DevicePoints
from .tensors import TensorRows

FLOAT32 = np.dtype(np.float32)


@dataclass(frozen=True)
class Prepared:
    """Rows of a fit, ready for EM.

    Attributes
    ----------
    coreset : Coreset
        Its points on the host, or the tensor that was given.
    points : DevicePoints
    moments : Moments
    """

    coreset: Coreset
    points: DevicePoints
    moments: Moments


def run(
    rows: Rows,
    weights: np.ndarray | None,
    settings: Settings,
    device: torch.device,
    precision: str,
    callbacks: Sequence[Callback],
    progress: Progress,
    workers: Workers,
) -> Result:
    """Fit.

    Parameters
    ----------
    rows : Rows
        A tensor on this device is used where it lies.  Of rows on the host the coreset is drawn there, and copied.
    weights : (N,) float64 array or None
    settings : Settings
    device : torch.device
    precision : str
        What products are computed in; "bf16" is also what rows from the host are stored in.
    callbacks, progress, workers : as in `pipeline.run`
    """
    begun = time.perf_counter()
    n_samples = rows.n_samples
    n_passes = 1 if settings.coreset_size is None or settings.coreset_size >= n_samples else 2
    progress.start("coreset", n_passes * n_samples)
    weights, unit = (None, rows.weight_unit) if weights is None else in_units(weights)
    settings = replace(settings, dtype=FLOAT32)
    plan = Plan(settings, device, precision, workers, progress.advance)
    if isinstance(rows, TensorRows) and rows.tensor.device == device:
        prepared = plan.from_device(rows, weights)
    else:
        prepared = plan.from_host(rows, weights)
    frame = prepared.points.frame
    floor = variance_floor(prepared.moments, frame, settings.reg_covar)
    problem = Problem(settings, prepared.coreset, unit, frame, floor)
    costs = Costs(dict.fromkeys(STEPS, 0.0), {**dict.fromkeys(STEPS, 0), "coreset": n_samples}, 0.0)
    attempts = DeviceAttempts(problem, prepared.points, costs, callbacks, progress, workers)
    progress.finish()
    costs.elapsed = costs.seconds["coreset"] = time.perf_counter() - begun
    attempt = attempts.run()
    result = in_data_coordinates(attempt, problem, costs)
    if isinstance(result.coreset.source, Selection):
        result.coreset = in_memory(result.coreset, workers)
    # Predictions on the host need an origin amid the data, whatever the fit did without.
    return replace(result, frame=prepared.moments.frame(FLOAT32))


@dataclass(frozen=True)
class Plan:
    """How rows become points on the device.

    Attributes
    ----------
    settings : Settings
    device : torch.device
    precision : str
    workers : Workers
    advance : callable
    """

    settings: Settings
    device: torch.device
    precision: str
    workers: Workers
    advance: Callable[[int], None]

    def from_host(self, rows: Rows, weights: np.ndarray | None) -> Prepared:
        """Draw the coreset where the rows are, the same one as on the CPU, and copy it to the device."""
        facts = host_moments(rows, weights, self.workers, self.advance)
        coreset = make_coreset(rows, weights, facts, self.settings, self.workers, self.advance)
        check_distinct(coreset, "n_components", self.settings.n_components, rows.n_samples)
        kind = torch.bfloat16 if self.precision == "bf16" else torch.float32
        self._check_memory(len(coreset), rows.n_features, kind.itemsize)
        frame = facts.frame(FLOAT32)
        stored = torch.empty((len(coreset), rows.n_features), dtype=kind, device=self.device)
        for part in _blocks(*stored.shape):
            block = torch.from_numpy(np.ascontiguousarray(coreset.source[part])).to(self.device)
            stored[part] = _entered(block, frame).to(kind)
        return Prepared(coreset, self._points(stored, 1.0, coreset.weights, frame), facts)

    def from_device(self, rows: TensorRows, weights: np.ndarray | None) -> Prepared:
        """Draw the coreset on the device, or take all rows where they lie."""
        size, n_clusters = self.settings.coreset_size, self.settings.n_components
        given = None if weights is None else torch.from_numpy(weights).to(self.device)
        facts = moments(rows, given, self.advance)
        tensor, points = rows.tensor, None
        whole = size is None or size >= facts.n_usable
        if whole and facts.n_usable == rows.n_samples:
            indices, masses = np.arange(rows.n_samples), np.ones(rows.n_samples) if weights is None else weights
            points = tensor
        else:
            if size is None or whole:
                chosen = torch.nonzero(given).view(-1)
                drawn = chosen.new_ones(len(chosen), dtype=torch.float64) if given is None else given[chosen]
            else:
                rng = generator(self.settings.seed, CORESET)
                chosen, drawn = lightweight_coreset(rows, facts, given, size, rng, n_clusters, self.advance)
            tensor = tensor[chosen]
            indices, masses = chosen.cpu().numpy(), drawn.cpu().numpy()
        n_distinct = count_distinct(tensor, n_clusters) if 1 < n_clusters <= len(tensor) else len(tensor)
        refuse_too_few(n_distinct, "n_components", n_clusters, rows.n_samples)
        frame = facts.frame(FLOAT32)
        in_place = tensor.dtype in STORED
        self._check_memory(len(tensor), rows.n_features, 0 if in_place else 4)
        scale = 1.0
        if in_place:  # no origin but 0: rows stay as they are, and a power of two away from local coordinates
            frame = Frame(np.zeros(rows.n_features), frame.scale, FLOAT32)
            stored, scale = tensor, frame.scale
        else:
            stored = torch.empty(tensor.shape, dtype=torch.float32, device=self.device)
            for part in _blocks(*tensor.shape):
                stored[part] = _entered(tensor[part], frame).float()
        kept: Any = TensorRows(tensor).all() if points is None else points
        return Prepared(Coreset(indices, kept, masses), self._points(stored, scale, masses, frame), facts)

    def _points(self, stored: torch.Tensor, scale: float, weights: np.ndarray, frame: Frame) -> DevicePoints:
        on_device = torch.from_numpy(np.ascontiguousarray(weights, dtype=np.float32)).to(self.device)
        return DevicePoints(stored, scale, on_device, frame, self.precision)

    def _check_memory(self, n_points: int, n_features: int, itemsize: int) -> None:
        settings = self.settings
        shape = (settings.n_components, settings.truncation, settings.n_candidates + settings.n_explore)
        check_memory(self.device, n_points, n_features, itemsize, shape)


def _blocks(n_rows: int, n_features: int) -> list[slice]:
    """All rows, a bounded number of values at a time."""
    step = max(1, BLOCK_VALUES // n_features)
    return [slice(first, first + step) for first in range(0, n_rows, step)]


def _entered(block: torch.Tensor, frame: Frame) -> torch.Tensor:
    """Rows in local coordinates, float64."""
    return (block.double() - torch.from_numpy(frame.origin).to(block.device)) * frame.scale
