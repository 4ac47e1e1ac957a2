from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcgmm.kernels.jit import kernel
from vcgmm.kernels.parts.selection import FEW, LANES, key_indices
from vcgmm.kernels.search.direct import square_to, squares_to_few

pytestmark = pytest.mark.interpreted


@kernel
def all_squares(rows: np.ndarray, points: np.ndarray, out: np.ndarray) -> None:
    for i in range(rows.shape[0]):
        for j in range(points.shape[0]):
            out[i, j] = square_to(rows, i, points, j)


@kernel
def of_few(rows: np.ndarray, points: np.ndarray, best: np.ndarray, mask: int, near: np.ndarray) -> None:
    for j in range(points.shape[0]):
        squares_to_few(rows, points, j, best, mask, near)


@given(
    seed=st.integers(0, 1 << 20),
    D=st.integers(1, 70),
    more=st.integers(0, 3),
    dtype=st.sampled_from([np.float32, np.float64]),
    key=st.sampled_from([np.int32, np.int64]),
)
def test_squares_are_those_of_plain_sums_and_nothing_else_is_written(
    seed: int, D: int, more: int, dtype: type, key: type
) -> None:
    rng = np.random.default_rng(seed)
    m, n = 8, 3
    rows = rng.normal(size=(m, D)).astype(dtype)
    points = np.full((n, D + more), np.nan, dtype)  # what lies beyond the features is not looked at
    points[:, :D] = rng.normal(size=(n, D))
    points[0, :D] = rows[2]
    expected = ((rows[:, None].astype(np.float64) - points[:, :D]) ** 2).sum(axis=2)
    found = np.empty((m, n), dtype)
    all_squares(rows, points, found)
    np.testing.assert_allclose(found, expected, rtol=20 * np.finfo(dtype).eps)
    assert found[2, 0] == 0

    mask = ~key_indices(m, key)[-2]
    best = (rng.integers(1 << 20, size=FEW * LANES) & ~mask).astype(key)  # what else a key holds does not matter
    chosen = np.array([rng.permutation(m)[:FEW] for _ in range(n)])
    for j in range(n):
        best[j::LANES] |= chosen[j]
    near = np.full((FEW, LANES), np.nan, dtype)
    of_few(rows, points, best, mask, near)
    for j in range(n):
        np.testing.assert_allclose(near[:, j], expected[chosen[j], j], rtol=20 * np.finfo(dtype).eps)
    assert np.isnan(near[:, n:]).all()
