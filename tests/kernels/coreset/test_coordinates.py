from __future__ import annotations

import numpy as np
import pytest

from vcgmm.kernels.coreset.coordinates import AHEAD, change_coordinates, mean_in_coordinates, rows_in_coordinates

pytestmark = pytest.mark.interpreted

ORIGIN = np.array([1e6, 1e6 + 0.25, 1e6 - 1 / 3])


@pytest.fixture
def rows() -> np.ndarray:
    return (1e6 + np.random.default_rng(0).normal(size=(50, 3))).astype(np.float32)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_coordinates_are_rounded_once(rows: np.ndarray, dtype: type) -> None:
    out = np.empty((50, 3), dtype)
    change_coordinates(rows, ORIGIN, 4.0, out)
    np.testing.assert_array_equal(out, ((rows.astype(np.float64) - ORIGIN) * 4.0).astype(dtype))


@pytest.mark.parametrize("n", [0, 1, AHEAD + 1, 120])
def test_rows_that_lie_anywhere_are_the_same(rows: np.ndarray, n: int) -> None:
    which = np.random.default_rng(1).integers(0, 50, n)
    out, expected = np.empty((n, 3), np.float32), np.empty((n, 3), np.float32)
    rows_in_coordinates(rows, which, ORIGIN, 4.0, out)
    change_coordinates(rows[which], ORIGIN, 4.0, expected)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_means_of_groups_are_those_of_rows_that_were_written(rows: np.ndarray, dtype: type) -> None:
    rng = np.random.default_rng(2)
    source, weights, order = rows.astype(dtype), rng.uniform(0.5, 2.0, 50), rng.permutation(50)
    start = np.array([0, 1, 20, 20, 50])
    means, again = np.full((2, 4, 3), np.nan)
    distances, nowhere = np.full(50, -1, dtype), np.empty(0, dtype)
    for first, last in ((1, 4), (0, 1)):
        mean_in_coordinates(first, last, source, ORIGIN, 4.0, weights, order, start, means, nowhere)
        mean_in_coordinates(first, last, source, ORIGIN, 4.0, weights, order, start, again, distances)
    np.testing.assert_array_equal(means, again)
    local = np.empty((50, 3), dtype)
    change_coordinates(source, ORIGIN, 4.0, local)
    for group in (0, 1, 3):
        mine = order[start[group] : start[group + 1]]
        expected = np.average(local[mine].astype(np.float64), axis=0, weights=weights[mine])
        np.testing.assert_allclose(means[group], expected, rtol=1e-12)
        squares = ((local[mine] - expected) ** 2).sum(axis=1)
        np.testing.assert_allclose(distances[mine], squares, rtol=1e-6, atol=1e-12)
    assert not means[2].any()  # nobody is in it
