from __future__ import annotations

import numpy as np
import pytest

from vcgmm.algorithm import reference
from vcgmm.kernels.parts.distances import distances_to, local_rows, squared_distance

pytestmark = pytest.mark.interpreted

TYPES = [(np.float32, 1e-5), (np.float64, 1e-13)]


@pytest.mark.parametrize(("dtype", "rtol"), TYPES)
def test_rows_are_taken_from_an_origin(dtype: type, rtol: float) -> None:
    rng = np.random.default_rng(0)
    source = rng.normal(size=(9, 4)).astype(dtype)
    order = rng.permutation(9)
    origin = source[3]
    rows, squares = np.full((8, 4), 7.0, dtype), np.full(8, 7.0, dtype)
    local_rows(source, order, 2, 7, origin, rows, squares)
    np.testing.assert_array_equal(rows[:5], source[order[2:7]] - origin)
    np.testing.assert_allclose(squares[:5], (rows[:5].astype(np.float64) ** 2).sum(axis=1), rtol=rtol)
    assert (rows[5:] == 7.0).all()
    assert (squares[5:] == 7.0).all()


@pytest.mark.parametrize(("dtype", "rtol"), TYPES)
def test_a_direct_distance_keeps_its_digits_far_from_the_origin(dtype: type, rtol: float) -> None:
    rng = np.random.default_rng(1)
    a = (1000 + rng.normal(size=(4, 6))).astype(dtype)
    b = (1000 + rng.normal(size=(5, 6))).astype(dtype)
    direct = [[squared_distance(a, i, b, j) for j in range(5)] for i in range(4)]
    expected = reference.squared_distances(a.astype(np.float64), b.astype(np.float64))
    np.testing.assert_allclose(direct, expected, rtol=rtol)


def test_distances_to_chosen_centres_are_taken_in_float64() -> None:
    rng = np.random.default_rng(5)
    rows = (rng.normal(size=(6, 3)) + 1e6).astype(np.float32)
    centres = rng.normal(size=(4, 3)) + 1e6
    ids = rng.integers(0, 4, (6, 2)).astype(np.int32)
    out = np.empty((6, 2))
    distances_to(rows, centres, ids, out)
    expected = ((rows[:, None].astype(np.float64) - centres[ids]) ** 2).sum(axis=2)
    np.testing.assert_allclose(out, expected, rtol=1e-14)
