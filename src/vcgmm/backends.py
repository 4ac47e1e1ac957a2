"""Where a fit and its predictions run: resolved once, and known nowhere below."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from sklearn.utils.validation import validate_data

from .algorithm.coreset.frame import Frame
from .algorithm.models.families import Family
from .algorithm.models.mixture import Mixture
from .algorithm.pipeline import Result, resume, run
from .algorithm.settings import Settings
from .algorithm.snapshot import Keep, Snapshot
from .data import Rows
from .evaluation import Evaluator
from .joint_evaluation import JointEvaluator
from .mixture_parameters import check_kind
from .parallel import Workers
from .progress import Callback, Progress
from .validation import blame, check_choice, check_float_type, check_rows

#: Names of the precisions in which a GPU multiplies.
PRECISIONS = ("tf32", "fp32", "bf16")

_CUDA = re.compile(r"cuda(:\d+)?")


class Backend(Protocol):
    """A place to fit at, and to predict.

    Attributes
    ----------
    remark : str
        How it came to be chosen, where that was left open; else empty.
    """

    remark: str

    @property
    def name(self) -> str:
        """What `device_` says of it."""
        ...

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
        """The whole of a fit, as `pipeline.run`."""
        ...

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
        """A fit from a snapshot on, as `pipeline.resume`."""
        ...

    def evaluator(self, means: np.ndarray, frame: Frame, workers: Workers, advance: Callable[[int], None]) -> Any:
        """Fitted means ready for searches."""
        ...

    def joint_evaluator(
        self, mixture: Mixture, family: Family, frame: Frame, workers: Workers, advance: Callable[[int], None]
    ) -> Any:
        """A fitted mixture with weights and variances of its own, likewise."""
        ...


class CPU:
    """The processor: numba kernels on threads.

    Parameters
    ----------
    remark : str
        As of every backend.
    """

    name = "cpu"

    def __init__(self, remark: str = "") -> None:
        self.remark = remark

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
        return run(rows, weights, settings, callbacks, progress, workers, keep)

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
        return resume(snapshot, callbacks, progress, workers, keep, complete=complete)

    def evaluator(
        self, means: np.ndarray, frame: Frame, workers: Workers, advance: Callable[[int], None]
    ) -> Evaluator:
        """Fitted means ready for searches."""
        return Evaluator(means, frame, workers, advance)

    def joint_evaluator(
        self,
        mixture: Mixture,
        family: Family,  # noqa: ARG002 (told by the mixture itself)
        frame: Frame,
        workers: Workers,
        advance: Callable[[int], None],
    ) -> JointEvaluator:
        """A fitted mixture with weights and variances of its own, likewise."""
        return JointEvaluator(mixture, frame, workers, advance)


def backend_of(model: Any) -> Backend:
    """The backend of a fit, by the parameters of a VCGMM.

    device="auto" takes a GPU where there is one that can do what is asked for, and remarks on what it took and
    why; anything else is taken at its word.
    """
    device, precision = check_device(model)
    if device == "cpu":
        return CPU()
    reason = not_offered(model)
    if device == "auto":
        return _automatic(reason, precision)
    if reason:
        raise ValueError(f"device={device!r} does not offer {reason} yet: use device='cpu' for it.")
    return make_gpu(device, precision)


def predicting_backend_of(model: Any) -> Backend:
    """Where a fitted model predicts, likewise; a GPU also predicts by what it could not have fitted."""
    device, precision = check_device(model)
    if device == "cpu":
        return CPU()
    if device == "auto":  # what only the CPU fits predicts there, in the same type
        return _automatic(not_offered(model), precision)
    return make_gpu(device, precision)


def streaming_backend_of(model: Any) -> Backend:
    """Where `partial_fit` goes on, likewise: no GPU offers it."""
    device, precision = check_device(model)
    if device not in ("cpu", "auto"):
        raise ValueError(f"device={device!r} does not offer partial_fit yet: use device='cpu' for it.")
    return CPU() if device == "cpu" else _automatic("partial_fit", precision)


def _automatic(reason: str, precision: str) -> Backend:
    """What device="auto" takes, and why; `reason`: what a GPU does not offer of what is asked for, if anything."""
    if reason:
        return CPU(f"device='auto' takes the CPU: a GPU does not offer {reason} yet.")
    try:
        gpu = make_gpu("cuda", precision)
    except (ImportError, RuntimeError) as error:
        return CPU(f"device='auto' takes the CPU. {error}")
    gpu.remark = f"device='auto' takes {gpu.name}."
    return gpu


def check_device(model: Any) -> tuple[str, str]:
    """`device` and `precision` of a VCGMM."""
    device = model.device
    if not isinstance(device, str) or (device not in ("cpu", "auto") and not _CUDA.fullmatch(device)):
        raise ValueError(f"device={device!r} is not valid: choose 'cpu', 'cuda', 'cuda:1' and so on, or 'auto'.")
    return device, check_choice("precision", model.precision, PRECISIONS)


def not_offered(model: Any) -> str:
    """What a GPU does not offer of what the parameters of a VCGMM ask for; empty: all is."""
    check_kind(model)
    if model.search == "pointwise":
        return "search='pointwise'"
    if model.dtype is not None and check_float_type(model.dtype, np.dtype(np.float32)) == np.float64:
        return "dtype='float64'"
    return ""


def make_gpu(device: str, precision: str) -> Backend:
    """A GPU as a backend; raises an ImportError or RuntimeError that says what is missing."""
    try:
        from .gpu.backend import GPU, find_device
    except OSError as error:  # libraries that torch needs
        raise ImportError(
            f"device={device!r} needs torch, which cannot be loaded: {error}. Install it anew, or use "
            f"device='cpu'."
        ) from error
    except ImportError as error:
        raise ImportError(
            f"device={device!r} needs torch and Triton, and {error.name or error} is missing: install them with "
            f"pip install 'vcgmm[gpu]', or use device='cpu'."
        ) from None
    return GPU(find_device(device), precision)


def is_tensor(X: Any) -> bool:
    """Whether X is a torch tensor; torch is not loaded to know."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(X, torch.Tensor)


