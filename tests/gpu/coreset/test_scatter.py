"""How a sample scatters, and what is done about rows whose squares lose digits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="tests of the GPU need torch")
pytest.importorskip("triton", reason="tests of the GPU need Triton")

from vcgmm.algorithm.coreset.frame import Frame  # noqa: E402
from vcgmm.gpu.coreset.points import DevicePoints  # noqa: E402
from vcgmm.gpu.coreset.scatter import Scatter, begin_scatter, keeps_digits  # noqa: E402
from vcgmm.gpu.start import directions_of_narrow  # noqa: E402


@pytest.mark.parametrize(("n", "n_features"), [(300, 5), (500, 70)])
def test_scatter_of_some_rows_is_that_of_the_formula(device: Any, n: int, n_features: int) -> None:
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(n, n_features)) * rng.random(n_features) * 4 + 3).astype(np.float32)
    weights = (rng.random(n) + 0.1).astype(np.float32)
    rows = rng.integers(0, n, 200)
    stored, masses, chosen = (torch.from_numpy(array).to(device) for array in (X, weights, rows))
    found = Scatter(stored, 0.5, masses, chosen).array()
    shares = weights.astype(np.float64)[rows]
    shares /= shares.sum()
    sample = 0.5 * X.astype(np.float64)[rows]
    sample -= shares @ sample
    np.testing.assert_allclose(found, sample.T @ (shares[:, None] * sample), atol=1e-5)


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid")  # of the interpreter
@pytest.mark.parametrize("exponent", [-60, -10, 0, 10, 60, 120])
def test_directions_are_the_same_however_rows_are_scaled(device: Any, exponent: int) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 60)) * np.where(np.arange(60) < 8, 5.0, 0.1)
    frame, weights = Frame(np.zeros(60), 2.0**-exponent, np.dtype(np.float32)), torch.ones(3000, device=device)
    stored = torch.from_numpy((X * 2.0**exponent).astype(np.float32)).to(device)
    points = DevicePoints(stored, frame.scale, weights, frame, "fp32")
    begun = begin_scatter(stored, 1.0, weights, np.random.default_rng(2))
    assert begun is not None
    assert keeps_digits(begun.array()) == (abs(exponent) < 20)
    expected = directions_of_narrow(points, np.random.default_rng(2))
    found = directions_of_narrow(points, np.random.default_rng(3), begun)
    assert expected is not None
    assert found is not None
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_too_few_rows_have_no_directions(device: Any) -> None:
    stored = torch.zeros((30, 20), device=device)
    assert begin_scatter(stored, 1.0, torch.ones(30, device=device), np.random.default_rng(0)) is None
