"""Where the tests of the GPU run: on one, or under Triton's interpreter (make test-gpu-interpreted)."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def gpu(device: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What `device="cuda"` means to an estimator in these tests."""
    from vcgmm.gpu import backend

    if device.type == "cpu":
        monkeypatch.setattr(backend, "find_device", lambda _name: device)
    return device
