from __future__ import annotations

import numpy as np
import pytest

from vcgmm.algorithm import reference
from vcgmm.kernels.distances import block_distances, distances_to, local_columns, local_rows, squared_distance

pytestmark = pytest.mark.interpreted

TYPES = [(np.float32, 1e-5), (np.float64, 1e-13)]


def test_rows_and_columns_are_taken_from_an_origin() -> None:
    rng = np.random.default_rng(0)
    source = rng.normal(size=(9, 4)).astype(np.float32)
    order = rng.permutation(9)
    origin = source[3]
    rows, squares = np.empty((5, 4), np.float32), np.empty(5, np.float32)
    columns, column_squares = np.empty((4, 5), np.float32), np.empty(5, np.float32)
    local_rows(source, order, 2, 7, origin, rows, squares)
    local_columns(source, order, 2, 7, origin, columns, column_squares)
    np.testing.assert_array_equal(rows, source[order[2:7]] - origin)
    np.testing.assert_array_equal(columns, rows.T)
    np.testing.assert_allclose(squares, (rows.astype(np.float64) ** 2).sum(axis=1), rtol=1e-6)
    np.testing.assert_allclose(column_squares, squares, rtol=1e-6)


@pytest.mark.parametrize(("dtype", "rtol"), TYPES)
def test_a_direct_distance_keeps_its_digits_far_from_the_origin(dtype: type, rtol: float) -> None:
    rng = np.random.default_rng(1)
    a = (1000 + rng.normal(size=(4, 6))).astype(dtype)
    b = (1000 + rng.normal(size=(5, 6))).astype(dtype)
    direct = [[squared_distance(a, i, b, j) for j in range(5)] for i in range(4)]
    expected = reference.squared_distances(a.astype(np.float64), b.astype(np.float64))
    np.testing.assert_allclose(direct, expected, rtol=rtol)


@pytest.mark.parametrize(("dtype", "rtol"), TYPES)
def test_a_product_gives_the_distances_of_a_block(dtype: type, rtol: float) -> None:
    rng = np.random.default_rng(2)
    centres, points = rng.normal(size=(7, 3)).astype(dtype), rng.normal(size=(5, 3)).astype(dtype)
    out = np.empty((7, 5), dtype)
    block_distances(centres, (centres**2).sum(axis=1), points.T.copy(), (points**2).sum(axis=1), out)
    np.testing.assert_allclose(out, reference.squared_distances(centres, points), rtol=0, atol=100 * rtol)


def test_rounding_makes_no_distance_negative() -> None:
    points = (1e3 + np.random.default_rng(3).normal(size=(40, 5))).astype(np.float32)
    out = np.empty((40, 40), np.float32)
    squares = (points**2).sum(axis=1)
    block_distances(points, squares, points.T.copy(), squares, out)
    assert out.min() == 0.0


def test_distances_to_chosen_centres_are_taken_in_float64() -> None:
    rng = np.random.default_rng(5)
    rows = (rng.normal(size=(6, 3)) + 1e6).astype(np.float32)
    centres = rng.normal(size=(4, 3)) + 1e6
    ids = rng.integers(0, 4, (6, 2)).astype(np.int32)
    out = np.empty((6, 2))
    distances_to(rows, centres, ids, out)
    expected = ((rows[:, None].astype(np.float64) - centres[ids]) ** 2).sum(axis=2)
    np.testing.assert_allclose(out, expected, rtol=1e-14)
