from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcgmm.kernels.parts.selection import FEW, LANES, key_indices, key_type, pack
from vcgmm.kernels.parts.vectors import ROWS, VECTORS, lanes
from vcgmm.kernels.search.survey import survey

pytestmark = pytest.mark.interpreted


@given(
    dtype=st.sampled_from([np.float32, np.float64]),
    tiles=st.integers(1, 3),
    vectors=st.integers(1, 2 * VECTORS),
    n_features=st.integers(1, 20),
    is_wide=st.booleans(),
)
def test_costs_are_those_of_plain_sums_and_the_least_are_found(
    dtype: type, tiles: int, vectors: int, n_features: int, is_wide: bool
) -> None:
    rng = np.random.default_rng(n_features)
    m, n = ROWS * tiles, vectors * lanes(np.dtype(dtype).itemsize)
    rows, statistics = (
        rng.normal(size=shape).astype(dtype) for shape in ((m, n_features), (LANES, n_features + 2))
    )
    constants, norms = (rng.normal(size=shape).astype(dtype) for shape in (m, LANES))
    indices = key_indices(m, np.int64 if is_wide else key_type(np.dtype(dtype), m))
    costs, best = np.full((m, LANES), np.nan, dtype), np.full(FEW * LANES, -1, indices.dtype)
    scratch = np.full(VECTORS * lanes(np.dtype(dtype).itemsize) * n_features, np.nan, dtype)
    survey(n, statistics, rows, constants, norms, indices, scratch, costs, best)
    products = rows.astype(np.float64) @ statistics[:n, :n_features].T
    tolerance = 1e-5 if dtype is np.float32 else 1e-13
    expected = np.maximum(constants[:, None] + norms[:n] - 2 * products, 0)
    np.testing.assert_allclose(costs[:, :n], expected, rtol=tolerance, atol=20 * tolerance)
    assert np.isnan(costs[:, n:]).all()
    for j in range(n):
        keys = sorted(pack(costs[i, j], indices[-2], indices[i]) for i in range(m))
        assert best[j::LANES].tolist() == keys[:FEW]


def test_rounding_makes_no_cost_negative_and_what_is_no_candidate_costs_more_than_all() -> None:
    n = lanes(4)
    rows, statistics = np.ones((ROWS, 1), np.float32), np.full((n, 1), 1.5, np.float32)
    constants, norms = np.ones(ROWS, np.float32), np.ones(n, np.float32)
    rows[-1], constants[-1] = 0, 1.6e38
    costs, best = np.full((ROWS, LANES), np.nan, np.float32), np.empty(FEW * LANES, np.int32)
    scratch = np.empty(VECTORS * n, np.float32)
    survey(n, statistics, rows, constants, norms, key_indices(ROWS, np.int32), scratch, costs, best)
    assert (costs[:-1, :n] == 0).all()
    assert (costs[-1, :n] == np.float32(1.6e38)).all()
    np.testing.assert_array_equal(best.reshape(FEW, LANES)[:, 0], np.arange(FEW))
