from __future__ import annotations

from typing import Any, cast

import numba
import numpy as np
import pytest
from llvmlite import ir

from vcgmm.kernels.parts.selection import FEW, LANES, key_indices
from vcgmm.kernels.parts.vectors import HEIGHT, ROWS, VECTORS, lanes
from vcgmm.kernels.search import short_survey, upcoming
from vcgmm.kernels.search.upcoming import ROWS_AT_ONCE


def leave_a_trace(builder: Any, begin: Any, offset: Any) -> None:
    """Add 1 to what would be fetched."""
    byte = ir.IntType(8)
    place = builder.gep(builder.bitcast(begin, byte.as_pointer()), [offset])
    builder.store(builder.add(builder.load(place), ir.Constant(byte, 1)), place)


@pytest.fixture(autouse=True)
def traces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upcoming, "emit_hint", leave_a_trace)


def asked_for(m: int, D: int, order: np.ndarray, after: int, n_rows: int) -> np.ndarray:
    """How often each number of a matrix (n_rows, D) is asked for by the tiles of m candidates."""
    n, n_pairs = VECTORS * lanes(4), D // 2
    source, zeros = np.zeros((n_rows, D), np.float32), np.zeros(max(m, n), np.float32)
    rows, columns = np.zeros((m, n_pairs), np.float32), np.zeros((n_pairs, n), np.float32)
    indices, best = key_indices(m, np.int32), np.empty(FEW * LANES, np.int32)
    tiles = cast("Any", short_survey)._compiled(VECTORS)

    @numba.njit
    def run(rows, columns, constants, norms, steps, units, indices, best, source, order, after):  # type: ignore[no-untyped-def]
        tiles(rows, columns, constants, norms, steps, units, indices, best, source, order, 0, after)

    run(rows, columns, zeros[:m], zeros, zeros, zeros, indices, best, source, order, after)
    return source.view(np.uint8)[:, ::4]


@pytest.mark.parametrize("integer", [np.int32, np.int64])
def test_rows_that_come_next_are_asked_for_pair_by_pair(integer: type) -> None:
    n, D, n_rows = VECTORS * lanes(4), 12, 300
    order = np.random.default_rng(0).permutation(n_rows).astype(integer)
    m = n * HEIGHT // ROWS_AT_ONCE  # as many tiles as it takes to ask for a row of every column, once
    expected = np.zeros((n_rows, D), np.uint8)
    expected[order[50 : 50 + n], ::2] = 1
    np.testing.assert_array_equal(asked_for(m, D, order, 50, n_rows), expected)


@pytest.mark.parametrize("m", [ROWS, 24 * ROWS])
@pytest.mark.parametrize("after", [0, 17, 20, 1000])
def test_nothing_beyond_the_last_row_is_asked_for(m: int, after: int) -> None:
    n_rows = 20
    order = np.arange(n_rows)[::-1].copy()
    counts = asked_for(m, 8, order, after, n_rows)
    assert counts.sum() == m // HEIGHT * ROWS_AT_ONCE * 4
    assert counts[max(n_rows - after, 1) :].sum() == 0
    if after >= n_rows - 1:
        assert counts[order[-1]].sum() == counts.sum()
