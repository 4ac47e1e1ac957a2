from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcgmm.kernels.parts.transpose import SIDE, transpose, transpose_rows

pytestmark = pytest.mark.interpreted


@given(st.sampled_from([np.float32, np.float64]), st.integers(0, 3 * SIDE), st.integers(0, 20), st.data())
def test_columns_are_a_part_of_the_rows_and_nothing_else_changes(
    dtype: type, n: int, width: int, data: st.DataObject
) -> None:
    first, beyond, more = (data.draw(st.integers(0, 9)) for _ in range(3))
    rows = np.random.default_rng(n).normal(size=(n + more, first + width + beyond)).astype(dtype)
    columns = np.full((width, n + beyond), np.nan, dtype)
    transpose(n, rows, first, columns)
    np.testing.assert_array_equal(columns[:, :n], rows[:n, first : first + width].T)
    assert np.isnan(columns[:, n:]).all()


def test_a_row_of_a_view_is_where_its_strides_say() -> None:
    rows = np.random.default_rng(0).normal(size=(5 * SIDE, 2 * SIDE)).astype(np.float32)
    columns = np.zeros((3, 2 * SIDE, 2 * SIDE), np.float32)
    transpose(2 * SIDE, rows[SIDE : 3 * SIDE], 0, columns[1])
    np.testing.assert_array_equal(columns[1], rows[SIDE : 3 * SIDE].T)
    assert not columns[[0, 2]].any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "width"), [(5, 5), (5, 8), (1, 32), (0, 4), (21, 32)])
def test_zeros_fill_up_what_is_no_row(n: int, width: int, dtype: type) -> None:
    rows = np.random.default_rng(4).normal(size=(22, 11)).astype(dtype)
    columns = np.full((11, width), np.nan, dtype)
    transpose_rows(n, rows, columns)
    np.testing.assert_array_equal(columns[:, :n], rows[:n].T)
    assert (columns[:, n:] == 0.0).all()
