from __future__ import annotations

import pytest
from llvmlite import binding

from vcgmm.kernels import nearest_tiles, vectors
from vcgmm.kernels.selection import AT_ONCE, LANES
from vcgmm.kernels.vectors import HEIGHT, ROWS, VECTOR_BYTES, lanes


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        ({"avx512f": True, "avx": True}, (64, 32)),
        ({"avx512f": False, "avx": True, "sse2": True}, (32, 16)),
        ({"neon": True}, (16, 32)),
        ({"sse2": True}, (16, 16)),
        ({}, (16, 16)),
    ],
)
def test_registers_are_those_of_the_processor(
    features: dict[str, bool], expected: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binding, "get_host_cpu_features", lambda: features)
    assert vectors._registers() == expected


def test_tiles_divide_what_is_filled_up_for_them() -> None:
    assert ROWS % HEIGHT == ROWS % AT_ONCE == 0
    assert lanes(4) == 2 * lanes(8) == VECTOR_BYTES // 4
    for itemsize in (4, 8):
        assert LANES % (nearest_tiles.VECTORS * lanes(itemsize)) == 0
