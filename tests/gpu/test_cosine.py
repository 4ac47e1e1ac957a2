"""metric="cosine" on the device: rows and means on the sphere, wherever the rows are."""

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
    directions = rng.normal(size=(6, 4))
    noisy = directions[rng.integers(6, size=120)] + 0.3 * rng.normal(size=(120, 4))
    return (noisy * rng.lognormal(sigma=2, size=(120, 1))).astype(np.float32)


def fitted(X: Any, **changes: Any) -> VCGMM:
    options = {"n_components": 6, "metric": "cosine", "random_state": 0, "max_iter": 4, "device": "cuda"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return VCGMM(**{**options, "init": rows()[:6], **changes}).fit(X)


def test_fits_and_predictions_are_those_of_the_cpu(gpu: Any) -> None:
    X = rows()
    expected = fitted(X, device="cpu")
    one, other = fitted(X, precision="fp32"), fitted(torch.from_numpy(X).to(gpu), precision="fp32")
    for model in (one, other):
        np.testing.assert_allclose(np.linalg.norm(model.means_, axis=1), 1.0, rtol=1e-12)
        np.testing.assert_allclose(model.means_, expected.means_, atol=1e-4)
        assert model.lower_bound_ == pytest.approx(expected.lower_bound_, rel=1e-5)
    tensor = torch.from_numpy(X).to(gpu)
    assert one.predict(tensor).tolist() == one.predict(X).tolist() == expected.predict(X).tolist()
    assert one.quantization_error(tensor) == pytest.approx(expected.quantization_error(X), rel=1e-4)
    np.testing.assert_allclose(one.score_samples(tensor).cpu().numpy(), expected.score_samples(X), rtol=1e-4)
    assert one.predict(1e-30 * X).tolist() == expected.predict(X).tolist()  # lengths do not matter


def test_a_coreset_of_a_tensor_is_scaled(gpu: Any) -> None:
    X = torch.from_numpy(rows()).to(gpu)
    for size in (60, None):
        coreset = fitted(X, coreset_size=size, max_iter=2).coreset_
        points = torch.as_tensor(coreset.points).cpu().double().numpy()
        np.testing.assert_allclose(np.linalg.norm(points, axis=1), 1.0, rtol=1e-6)
        given = X.cpu().double().numpy()[coreset.indices]
        np.testing.assert_allclose(points, given / np.linalg.norm(given, axis=1, keepdims=True), atol=1e-6)


def test_what_a_fit_hands_out_and_what_callbacks_make_can_be_differentiated(gpu: Any) -> None:
    gradients: list[list[float]] = []

    def callback(_facts: Any) -> None:
        factor = torch.ones(2, requires_grad=True, device=gpu)
        (3 * factor).sum().backward()
        gradients.append(factor.grad.tolist())

    X = torch.from_numpy(rows()).to(gpu)
    for size in (60, None):
        points: Any = fitted(X, coreset_size=size, max_iter=2, callbacks=callback).coreset_.there
        if isinstance(points, torch.Tensor):  # all of a tensor on a GPU
            factor = torch.ones(4, requires_grad=True, device=gpu)
            (points * factor).sum().backward()
            torch.testing.assert_close(factor.grad, points.sum(0))
    assert gradients == [[3.0, 3.0]] * 4


@pytest.mark.parametrize("kind", ["tensor", "array"])
def test_rows_without_a_direction_are_refused_by_number(gpu: Any, kind: str) -> None:
    for value, message in ((0.0, "row of zeros, row 17"), (np.nan, "NaN: the first in row 17, feature 0")):
        X = rows()
        X[17] = value
        given: Any = torch.from_numpy(X).to(gpu) if kind == "tensor" else X
        with pytest.raises(ValueError, match=message):
            fitted(given)


def test_rows_of_a_tensor_are_read_on_the_host_too(gpu: Any) -> None:
    from vcgmm.data import UnitRows
    from vcgmm.gpu.coreset.tensors import TensorRows, UnitTensorRows

    X = torch.from_numpy(rows()).to(gpu).to(torch.bfloat16)
    scaled = UnitTensorRows(UnitRows(TensorRows(X)), X)
    expected = X.double().cpu().numpy()
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(scaled.all(), expected, atol=1e-6)
    np.testing.assert_allclose(scaled.take(np.array([5, 3])), expected[[5, 3]], atol=1e-6)
    np.testing.assert_allclose(np.concatenate([part.rows for part in scaled.parts()]), expected, atol=1e-6)
