"""Numbers that come to the host in one copy, and numbers that are made once."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="tests of the GPU need torch")

from vcgmm.gpu.device.constants import equal_starts, first_ids, one_float, one_group  # noqa: E402
from vcgmm.gpu.device.together import Together, alone  # noqa: E402


def test_everybody_finds_its_own(device: Any) -> None:
    whole = Together([3, 0, 2], device)
    for number, part in enumerate(whole.parts):
        part.tensor.fill_(number)
    assert [part.array().tolist() for part in whole.parts] == [[0.0] * 3, [], [2.0] * 2]
    assert whole.parts[0].array().base is whole.parts[2].array().base  # one copy


def test_who_is_alone_has_all(device: Any) -> None:
    part = alone(2, device)
    part.tensor.copy_(torch.tensor([1.5, -2.0]))
    assert part.array().tolist() == [1.5, -2.0]


def test_what_follows_from_sizes_is_made_once(device: Any) -> None:
    for made, given, expected, kind in (
        (one_group, (7,), [0, 7], torch.int64),
        (one_float, (2.5,), [2.5], torch.float64),
        (first_ids, (3,), [0, 1, 2], torch.int32),
        (equal_starts, (3, 4), [0, 4, 8, 12], torch.int64),
    ):
        found = made(*given, device)
        assert found.tolist() == expected
        assert found.dtype == kind
        assert made(*given, device) is found
