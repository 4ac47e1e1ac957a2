"""Moments and coresets of tensors on the device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="tests of the GPU need torch")

from vcgmm.algorithm.coreset.frame import moments as moments_on_cpu  # noqa: E402
from vcgmm.data import ArrayRows  # noqa: E402
from vcgmm.gpu.coreset import lightweight as coreset  # noqa: E402
from vcgmm.gpu.coreset import tensors  # noqa: E402
from vcgmm.gpu.coreset.lightweight import lightweight_coreset, moments  # noqa: E402
from vcgmm.gpu.coreset.tensors import TensorRows  # noqa: E402
from vcgmm.parallel import Workers  # noqa: E402


def silent(_n: int) -> None: ...


@pytest.mark.parametrize("weighted", [False, True])
def test_moments_are_those_of_the_cpu(device: Any, weighted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensors, "BLOCK_VALUES", 64)  # many blocks
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3)) + 1e6
    weights = rng.uniform(size=100) * (rng.random(100) > 0.2) if weighted else None
    given = None if weights is None else torch.from_numpy(weights).to(device)
    facts = moments(TensorRows(torch.from_numpy(X).to(device)), given, silent)
    expected = moments_on_cpu(ArrayRows(X), weights, Workers(1), silent)
    assert facts.n_usable == expected.n_usable
    assert facts.total_weight == pytest.approx(expected.total_weight, rel=1e-12)
    assert facts.total_variance == pytest.approx(expected.total_variance, rel=1e-9)
    np.testing.assert_allclose(facts.mean, expected.mean, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "uint8"])
def test_moments_of_rows_of_any_type_block_by_block(
    device: Any, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coreset, "MOST_BLOCKS", 3)
    monkeypatch.setattr(coreset, "SURVEYED", 40)
    X = torch.from_numpy(np.random.default_rng(0).normal(100.0, 20.0, (110, 70))).to(getattr(torch, dtype))
    facts = moments(TensorRows(X.to(device)), None, silent)
    wide = X.double().numpy()
    np.testing.assert_allclose(facts.mean, wide.mean(0), rtol=1e-13)
    assert facts.total_variance == pytest.approx(wide.var(0).sum(), rel=1e-12)


def test_weighted_sums_over_a_coreset_are_those_of_the_data(device: Any) -> None:
    rng = np.random.default_rng(0)
    X = torch.from_numpy(rng.normal(size=(400, 2)) ** 3).to(device)
    weights = torch.from_numpy(rng.uniform(0.5, 2.0, 400)).to(device)
    rows = TensorRows(X)
    facts = moments(rows, weights, silent)
    totals, sums = [], []
    for seed in range(60):
        indices, drawn = lightweight_coreset(rows, facts, weights, 80, np.random.default_rng(seed), 1, silent)
        assert (indices.diff() > 0).all()
        totals.append(float(drawn.sum()))
        sums.append(float(drawn @ (X[indices] ** 2).sum(1)))
    exact = float(weights @ (X**2).sum(1))
    assert np.mean(totals) == pytest.approx(float(weights.sum()), rel=0.05)
    assert np.mean(sums) == pytest.approx(exact, abs=4 * np.std(sums) / 60**0.5)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # interpreted kernels are NumPy
def test_values_without_squares_are_refused(device: Any) -> None:
    rows = TensorRows(torch.tensor([[1e200], [-1e200]], dtype=torch.float64, device=device))
    with pytest.raises(ValueError, match="overflow float64"):
        moments(rows, None, silent)
    rows = TensorRows(torch.tensor([[1e-170], [-1e-170]], dtype=torch.float64, device=device))
    with pytest.raises(ValueError, match="underflow float64"):
        moments(rows, None, silent)
    rows = TensorRows(torch.tensor([[1e308], [1e308]], dtype=torch.float64, device=device))
    with pytest.raises(ValueError, match="overflow float64"):
        moments(rows, None, silent)


def test_tensors_are_rows_like_any_other(device: Any) -> None:
    X = torch.arange(12.0, device=device).view(6, 2).to(torch.bfloat16)
    rows = TensorRows(X)
    assert (rows.n_samples, rows.n_features, rows.dtype) == (6, 2, np.float32)
    assert rows.take(np.array([4, 1])).tolist() == [[8.0, 9.0], [2.0, 3.0]]
    assert np.concatenate([part.rows for part in rows.parts()]).tolist() == rows.all().tolist()
