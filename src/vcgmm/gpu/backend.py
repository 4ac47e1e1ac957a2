"""The GPU as a backend: which device, and why not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch

from ..algorithm.coreset.frame import Frame
from ..algorithm.models.families import Family
from ..algorithm.models.mixture import Mixture
from ..algorithm.pipeline import Result
from ..algorithm.settings import Settings
from ..algorithm.snapshot import Keep, Snapshot
from ..data import Rows
from ..parallel import Workers
from ..progress import Callback, History, Iteration, Progress
from ..validation import DeviceError
from .compiling import told_of_compiling
from .coreset.points import current
from .device.arena import in_arena, out_of_arena
from .fitting import resume, run
from .prediction.evaluation import DeviceEvaluator
from .prediction.joint_evaluation import DeviceJointEvaluator

#: Older GPUs have no tensor cores for bf16 and tf32.
LEAST_CAPABILITY = (8, 0)


def find_device(name: str) -> torch.device:
    """The GPU of a name, "cuda" or "cuda:1"; raises a DeviceError that says why there is none.

    Parameters
    ----------
    name : str
    """
    if torch.version.cuda is None:
        raise DeviceError(
            f"device={name!r} needs a torch that was built with CUDA, and torch {torch.__version__} was not: "
            f"install one that was, or use device='cpu'."
        )
    try:
        torch.cuda.init()
        n_devices = torch.cuda.device_count()
    except (RuntimeError, AssertionError) as error:  # no driver, or one that is too old: torch says which
        raise DeviceError(
            f"device={name!r}: torch {torch.__version__} (CUDA {torch.version.cuda}) cannot use a GPU here: "
            f"{error} Or use device='cpu'."
        ) from None
    device = torch.device(name)
    index = torch.cuda.current_device() if device.index is None else device.index
    if index >= n_devices:
        raise DeviceError(
            f"device={name!r} is not there: torch finds {n_devices} GPU(s). Use one from 'cuda:0' to "
            f"'cuda:{n_devices - 1}', or device='cpu'."
        )
    capability = torch.cuda.get_device_capability(index)
    if capability < LEAST_CAPABILITY:
        raise DeviceError(
            f"device={name!r} is a {torch.cuda.get_device_name(index)} of compute capability {capability}, and "
            f"{LEAST_CAPABILITY} or more is needed: use device='cpu'."
        )
    return torch.device("cuda", index)


def outside(callback: Callback) -> Callback:
    """A callback that may use torch as it likes, whatever mode the fit runs in."""
    if isinstance(callback, History):  # it does not
        return callback

    def call(facts: Iteration) -> bool | None:
        with torch.inference_mode(False), out_of_arena():
            return callback(facts)

    return call


class GPU:
    """Fits and predictions on one GPU.

    Fits run in torch's inference mode, in which a call costs the host less.  No tensor made there is handed
    out, and callbacks run outside of it.

    Parameters
    ----------
    device : torch.device
    precision : str
    """

    def __init__(self, device: torch.device, precision: str) -> None:
        self.device = device
        self.precision = precision
        self.remark = ""

    @property
    def name(self) -> str:
        """What `device_` says of it."""
        return str(self.device)

    def fit(
        self,
        rows: Rows,
        weights: np.ndarray | None,
        settings: Settings,
        callbacks: Sequence[Callback],
        progress: Progress,
        workers: Workers,
        keep: Keep | None,
    ) -> Result:
        """The whole of a fit."""
        told = [outside(callback) for callback in callbacks]
        size = settings.coreset_size
        n_points = rows.n_samples if size is None else min(size, rows.n_samples)
        with self._computing(n_points, progress):
            return run(rows, weights, settings, self.device, self.precision, told, progress, workers, keep)

    def resume(
        self,
        snapshot: Snapshot,
        callbacks: Sequence[Callback],
        progress: Progress,
        workers: Workers,
        keep: Keep | None,
        *,
        complete: bool,
    ) -> Result:
        """A fit from a snapshot on."""
        told = [outside(callback) for callback in callbacks]
        n_points = len(snapshot.problem.coreset)
        with self._computing(n_points, progress):
            return resume(snapshot, self.device, self.precision, told, progress, workers, keep, complete=complete)

    @contextmanager
    def _computing(self, n_points: int, progress: Progress) -> Iterator[None]:
        """What a fit runs in."""
        arena = in_arena(self.device, n_points)
        with torch.inference_mode(), current(self.device), arena, told_of_compiling(progress.note):
            yield

    def evaluator(
        self, means: np.ndarray, frame: Frame, workers: Workers, advance: Callable[[int], None]
    ) -> DeviceEvaluator:
        """Fitted means ready for searches."""
        return DeviceEvaluator(means, frame, self.device, workers, advance)

    def joint_evaluator(
        self, mixture: Mixture, family: Family, frame: Frame, workers: Workers, advance: Callable[[int], None]
    ) -> DeviceJointEvaluator:
        """A fitted mixture with weights and variances of its own, likewise."""
        return DeviceJointEvaluator(mixture, family, frame, self.device, workers, advance)
