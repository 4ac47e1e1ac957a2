from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numba
import numpy as np
import pytest
from llvmlite import binding
from numba.core import types
from numba.extending import intrinsic

from vcgmm.kernels.nearest import nearest_tiles
from vcgmm.kernels.parts import vectors
from vcgmm.kernels.parts.selection import AT_ONCE, LANES
from vcgmm.kernels.parts.vectors import HEIGHT, PAIRS, ROWS, VECTOR_BYTES, VECTORS, Vectors, lanes


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


# ------------------------------------------------------------------------------------------------- pairs of shorts


def tile_of_pairs() -> Callable[[np.ndarray, np.ndarray, np.ndarray], None]:
    """A tile of products of rows and columns, which are bits of pairs; compiled anew at every call of this."""

    def typed(_typing: Any, rows: Any, columns: Any, out: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            v = Vectors(context, builder, types.int32)
            left, right, sums = (v.array(*pair) for pair in zip(signature.args, arguments, strict=True))
            places = [v.index(k * v.width) for k in range(VECTORS)]
            tile = v.tile(left, [v.index(r) for r in range(HEIGHT)], right, places)
            for r in range(HEIGHT):
                for place, value in zip(places, tile[r], strict=True):
                    v.store(value, sums, v.index(r), place)
            return context.get_dummy_value()

        return types.void(rows, columns, out), emit

    write = cast("Any", intrinsic(typed))

    @numba.njit
    def run(rows: np.ndarray, columns: np.ndarray, out: np.ndarray) -> None:
        write(rows, columns, out)

    return cast("Callable[[np.ndarray, np.ndarray, np.ndarray], None]", run)


def shorts(rng: np.random.Generator, n: int, D: int) -> np.ndarray:
    return rng.integers(-900, 900, size=(n, D)).astype(np.int16)


@pytest.mark.parametrize("by_name", [True, False])
def test_pairs_are_multiplied_in_one_instruction_or_in_several(
    by_name: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not by_name:
        monkeypatch.setattr(vectors, "PAIRS", {})
    rng, n, D = np.random.default_rng(0), VECTORS * lanes(4), 46
    rows, points = shorts(rng, HEIGHT, D), shorts(rng, n, D)
    columns, out = np.ascontiguousarray(points.view(np.float32).T), np.empty((HEIGHT, n), np.int32)
    run = tile_of_pairs()
    run(rows.view(np.float32), columns, out)
    np.testing.assert_array_equal(out, rows.astype(np.int64) @ points.T.astype(np.int64))
    (code,) = cast("Any", run).inspect_asm().values()
    feature, _ = PAIRS.get(VECTOR_BYTES, ("none", ""))
    is_there = by_name and cast("Any", binding).get_host_cpu_features().get(feature, False)
    times_unrolled, left_over = divmod(code.count("\tvpdpwssds\t"), HEIGHT * VECTORS)
    assert (times_unrolled > 0, left_over) == (is_there, 0)
    assert not (is_there and "\tvpmaddwd\t" in code)
