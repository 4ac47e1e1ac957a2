"""What every source keeps to, whatever its rows come from."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

from vcgmm.data import Source, StreamedRows
from vcgmm.data import rows as rows_module
from vcgmm.parallel import Workers

kinds = runpy.run_path(str(Path(__file__).with_name("kinds.py")))


@pytest.fixture(params=kinds["CASES"], ids=lambda case: f"{case[0]}-{case[1]}")
def case(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Source, np.ndarray]:
    kind, dtype = request.param
    X = kinds["some_rows"](dtype)
    return kinds["KINDS"][kind][0](tmp_path, X), X


def test_it_says_how_many_rows_how_wide_and_of_which_type(case: tuple[Source, np.ndarray]) -> None:
    source, X = case
    assert source.n_features == 3
    assert source.shape == (101, 3)
    assert len(source) == 101
    assert source.dtype == X.dtype  # uint8 and float16 too: nothing is widened on the way
    assert source.name
    assert "101 rows of 3 features" in repr(source)


def test_it_gives_all_rows_in_order_in_blocks_of_any_length(case: tuple[Source, np.ndarray]) -> None:
    source, X = case
    for n_rows in (1, 10, 101, 1000, None):
        blocks = list(source.blocks(n_rows))
        assert all(block.dtype == X.dtype for block in blocks)
        assert [len(block) for block in blocks[:-1]] == [n_rows] * (len(blocks) - 1)
        np.testing.assert_array_equal(np.concatenate(blocks), X)


def test_every_pass_is_the_same_also_after_one_that_was_broken_off(case: tuple[Source, np.ndarray]) -> None:
    source, X = case
    for _ in range(2):
        next(source.blocks(7))
        np.testing.assert_array_equal(source, X)


def test_it_gives_rows_by_index_in_any_order(case: tuple[Source, np.ndarray]) -> None:
    source, X = case
    for indices in ([], [0], [100], [0, 1, 2, 50, 51, 100], [99, 3, 3, 4, 0], range(101)):
        taken = source.take(np.array(indices, np.int64))
        assert taken.dtype == X.dtype
        np.testing.assert_array_equal(taken, X[list(indices)])


def test_it_reads_into_what_it_is_given_and_says_when_it_ends(case: tuple[Source, np.ndarray]) -> None:
    source, X = case
    room = np.empty((60, 3), X.dtype)
    with source.cursor() as fill:
        assert fill(room, None) == 60
        np.testing.assert_array_equal(room, X[:60])
        assert fill(room, None) == 41
        np.testing.assert_array_equal(room[:41], X[60:])
        assert fill(room, None) == 0


def test_it_is_read_ahead_in_parts_of_whole_blocks(
    case: tuple[Source, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, X = case
    monkeypatch.setattr(rows_module, "BLOCK_VALUES", 12)
    monkeypatch.setattr(rows_module, "LEAST_ROWS", 1)
    monkeypatch.setattr("vcgmm.data.streamed.PART_BLOCKS", 5)
    rows = StreamedRows(source)
    with Workers(2) as workers:
        parts = [(part.first, part.rows.copy()) for part, _ in workers.in_order(lambda part: part, rows.parts())]
    assert [first for first, _ in parts] == list(range(0, 101, 20))
    np.testing.assert_array_equal(np.concatenate([part for _, part in parts]), X)


def test_a_row_is_located(case: tuple[Source, np.ndarray]) -> None:
    source, _ = case
    assert "row" in source.locate(100)
