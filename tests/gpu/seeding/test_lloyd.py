"""Lloyd steps inside cells: each centre goes to the mean of those of its cell's points that are nearest to it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="tests of the GPU need torch")
pytest.importorskip("triton", reason="tests of the GPU need Triton")

from vcgmm.algorithm.coreset.frame import Frame  # noqa: E402
from vcgmm.gpu.cells.nearest import lists_between  # noqa: E402
from vcgmm.gpu.cells.pieces import sort_by_group  # noqa: E402
from vcgmm.gpu.coreset.points import DevicePoints  # noqa: E402
from vcgmm.gpu.device.tiling import aligned  # noqa: E402
from vcgmm.gpu.seeding.lloyd import lloyd_steps  # noqa: E402
from vcgmm.gpu.seeding.partition import aligned_rows  # noqa: E402
from vcgmm.kernels.nearest.lloyd import STEP_LENGTH  # noqa: E402

N_FEATURES = 17


@pytest.fixture(params=["tiles", "sorting"])
def either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums by tile, or as if they took too much memory."""
    if request.param == "sorting":
        monkeypatch.setattr("vcgmm.gpu.seeding.lloyd.SUMMED_VALUES", 0)


def one_step(
    X: np.ndarray, weights: np.ndarray, cells: np.ndarray, start: np.ndarray, centres: np.ndarray, length: float
) -> np.ndarray:
    """A Lloyd step in each cell, plainly: so many times the way to the means."""
    moved = centres.copy()
    for cell, (a, b) in enumerate(pairwise(start)):
        here = cells == cell
        if b == a or not here.any():
            continue
        nearest = ((X[here][:, None] - centres[a:b]) ** 2).sum(2).argmin(1)
        for i in range(b - a):
            mass = weights[here][nearest == i]
            if mass.sum() > 0:
                moved[a + i] += length * (mass @ X[here][nearest == i] / mass.sum() - centres[a + i])
    return moved


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("steps", [1, 3])
def test_centres_move_to_the_means_of_their_points(device: Any, steps: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, N_FEATURES)).astype(np.float32) + 5
    weights = rng.uniform(0.5, 1.5, 500)
    cells = rng.choice([0, 1, 3], 500, p=[0.7, 0.2, 0.1]).astype(np.int32)  # nobody is in the third cell
    start = np.array([0, 70, 75, 76, 80])
    centres = X[rng.integers(500, size=80)] + 0.1 * rng.normal(size=(80, N_FEATURES)).astype(np.float32)
    centres[74] = 1e3  # of no point
    frame = Frame(np.zeros(N_FEATURES), 1.0, np.dtype(np.float32))
    masses = torch.from_numpy(weights.astype(np.float32)).to(device)
    points = DevicePoints(torch.from_numpy(X).to(device), 1.0, masses, frame, "fp32")
    groups = sort_by_group(torch.from_numpy(cells).to(device), 4)
    origins = torch.full((4, N_FEATURES), 5.0, device=device)
    given = torch.from_numpy(centres).to(device)
    lists = lists_between(start, device)
    found = lloyd_steps(points, groups, origins, lists, aligned(given), steps)
    expected = centres.astype(np.float64)
    for step in range(steps):
        length = STEP_LENGTH if step < steps - 1 else 1.0
        expected = one_step(X.astype(np.float64), weights, cells, start, expected, length)
    np.testing.assert_allclose(found.cpu().numpy(), expected, atol=1e-4)
    assert (found[74] == 1e3).all()
    again = lloyd_steps(points, groups, origins, lists, aligned(torch.from_numpy(centres).to(device)), steps)
    assert torch.equal(found, again)


@pytest.mark.parametrize("precision", ["tf32", "bf16"])
@pytest.mark.parametrize("n_features", [3, 50, 70])  # all features of short rows are multiplied at once
def test_centres_of_few_digits_are_near_the_means(device: Any, n_features: int, precision: str) -> None:
    rng = np.random.default_rng(0)
    sites = 8.0 * rng.permutation(60)[:, None] + rng.normal(size=(60, n_features))
    labels = rng.integers(60, size=900)
    cells, start = (labels >= 40).astype(np.int32), np.array([0, 40, 60])
    X, weights = sites[labels] + 0.1 * rng.normal(size=(900, n_features)), rng.uniform(0.5, 1.5, 900)
    frame = Frame(np.zeros(n_features), 1.0, np.dtype(np.float32))
    masses = torch.from_numpy(weights.astype(np.float32)).to(device)
    points = DevicePoints(torch.from_numpy(X.astype(np.float32)).to(device), 1.0, masses, frame, precision)
    groups = sort_by_group(torch.from_numpy(cells).to(device), 2)
    origins = torch.full((2, n_features), 240.0, device=device)
    centres = aligned(torch.from_numpy(sites).to(device))
    found = lloyd_steps(points, groups, origins, lists_between(start, device), centres, 1)
    expected = one_step(X, weights, cells, start, sites, 1.0)
    np.testing.assert_allclose(found.cpu().numpy(), expected, atol=240 / 2**11)


@pytest.mark.parametrize("n_features", [5, 16, 70])
def test_rows_are_gathered_as_aligned_centres(device: Any, n_features: int) -> None:
    X = torch.arange(30.0 * n_features, device=device).view(30, n_features).to(torch.bfloat16)
    frame = Frame(np.zeros(n_features), 0.5, np.dtype(np.float32))
    points = DevicePoints(X, 0.5, torch.ones(30, device=device), frame, "fp32")
    rows = torch.tensor([7, 0, 7, 29], device=device)
    found = aligned_rows(points, rows)
    assert torch.equal(found, points.at(rows))
    assert found.stride(0) % 16 == 0
    assert (found.as_strided((4, found.stride(0)), found.stride())[:, n_features:] == 0).all()
