from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcgmm.kernels.cells.cost_table import cost_table
from vcgmm.kernels.parts.vectors import ROWS, VECTORS, lanes

pytestmark = pytest.mark.interpreted


@given(
    dtype=st.sampled_from([np.float32, np.float64]),
    tiles=st.integers(1, 3),
    n=st.integers(1, 70),
    n_features=st.integers(1, 20),
)
def test_the_table_has_the_costs_of_plain_sums(dtype: type, tiles: int, n: int, n_features: int) -> None:
    rng = np.random.default_rng(n)
    at_once = VECTORS * lanes(np.dtype(dtype).itemsize)
    room = -(-n // at_once) * at_once
    rows, members = (rng.normal(size=(k, n_features)).astype(dtype) for k in (room, tiles * ROWS))
    constants, norms = (rng.normal(size=k).astype(dtype) for k in (room, tiles * ROWS))
    rows[n:], constants[n:] = np.nan, np.nan  # nobody looks at what comes of these
    table = np.full((tiles * ROWS, room + 3), -1, np.float32)
    cost_table(n, rows, constants, members, norms, np.full(at_once * n_features, np.nan, dtype), table)
    products = members.astype(np.float64) @ rows[:n].T
    expected = np.maximum(norms[:, None] + constants[:n] - 2 * products, 0)
    np.testing.assert_allclose(table[:, :n], expected, rtol=1e-5, atol=1e-4)
    assert (table[:, room:] == -1).all()
