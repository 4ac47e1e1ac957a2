from __future__ import annotations

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba.core.errors import TypingError

from vcgmm.kernels.coreset.eight_rows import ROWS, add_eight_rows
from vcgmm.kernels.jit import kernel
from vcgmm.kernels.nearest.nearest_tiles import HEIGHT, VECTORS, nearest_of_few
from vcgmm.kernels.parts.differences import subtract
from vcgmm.kernels.parts.vectors import lanes

pytestmark = pytest.mark.interpreted


@kernel
def subtract_all(source: np.ndarray, origin: np.ndarray, out: np.ndarray, squares: np.ndarray) -> None:
    for j in range(source.shape[0]):
        squares[j] = subtract(source, j, origin, out, j)


@kernel
def add_all(rows: np.ndarray, centre: np.ndarray, sums: np.ndarray) -> None:
    for n in range(0, rows.shape[0], ROWS):
        add_eight_rows(rows, n, centre, sums)


@given(seed=st.integers(0, 1 << 20), D=st.integers(1, 70), dtype=st.sampled_from([np.float32, np.float64]))
def test_rows_less_an_origin(seed: int, D: int, dtype: type) -> None:
    rng = np.random.default_rng(seed)
    source, origin = rng.normal(size=(4, D)).astype(dtype), rng.normal(size=D).astype(dtype)
    out, squares = np.full((4, D + 3), 7, dtype), np.empty(4, dtype)
    subtract_all(source, origin, out, squares)
    np.testing.assert_array_equal(out[:, :D], source - origin)
    np.testing.assert_array_equal(out[:, D:], 7)  # what lies beyond the features is left alone
    exact = ((source - origin).astype(np.float64) ** 2).sum(axis=1)
    np.testing.assert_allclose(squares, exact, rtol=20 * np.finfo(dtype).eps)


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="is about compiled code")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("more", [False, True])
def test_of_few_features_the_norm_is_what_a_product_tells(more: bool, dtype: type) -> None:
    n_lanes = lanes(np.dtype(dtype).itemsize)
    D = n_lanes - 1 if more else 1  # as many as are no whole vector, whatever processor this is
    rng = np.random.default_rng(D)
    k, width = HEIGHT, VECTORS * n_lanes
    source, origin = rng.normal(size=(k, D)).astype(dtype), rng.normal(size=D).astype(dtype)
    rows, squares = np.empty((k, D), dtype), np.empty(k, dtype)
    subtract_all(source, origin, rows, squares)
    columns = np.ascontiguousarray(np.repeat(rows, width // k, axis=0).T)
    best, ids = np.empty(width, dtype), np.empty(width, np.int32)
    nearest_of_few(rows, squares, columns, best, ids)
    np.testing.assert_array_equal(best + squares[ids], 0)


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="is about compiled code")
def test_rows_of_several_types_or_orders_are_refused() -> None:
    rows, single = np.ones((4, 6)), np.ones(6, np.float32)
    for source, origin in ((rows, single), (rows[:, ::2], np.ones(3))):
        with pytest.raises(TypingError, match="C-ordered and of one type"):
            subtract_all(source, origin, np.empty((4, 6)), np.empty(4))


@given(seed=st.integers(0, 1 << 20), D=st.integers(1, 70), n=st.integers(1, 3))
def test_eight_rows_less_a_centre(seed: int, D: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n * ROWS, D)).astype(np.float32)
    room = -(-D // lanes(4)) * lanes(4)
    centre, sums = np.zeros(room, np.float32), np.zeros((2, room), np.float32)
    centre[:D] = rng.normal(size=D)
    before = rng.normal(size=(2, D)).astype(np.float32)
    sums[:, :D] = before
    add_all(rows, centre, sums)
    differences = (rows - centre[:D]).astype(np.float64)
    np.testing.assert_allclose(sums[0, :D], before[0] + differences.sum(axis=0), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(sums[1, :D], before[1] + (differences**2).sum(axis=0), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(sums[:, D:], 0)
