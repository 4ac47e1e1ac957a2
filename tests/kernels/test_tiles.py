from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcgmm.kernels.tiles import add_products
from vcgmm.kernels.vectors import ROWS, VECTORS, lanes

pytestmark = pytest.mark.interpreted


@given(
    dtype=st.sampled_from([np.float32, np.float64]),
    tiles=st.integers(1, 3),
    vectors=st.integers(1, 2 * VECTORS + 1),
    n_features=st.integers(1, 20),
    more=st.booleans(),
    last=st.booleans(),
)
def test_products_and_costs_are_those_of_plain_sums(
    dtype: type, tiles: int, vectors: int, n_features: int, more: bool, last: bool
) -> None:
    rng = np.random.default_rng(n_features)
    m, n = ROWS * tiles, vectors * lanes(np.dtype(dtype).itemsize)
    left, columns = (rng.normal(size=shape).astype(dtype) for shape in ((m, n_features), (n_features, n)))
    constants, norms, before = (rng.normal(size=shape).astype(dtype) for shape in (m, n, (m, n)))
    out = before.copy() if more else np.full((m, n), np.nan, dtype)
    add_products(left, columns, constants, norms, out, more, last)
    expected = left.astype(np.float64) @ columns + (before if more else 0)
    if last:
        expected = np.maximum(constants[:, None] + norms - 2 * expected, 0)
    tolerance = 1e-5 if dtype is np.float32 else 1e-13
    np.testing.assert_allclose(out, expected, rtol=tolerance, atol=20 * tolerance)


def test_rounding_makes_no_cost_negative_and_what_is_no_candidate_costs_more_than_all() -> None:
    n = lanes(4)
    left, columns = np.ones((ROWS, 1), np.float32), np.full((1, n), 1.5, np.float32)
    constants, norms = np.ones(ROWS, np.float32), np.ones(n, np.float32)
    left[-1], constants[-1] = 0, np.inf
    out = np.full((ROWS, n), np.nan, np.float32)
    add_products(left, columns, constants, norms, out, False, True)
    assert (out[:-1] == 0).all()
    assert (out[-1] == np.inf).all()


def test_only_its_own_part_of_a_larger_array_is_written() -> None:
    n = lanes(8)
    whole = np.zeros((3, ROWS, n))
    left, columns = np.ones((ROWS, 2)), np.ones((2, n))
    add_products(left, columns, np.zeros(ROWS), np.zeros(n), whole[1], False, False)
    assert (whole[1] == 2).all()
    assert not whole[[0, 2]].any()
