"""Sizes are those that Triton would tell."""

from __future__ import annotations

import pytest

triton = pytest.importorskip("triton", reason="tests of the GPU need Triton")

from vcgmm.gpu.device.sizes import pieces_of, power_of_two  # noqa: E402


def test_sizes_are_those_of_triton() -> None:
    for n in (1, 2, 3, 15, 16, 17, 1000, 1 << 20, (1 << 20) + 1, (1 << 40) + 1):
        assert power_of_two(n) == triton.next_power_of_2(n)
        assert [pieces_of(n, size) for size in (1, 7, 64)] == [triton.cdiv(n, size) for size in (1, 7, 64)]
    assert pieces_of(0, 64) == 0