def rows_of(estimator: Any, X: Any, *, reset: bool, on_gpu: bool) -> Rows:
    """X as rows: what `check_rows` takes, or a tensor, which is used where it lies.

    Parameters
    ----------
    estimator : estimator
        Learns (reset=True) or compares the number of features.
    X : array-like of shape (N, D), source or tensor
    reset : bool
    on_gpu : bool
        Whether tensors on a GPU can be used.
    """
    if not is_tensor(X):
        return check_rows(estimator, X, reset=reset)
    from .gpu.coreset.tensors import rows_of_tensor

    if X.device.type != "cpu" and not on_gpu:
        raise ValueError(
            f"X is a tensor on {X.device}, but device={estimator.device!r} computes on the CPU: set device="
            f"{str(X.device)!r}, or give X.cpu()."
        )
    rows = rows_of_tensor(X)
    if reset:  # as `validate_data` would, which takes longer to see that tensors have no names of features
        estimator.n_features_in_ = rows.n_features
        estimator.__dict__.pop("feature_names_in_", None)
        return rows
    with blame("X", "Give the features that the model was fitted on."):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
    return rows


def like(X: Any, result: np.ndarray) -> Any:
    """A result for every row of X: a tensor where X is one, on its device."""
    if not is_tensor(X):
        return result
    torch = sys.modules["torch"]
    return torch.from_numpy(result).to(X.device)


def on_host(values: Any) -> Any:
    """A tensor as an array, in float32 where NumPy has no such type; all else as it is."""
    if not is_tensor(values):
        return values
    from .gpu.coreset.tensors import as_array

    return as_array(values)
