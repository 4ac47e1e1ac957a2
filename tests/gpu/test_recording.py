"""Recorded work does what the work does."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="tests of the GPU need torch")

from vcgmm.gpu.recording import AS_IT_IS, Recorded  # noqa: E402


@pytest.mark.parametrize("worthwhile", [True, False])
def test_recorded_work_is_done_as_often_as_it_is_asked_for(device: Any, worthwhile: bool) -> None:
    total, step = torch.zeros(3, device=device), torch.ones(3, device=device)
    calls = []

    def work() -> Any:
        calls.append(1)
        total.add_(step)
        return total * 2

    recorded: Recorded[Any] = Recorded(device, worthwhile=worthwhile)
    results = [recorded(work).tolist() for _ in range(AS_IT_IS + 4)]
    assert results == [[2.0 * k] * 3 for k in range(1, AS_IT_IS + 5)]
    step.fill_(-1.0)  # what is in a tensor may change, where it is may not
    assert recorded(work).tolist() == [2.0 * (AS_IT_IS + 3)] * 3
    begun = AS_IT_IS + 1 if worthwhile and device.type == "cuda" else AS_IT_IS + 5
    assert len(calls) == begun
