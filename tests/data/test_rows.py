from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from vcgmm.data import ArrayRows, StreamedRows
from vcgmm.data.memory import MemorySource
from vcgmm.data.rows import BLOCK_VALUES, FEW_PARTS, LEAST_ROWS, exact_float


def test_blocks_cover_all_rows_in_order() -> None:
    X = np.arange(3 * (BLOCK_VALUES // 2) + 10, dtype=np.float32).reshape(-1, 2)
    rows = ArrayRows(X)
    assert rows.n_blocks == 2
    np.testing.assert_array_equal(np.vstack([rows.block(i) for i in range(rows.n_blocks)]), X)
    assert [rows.bounds(i) for i in range(2)] == [(0, BLOCK_VALUES // 2), (BLOCK_VALUES // 2, len(X))]


def test_a_block_of_very_wide_rows_still_holds_some() -> None:
    rows = ArrayRows(np.broadcast_to(np.uint8(0), (LEAST_ROWS + 1, BLOCK_VALUES)))
    assert rows.n_blocks == 2
    assert rows.bounds(0) == (0, LEAST_ROWS)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (np.float16, np.float32),
        (np.uint8, np.float32),
        (np.int16, np.float32),
        (np.bool_, np.float32),
        (np.float32, np.float32),
        (np.int32, np.float64),
        (np.uint64, np.float64),
        (np.float64, np.float64),
    ],
)
def test_values_are_held_by_the_narrowest_float_that_loses_nothing(dtype: type, expected: type) -> None:
    assert exact_float(np.dtype(dtype)) == expected
    X = np.array([[0, 1], [1, 0]], dtype)
    assert ArrayRows(X).block(0).dtype == expected
    assert ArrayRows(X).take(np.array([1])).dtype == dtype


@pytest.mark.parametrize("layout", ["fortran", "strided", "reversed", "read-only map"])
def test_any_memory_layout_gives_contiguous_rows(layout: str, tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(20, 6)).astype(np.float32)
    if layout == "fortran":
        array = np.asfortranarray(X)
    elif layout == "strided":
        array = np.repeat(X, 2, axis=1)[:, ::2]
    elif layout == "reversed":
        array = X[::-1].copy()[::-1]
    else:
        np.save(tmp_path / "X.npy", X)
        array = np.load(tmp_path / "X.npy", mmap_mode="r")
    rows = ArrayRows(array)
    assert rows.block(0).flags.c_contiguous
    np.testing.assert_array_equal(rows.block(0), X)
    np.testing.assert_array_equal(rows.take(np.array([3, 1])), X[[3, 1]])


def test_the_first_value_that_is_not_finite_is_named() -> None:
    X = np.zeros((5, 2))
    rows = ArrayRows(X, "Y")
    rows.refuse_nonfinite(0)
    X[3, 1] = np.inf
    with pytest.raises(ValueError, match=r"Input Y contains infinity.*row 3, feature 1"):
        rows.refuse_nonfinite(0)
    X[3, 0] = np.nan
    with pytest.raises(ValueError, match=r"NaN.*row 3, feature 0"):
        rows.refuse_nonfinite(0)


@pytest.mark.parametrize(("width", "blocks"), [(1, 8), (100, 8), (8192, 4), (BLOCK_VALUES, 1)])
def test_parts_of_a_source_hold_fewer_blocks_where_blocks_are_long(width: int, blocks: int) -> None:
    wide = np.broadcast_to(np.uint8(0), (10 * max(LEAST_ROWS, BLOCK_VALUES // width), width))
    rows = StreamedRows(MemorySource(wide, "wide"))
    parts = rows.parts()
    assert len(next(parts)) == blocks * rows.rows_per_block
    parts.close()


def test_rows_in_memory_are_in_few_parts_unless_there_are_very_many(tmp_path: Path) -> None:
    for n_rows in (1, 1000, 30 << 18, 12 * 16 << 18):
        rows = ArrayRows(np.broadcast_to(np.float32(1.0), (n_rows, 1)))
        assert rows.in_few_parts
        assert len(list(rows.parts())) <= FEW_PARTS
    assert not ArrayRows(np.broadcast_to(np.float32(1.0), (30 * 16 << 18, 1))).in_few_parts
    np.save(tmp_path / "rows.npy", np.ones((9, 2)))
    assert not ArrayRows(np.load(tmp_path / "rows.npy", mmap_mode="r")).in_few_parts
