from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcgmm.kernels.nearest.nearest_tiles import HEIGHT, VECTORS
from vcgmm.kernels.parts.vectors import lanes
from vcgmm.kernels.seeding.seed_tiles import CANCELLED, distances_and_savings

pytestmark = pytest.mark.interpreted


@given(
    dtype=st.sampled_from([np.float32, np.float64]),
    tiles=st.integers(1, 3),
    runs=st.integers(1, 3),
    before=st.integers(0, 5),
    D=st.integers(1, 20),
)
def test_distances_and_savings_are_those_of_plain_sums(
    dtype: type, tiles: int, runs: int, before: int, D: int
) -> None:
    rng = np.random.default_rng(D)
    width = lanes(np.dtype(dtype).itemsize)
    m, n = tiles * HEIGHT, runs * VECTORS * width
    chosen, rows = rng.normal(size=(m, D)).astype(dtype), rng.normal(size=(n, D)).astype(dtype)
    squares, masses, costs = (np.full(before + n, np.nan, dtype) for _ in range(3))
    squares[before:] = (rows**2).sum(axis=1)
    masses[before:], costs[before:] = rng.random(n), 2 * D * rng.random(n)
    out = np.full((m, before + n + 3), -7, dtype)
    saved, flags = np.ones((m + 1, width), dtype), np.zeros(m + 1, int)
    columns = np.ascontiguousarray(rows.T)
    norms = (chosen**2).sum(axis=1)
    distances_and_savings(chosen, norms, columns, squares, masses, costs, before, out, saved, flags)
    true = ((chosen[:, None].astype(np.float64) - rows) ** 2).sum(axis=2)
    tolerance = 1e-4 if dtype is np.float32 else 1e-11
    found = out[:, before : before + n]
    np.testing.assert_allclose(found, true, rtol=tolerance, atol=tolerance)
    assert (out[:, :before] == -7).all()  # what lies before, or behind, is nobody's
    assert (out[:, before + n :] == -7).all()
    lost = found < CANCELLED * (norms[:, None] + squares[before:])
    gained = np.where(lost, 0, np.maximum(costs[before:] - true, 0)) @ masses[before:]
    np.testing.assert_allclose(saved[:m].sum(axis=1) - width, gained, rtol=tolerance, atol=10 * tolerance * n)
    assert (saved[m] == 1).all()
    assert flags[m] == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("place", [0, 1, -1])
def test_a_flag_is_raised_where_a_distance_is_rounding_and_nowhere_else(dtype: type, place: int) -> None:
    width = lanes(np.dtype(dtype).itemsize)
    rows = np.full((2 * VECTORS * width, 3), 5.0, dtype)
    rows[:, 0] = -5.0
    near = np.full((HEIGHT, 3), 5.0, dtype)
    rows[place] = near[1] * (1 + 0.1 * CANCELLED)  # no farther than rounding could tell
    near[[0, 2, 3]] = -3.0
    squares, masses, costs = (rows**2).sum(axis=1), np.ones(len(rows), dtype), np.zeros(len(rows), dtype)
    costs[place] = 1e6
    out, saved, flags = (
        np.empty((HEIGHT, len(rows)), dtype),
        np.zeros((HEIGHT, width), dtype),
        np.zeros(HEIGHT, int),
    )
    norms = (near**2).sum(axis=1)
    columns = np.ascontiguousarray(rows.T)
    distances_and_savings(near, norms, columns, squares, masses, costs, 0, out, saved, flags)
    assert (flags != 0).tolist() == [False, True, False, False]
    assert (saved.sum(axis=1) > 0).tolist() == [True, False, True, True]  # what is lost saves nothing
    distances_and_savings(near, norms, -columns, squares, masses, costs, 0, out, saved, flags)
    assert (flags != 0).tolist() == [False, True, False, False]  # one that is up stays so
