"""Results on their way to the host are what they were on the device, however large they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="tests of the GPU need torch")

from vcgmm.gpu.device import downloads  # noqa: E402
from vcgmm.gpu.device.downloads import put, to_host  # noqa: E402


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "PIECE", 64)
    monkeypatch.setattr(downloads, "LARGE", 256)


@pytest.mark.parametrize("shape", [(3,), (64,), (31, 5), (40, 2, 3), (0, 4)])
@pytest.mark.parametrize("dtype", ["float64", "int32", "bfloat16", "uint8"])
def test_a_tensor_arrives_as_it_is(device: Any, shape: tuple[int, ...], dtype: str) -> None:
    expected = torch.arange(int(np.prod(shape))).view(shape).to(getattr(torch, dtype))
    assert torch.equal(to_host(expected.to(device)), expected)


def test_columns_and_gaps_arrive_too(device: Any) -> None:
    whole = torch.arange(600.0).view(100, 6)
    there = whole.to(device)
    assert torch.equal(to_host(there[:, 2]), whole[:, 2])
    assert torch.equal(to_host(there[::3, 1:5]), whole[::3, 1:5])
    assert torch.equal(to_host(there.T), whole.T)


def test_results_are_put_where_they_belong(device: Any) -> None:
    whole = torch.arange(900, dtype=torch.int32).view(300, 3)
    out = np.full((310, 3), -1, np.int32)
    put(whole.to(device), out[5:305])
    assert (out[5:305] == whole.numpy()).all()
    assert (out[:5] == -1).all()
    assert (out[305:] == -1).all()
    column = np.empty(300, np.int32)
    put(whole.to(device)[:, 1], column)
    assert (column == whole[:, 1].numpy()).all()
