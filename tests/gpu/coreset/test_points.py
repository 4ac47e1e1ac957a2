"""Points on the device: their middle, and what the host leaves for later."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="tests of the GPU need torch")
pytest.importorskip("triton", reason="tests of the GPU need Triton")

from vcgmm.algorithm.coreset.frame import Frame  # noqa: E402
from vcgmm.gpu.coreset.points import MIDDLE_ROWS, DevicePoints  # noqa: E402


def points_on(stored: Any, scale: float = 1.0) -> DevicePoints:
    frame = Frame(np.zeros(stored.shape[1]), scale, np.dtype(np.float32))
    return DevicePoints(stored, scale, torch.ones(len(stored), device=stored.device), frame, "fp32")


@pytest.mark.parametrize("kind", [torch.float32, torch.float16, torch.uint8, torch.int8])
@pytest.mark.parametrize(
    ("n", "n_features"), [(1, 3), (300, 17), (2 * MIDDLE_ROWS - 1, 5), (5 * MIDDLE_ROWS + 7, 3)]
)
def test_the_middle_is_the_mean_of_some(device: Any, n: int, n_features: int, kind: Any) -> None:
    values = np.random.default_rng(0).integers(0, 100, (n, n_features + 2))
    stored = torch.from_numpy(values).to(device, kind)[:, :n_features]  # at a stride
    expected = 0.25 * values[:: max(1, n // MIDDLE_ROWS), :n_features].mean(0)
    np.testing.assert_allclose(points_on(stored, 0.25).middle().cpu().numpy()[0], expected, rtol=1e-5)


def test_chores_wait_for_their_turn(device: Any) -> None:
    points, done = points_on(torch.zeros((4, 2), device=device)), []

    def first() -> None:
        done.append("first")
        points.chores.append(lambda: done.append("then"))

    points.chores.append(first)
    points.do_chores()
    assert done == ["first"]
    points.do_chores()
    assert done == ["first", "then"]
    points.chores.append(first)
    points.end_chores()
    assert done == ["first", "then"] * 2
