from __future__ import annotations

import math

import numpy as np
import pytest

from vcgmm.kernels.moments import absolute_sum, change_coordinates, squared_deviations, weighted_sum

pytestmark = pytest.mark.interpreted


@pytest.fixture
def rows() -> np.ndarray:
    return (1e6 + np.random.default_rng(0).normal(size=(50, 3))).astype(np.float32)


def test_a_weighted_sum_is_taken_in_float64(rows: np.ndarray) -> None:
    weights = np.random.default_rng(1).random(50)
    total = np.ones(3)
    weighted_sum(rows, weights, total)
    expected = [
        1.0 + math.fsum(float(w) * float(y) for w, y in zip(weights, rows[:, d], strict=True)) for d in range(3)
    ]
    np.testing.assert_allclose(total, expected, rtol=1e-14)


def test_no_weights_mean_ones(rows: np.ndarray) -> None:
    total, with_ones = np.zeros((2, 3))
    weighted_sum(rows, np.empty(0), total)
    weighted_sum(rows, np.ones(50), with_ones)
    np.testing.assert_array_equal(total, with_ones)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("first", "last"), [(0, 50), (7, 31), (9, 9)])
def test_a_sum_of_absolute_values_is_taken_in_float64(first: int, last: int, dtype: type) -> None:
    rng = np.random.default_rng(1)
    points, weights = (1e6 * rng.normal(size=(50, 3))).astype(dtype), rng.random(50)
    total = np.full(3, np.nan)  # it is not added to
    absolute_sum(first, last, points, weights, total)
    mine = range(first, last)
    expected = [math.fsum(float(weights[n]) * abs(float(points[n, d])) for n in mine) for d in range(3)]
    np.testing.assert_allclose(total, expected, rtol=1e-14)


def test_deviations_lose_nothing_to_an_offset(rows: np.ndarray) -> None:
    centre = rows.astype(np.float64).mean(axis=0)
    out = np.empty(50)
    squared_deviations(rows, centre, out)
    np.testing.assert_allclose(out, ((rows.astype(np.float64) - centre) ** 2).sum(axis=1), rtol=1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_coordinates_are_rounded_once(rows: np.ndarray, dtype: type) -> None:
    origin = np.array([1e6, 1e6 + 0.25, 1e6 - 1 / 3])
    out = np.empty((50, 3), dtype)
    change_coordinates(rows, origin, 4.0, out)
    np.testing.assert_array_equal(out, ((rows.astype(np.float64) - origin) * 4.0).astype(dtype))
