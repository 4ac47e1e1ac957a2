"""The whole of a fit on a device: coreset, seeding, variational EM, refinement."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from traceback import clear_frames
from typing import Any

import numpy as np
import torch

from ..algorithm.coreset.frame import Frame
from ..algorithm.coreset.lightweight import in_memory
from ..algorithm.pipeline import Result, finish, in_units, variance_floor
from ..algorithm.settings import Settings
from ..algorithm.snapshot import STEPS, Attempt, Costs, Keep, Problem, Snapshot
from ..data import ArrayRows, Rows
from ..parallel import Workers
from ..progress import Callback, Progress
from .attempts import DeviceAttempts
from .coreset.tensors import as_array
from .device.arrays import on_host, on_its_way
from .preparing import FLOAT32, Plan, with_arrays
from .snapshots import mixture_on_host

#: Clusters that are looked at to find a place amid the data, up to twice as many: no more are needed.
AMID = 64


def run(
    rows: Rows,
    weights: np.ndarray | None,
    settings: Settings,
    device: torch.device,
    precision: str,
    callbacks: Sequence[Callback],
    progress: Progress,
    workers: Workers,
    keep: Keep | None,
) -> Result:
    """Fit.

    Parameters
    ----------
    rows : Rows
        A tensor on this device is used where it lies.  Rows on the host are copied by way of pinned buffers.
    weights : (N,) float64 array or None
    settings : Settings
    device : torch.device
    precision : str
        What products are computed in; "bf16" is also what rows from the host are stored in.
    callbacks, progress, workers, keep : as in `pipeline.run`
    """
    begun = time.perf_counter()
    n_samples = rows.n_samples
    n_passes = 1 if settings.coreset_size is None or settings.coreset_size >= n_samples else 2
    progress.start("coreset", n_passes * n_samples)
    weights, unit = (None, rows.weight_unit) if weights is None else in_units(weights)
    settings = settings if settings.dtype == FLOAT32 else replace(settings, dtype=FLOAT32)
    plan = Plan(settings, device, precision, workers, progress.advance)
    prepared = plan.prepare(rows, weights)
    frame, coreset = prepared.points.frame, prepared.coreset
    if keep is not None:  # what is written again and again is better at hand
        source: Any = coreset.source
        coreset = replace(coreset, source=as_array(source)) if isinstance(source, torch.Tensor) else coreset
        coreset = with_arrays(in_memory(coreset, workers))
    floor = variance_floor(prepared.moments, frame, settings.reg_covar)
    problem = Problem(settings, coreset, unit, frame, floor)
    costs = Costs(dict.fromkeys(STEPS, 0.0), {**dict.fromkeys(STEPS, 0), "coreset": n_samples}, 0.0)
    attempts = DeviceAttempts(problem, prepared.points, costs, callbacks, progress, workers, keep, prepared.begun)
    progress.finish()
    costs.elapsed = costs.seconds["coreset"] = time.perf_counter() - begun
    try:
        attempt = attempts.run()
    except torch.OutOfMemoryError as error:
        clear_frames(error.__traceback__)  # what the fit has made would be taken for the memory of others
        plan.check_room(prepared.points)
        raise
    return _finish(rows, weights, prepared.moments.total_weight, attempt, attempts)


def resume(
    snapshot: Snapshot,
    device: torch.device,
    precision: str,
    callbacks: Sequence[Callback],
    progress: Progress,
    workers: Workers,
    keep: Keep | None,
    *,
    complete: bool,
) -> Result:
    """Go on with a fit to the same end, bit by bit, that it would have come to on this kind of device.

    Parameters
    ----------
    snapshot : Snapshot
    device, precision : as in `run`
    callbacks, progress, workers, keep, complete : as in `pipeline.resume`
    """
    problem = snapshot.problem
    plan = Plan(problem.settings, device, precision, workers, progress.advance)
    points = plan.points_of(problem.coreset, problem.coreset.points.dtype, problem.frame)
    attempts = DeviceAttempts(problem, points, snapshot.costs, callbacks, progress, workers, keep)
    attempt = attempts.run(snapshot)
    rows = ArrayRows(problem.coreset.points) if complete else None
    weights = problem.coreset.weights
    return _finish(rows, weights, float(weights.sum()), attempt, attempts)


def _finish(
    rows: Rows | None, weights: np.ndarray | None, total_weight: float, attempt: Attempt, attempts: DeviceAttempts
) -> Result:
    """Refine, and bring the result to the host."""
    result = finish(
        rows, weights, total_weight, attempt, attempts, attempts.callbacks, attempts.progress, attempts.workers
    )
    mixture = None if result.mixture is None else mixture_on_host(result.mixture)
    waited = on_its_way(result.masses)
    means, masses, frame = on_host(result.means), waited(), result.frame
    if not frame.origin.any():  # predictions need one amid the data, whatever the fit did without
        some = slice(None, None, max(1, len(means) // AMID))
        total = max(float(masses[some].sum()), np.finfo(np.float64).tiny)
        frame = Frame(masses[some] @ means[some] / total, frame.scale, FLOAT32)
    result.means, result.masses, result.mixture, result.frame = means, masses, mixture, frame
    return result
