"""Where the tests of the GPU run: on one, or under Triton's interpreter (make test-gpu-interpreted)."""

from __future__ import annotations

import os
from typing import Any

import pytest


@pytest.fixture(scope="session")
def device() -> Any:
    """A GPU, or the CPU where kernels are interpreted."""
    torch = pytest.importorskip("torch", reason="tests of the GPU need torch")
    if os.environ.get("TRITON_INTERPRET") == "1":
        return torch.device("cpu")
    if not torch.cuda.is_available():
        pytest.skip("no GPU here: make test-gpu-interpreted runs the kernels without one")
    return torch.device("cuda", torch.cuda.current_device())


@pytest.fixture
def gpu(device: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What `device="cuda"` means to an estimator in these tests."""
    from vcgmm.gpu import backend

    if device.type == "cpu":
        monkeypatch.setattr(backend, "find_device", lambda _name: device)
    return device
