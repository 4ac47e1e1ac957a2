"""The GPU as a backend: which device, and why not."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from ..algorithm.frame import Frame
from ..algorithm.models.families import Family
from ..algorithm.models.mixture import Mixture
from ..algorithm.pipeline import Result
from ..algorithm.settings import Settings
from ..algorithm.snapshot import Keep, Snapshot
from ..data import Rows
from ..parallel import Workers
from ..progress import Callback, Progress
from .evaluation import DeviceEvaluator
from .fitting import resume, run
from .joint_evaluation import DeviceJointEvaluator
from .points import current

#: Older GPUs have no tensor cores for bf16 and tf32.
LEAST_CAPABILITY = (8, 0)


def find_device(name: str) -> torch.device:
    """The GPU of a name, "cuda" or "cuda:1"; raises a RuntimeError that says why there is none.

    Parameters
    ----------
    name : str
    """
    if torch.version.cuda is None:
        raise RuntimeError(
            f"device={name!r} needs a torch that was built with CUDA, and torch {torch.__version__} was not: "
            f"install one that was, or use device='cpu'."
        )
    try:
        torch.cuda.init()
        n_devices = torch.cuda.device_count()
    except (RuntimeError, AssertionError) as error:  # no driver, or one that is too old: torch says which
        raise RuntimeError(
            f"device={name!r}: torch {torch.__version__} (CUDA {torch.version.cuda}) cannot use a GPU here: "
            f"{error} Or use device='cpu'."
        ) from None
    device = torch.device(name)
    index = torch.cuda.current_device() if device.index is None else device.index
    if index >= n_devices:
        raise RuntimeError(
            f"device={name!r} is not there: torch finds {n_devices} GPU(s). Use one from 'cuda:0' to "
            f"'cuda:{n_devices - 1}', or device='cpu'."
        )
    capability = torch.cuda.get_device_capability(index)
    if capability < LEAST_CAPABILITY:
        raise RuntimeError(
            f"device={name!r} is a {torch.cuda.get_device_name(index)} of compute capability {capability}, and "
            f"{LEAST_CAPABILITY} or more is needed: use device='cpu'."
        )
    return torch.device("cuda", index)


class GPU:
    """Fits and predictions on one GPU.

    Fits run in torch's inference mode, in which a call costs the host less.  Of the tensors made there only one is
    ever handed out: the scaled rows of `metric="cosine"`, as a coreset's points.

    Parameters
    ----------
    device : torch.device
    precision : str
    """

    def __init__(self, device: torch.device, precision: str) -> None:
        self.device = device
        self.precision = precision

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
        with torch.inference_mode(), current(self.device):
            return run(rows, weights, settings, self.device, self.precision, callbacks, progress, workers, keep)

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
        with torch.inference_mode(), current(self.device):
            return resume(
                snapshot, self.device, self.precision, callbacks, progress, workers, keep, complete=complete
            )

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
