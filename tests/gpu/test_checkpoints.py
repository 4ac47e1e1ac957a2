"""A fit on the device goes on from a checkpoint to the same end, bit by bit."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="tests of the GPU need torch")
pytest.importorskip("triton", reason="tests of the GPU need Triton")

from vcgmm import VCGMM  # noqa: E402


def rows() -> np.ndarray:
    rng = np.random.default_rng(0)
    centres = 6 * rng.normal(size=(8, 3))
    return (centres[rng.integers(8, size=120)] + rng.normal(size=(120, 3))).astype(np.float32)


def fit(X: Any, **changes: Any) -> VCGMM:
    options = {"n_components": 8, "random_state": 0, "max_iter": 4, "device": "cuda", "tol": 0.0, "n_shared": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return VCGMM(**{**options, "init": rows()[:8], "n_candidates": 6, **changes}).fit(X)


@pytest.mark.parametrize(
    ("kind", "precision", "where"),
    [
        ("isotropic", "tf32", "array"),
        ("isotropic", "bf16", "array"),
        ("isotropic", "bf16", "tensor"),
        ("isotropic", "tf32", "bytes"),
        ("diag", "tf32", "tensor"),
        ("spherical", "tf32", "array"),
    ],
)
@pytest.mark.parametrize("stop", [1, 3])
def test_a_resumed_fit_ends_as_one_that_was_not_stopped(
    gpu: Any, tmp_path: Any, kind: str, precision: str, where: str, stop: int
) -> None:
    X: Any = rows()
    if where == "bytes":
        X = np.clip(8 * X + 128, 0, 255).astype(np.uint8)
    if where == "tensor":
        X = torch.from_numpy(X).to(gpu)
    about = {"covariance_type": kind, "precision": precision}
    if where == "bytes":
        about["init"] = X[:8]
    whole = fit(X, **about)
    path = tmp_path / "fit.ckpt"
    fit(X, checkpoint=path, callbacks=lambda facts: facts.iteration == stop, **about)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = VCGMM.resume(path)
    assert model.means_.tobytes() == whole.means_.tobytes()
    assert model.covariances_.tobytes() == whole.covariances_.tobytes()
    assert model.lower_bounds_.tolist() == whole.lower_bounds_.tolist()
    assert model.device_ == whole.device_
    assert model.predict(X).tolist() == whole.predict(X).tolist()


def test_resumed_fits_are_refined_and_make_further_attempts(gpu: Any, tmp_path: Any) -> None:
    about = {"refine": 1, "n_init": 2, "init": "random", "coreset_size": None}
    whole, path = fit(rows(), **about), tmp_path / "fit.ckpt"
    fit(rows(), checkpoint=path, callbacks=lambda facts: facts.iteration == 2, **about)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = VCGMM.resume(path)
    assert model.means_.tobytes() == whole.means_.tobytes()
    assert model.refine_bounds_.tolist() == whole.refine_bounds_.tolist()


def test_auto_goes_on_where_it_began(gpu: Any, tmp_path: Any) -> None:
    path = tmp_path / "fit.ckpt"
    began = fit(rows(), device="auto", checkpoint=path, callbacks=lambda _: True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = VCGMM.resume(path)
    assert model.device_ == began.device_
