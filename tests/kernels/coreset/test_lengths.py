from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from vcgmm.kernels.coreset.lengths import to_unit_length

pytestmark = pytest.mark.interpreted

FINITE = st.floats(-1e6, 1e6, width=32).filter(lambda x: x == 0 or abs(x) > 1e-6)


@given(
    arrays.arrays(np.float32, st.tuples(st.integers(1, 4), st.integers(1, 7)), elements=FINITE),
    st.sampled_from([np.float32, np.float64]),
)
def test_rows_are_divided_by_their_lengths(rows: np.ndarray, dtype: type) -> None:
    out = np.zeros(rows.shape, dtype)
    lengths = np.linalg.norm(rows.astype(np.float64), axis=1)
    good = int(np.argmin(lengths > 0)) if not lengths.all() else len(rows)
    assert to_unit_length(rows, out) == good
    expected = rows[:good] / lengths[:good, None]
    np.testing.assert_allclose(out[:good], expected, rtol=4 * np.finfo(dtype).eps, atol=1e-40)


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1.0, 1e160, 1e300])
def test_lengths_neither_overflow_nor_underflow(scale: float) -> None:
    rows = np.array([[3.0, 0.0, -4.0]]) * scale
    out = np.empty_like(rows)
    with np.errstate(over="ignore"):  # NumPy would warn of the first attempt, compiled code goes on in silence
        assert to_unit_length(rows, out) == 1
    np.testing.assert_allclose(out, [[0.6, 0.0, -0.8]], rtol=1e-14)


@pytest.mark.parametrize("bad", [0.0, np.nan, np.inf, -np.inf])
def test_a_row_without_direction_is_told(bad: float) -> None:
    rows = np.ones((5, 3))
    rows[2] = [bad, 0.0, bad]
    assert to_unit_length(rows, np.empty_like(rows)) == 2
