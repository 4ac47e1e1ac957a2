"""Log densities over all clusters: what SciPy gives, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp

torch = pytest.importorskip("torch", reason="tests of the GPU need torch")
pytest.importorskip("triton", reason="tests of the GPU need Triton")

from vcgmm.gpu.prediction import densities  # noqa: E402
from vcgmm.gpu.prediction.densities import log_sum_by_distance, log_sum_of_joints  # noqa: E402


def sums_of_joints(joints: np.ndarray, device: Any) -> np.ndarray:
    sums = torch.empty(len(joints), dtype=torch.float64, device=device)
    log_sum_of_joints(torch.from_numpy(joints).to(device), sums)
    return sums.cpu().numpy()


@pytest.mark.parametrize("n_clusters", [1, 2, 5, 64, 200])
@pytest.mark.parametrize("at_once", [64, 1024])
def test_sums_of_joints_are_those_of_scipy(
    device: Any, monkeypatch: pytest.MonkeyPatch, n_clusters: int, at_once: int
) -> None:
    monkeypatch.setattr(densities, "AT_ONCE", at_once)
    joints = np.random.default_rng(0).normal(scale=30.0, size=(7, n_clusters))
    np.testing.assert_allclose(sums_of_joints(joints, device), logsumexp(joints, axis=1), rtol=1e-14)


def test_values_without_mass_and_far_apart_count_for_nothing(device: Any) -> None:
    nothing = -np.inf
    joints = np.array([[nothing, -3.0, nothing], [nothing] * 3, [-1e300, -5.0, -1e307], [-2e5, -2e5, -2e5]])
    expected = [-3.0, nothing, -5.0, -2e5 + np.log(3.0)]
    np.testing.assert_allclose(sums_of_joints(joints, device), expected, rtol=1e-15)


@pytest.mark.parametrize("rate", [1e-3, 0.7, 1e6])
@pytest.mark.parametrize("n_clusters", [1, 13, 130])
def test_sums_by_distance_are_those_of_the_formula(device: Any, rate: float, n_clusters: int) -> None:
    rng = np.random.default_rng(0)
    rows, means = rng.normal(size=(9, 6)), rng.normal(size=(n_clusters, 6))
    rows[0] = means[0]  # where rounding might leave a distance below zero
    sums = torch.empty(9, dtype=torch.float64, device=device)
    there, centres = torch.from_numpy(rows).to(device), torch.from_numpy(means).to(device)
    log_sum_by_distance(there, centres, (centres * centres).sum(1), rate, sums)
    expected = logsumexp(-rate * ((rows[:, None] - means) ** 2).sum(2), axis=1)
    np.testing.assert_allclose(sums.cpu().numpy(), expected, rtol=1e-12, atol=1e-13 * max(rate, 1.0))
    assert n_clusters > 1 or sums[0] <= 0.0
