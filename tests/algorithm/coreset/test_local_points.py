from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from vcgmm.algorithm.coreset.frame import Frame
from vcgmm.algorithm.coreset.lightweight import Coreset
from vcgmm.algorithm.coreset.local_points import LocalPoints
from vcgmm.data import Selection
from vcgmm.parallel import Workers

N, D = 9000, 40  # more than one block


def rows_of(kind: str) -> np.ndarray:
    values = np.random.default_rng(0).integers(0, 200, (N, D))
    if kind == "Fortran":
        return np.asfortranarray(values, dtype=np.float32)
    if kind == "every other column":
        return np.repeat(values, 2, axis=1).astype(np.float64)[:, ::2]
    return values.astype(kind)


@pytest.fixture(params=["float32", "float64", "float16", "uint8", "int64", "Fortran", "every other column"])
def points(request: pytest.FixtureRequest, workers: Workers) -> LocalPoints:
    rows = rows_of(request.param)
    frame = Frame(np.linspace(50.0, 90.0, D), 0.25, np.dtype(np.float32))
    return LocalPoints(Coreset(np.arange(N), rows, np.ones(N)), frame, workers)


def test_the_array_holds_all_points_in_local_coordinates(points: LocalPoints) -> None:
    rows = points.source.array.astype(np.float64)
    expected = ((rows - np.linspace(50.0, 90.0, D)) * 0.25).astype(np.float32)
    assert (len(points), points.n_features) == (N, D)
    np.testing.assert_array_equal(points.array, expected)
    assert points.array is points.array


def test_any_order_has_the_same_bits(points: LocalPoints) -> None:
    order = np.random.default_rng(1).permutation(N)
    for rows in (order, order.astype(np.int32)):
        out = np.empty((N, D), np.float32)
        points.fill(out, rows)
        np.testing.assert_array_equal(out, points.array[order])
    np.testing.assert_array_equal(points.take(order[:7]), points.array[order[:7]])


@pytest.mark.parametrize("n_winners", [1, D, D + 1])  # more are as long as all that points may lend
def test_points_are_reordered_in_place_again_and_again(points: LocalPoints, n_winners: int) -> None:
    rng = np.random.default_rng(3)
    array, expected, rows = points.array, points.array.copy(), np.arange(N)
    winners = (rows[:, None] + np.arange(n_winners)).astype(np.int32)
    for _ in range(3):
        order = rng.permutation(N)
        order[:5] = np.sort(order[:5])
        expected = expected[order]
        points.reorder(array, winners, order, rows)
        rows = rows[order]
        np.testing.assert_array_equal(array, expected)
        np.testing.assert_array_equal(winners, rows[:, None] + np.arange(n_winners))


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_selected_rows_are_those_of_a_copy(dtype: str, workers: Workers) -> None:
    rng = np.random.default_rng(5)
    rows, frame = rows_of(dtype), Frame(np.linspace(50.0, 90.0, D), 0.25, np.dtype(np.float32))
    chosen = np.sort(rng.choice(N, 7001, replace=False))
    copied = LocalPoints(Coreset(chosen, rows[chosen], np.ones(len(chosen))), frame, workers)
    selected = LocalPoints(Coreset(chosen, Selection(rows, chosen), np.ones(len(chosen))), frame, workers)
    order = rng.permutation(len(chosen))
    np.testing.assert_array_equal(selected.array, copied.array)
    np.testing.assert_array_equal(selected.take(order[:9]), copied.take(order[:9]))
    directions = rng.normal(size=(D, 3)).astype(np.float32)
    np.testing.assert_array_equal(selected.project(directions), copied.project(directions))
    winners = np.empty((len(chosen), 2), np.int32)
    selected.reorder(selected.array, winners, order, np.arange(len(chosen)))
    np.testing.assert_array_equal(selected.array, copied.array[order])
    selected.put_back()
    np.testing.assert_array_equal(selected.array, copied.array)
    selected.forget()
    np.testing.assert_array_equal(selected.array, copied.array)


def test_mapped_rows_are_not_fetched_from_their_file(tmp_path: Path, workers: Workers) -> None:
    rows = rows_of("float32")
    np.save(tmp_path / "rows.npy", rows)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r+")
    frame = Frame(np.zeros(D), 1.0, np.dtype(np.float32))
    points = LocalPoints(Coreset(np.arange(N), mapped, np.ones(N)), frame, workers)
    array, order = points.array, np.random.default_rng(4).permutation(N)
    mapped[:] = 0
    points.reorder(array, np.empty((N, 2), np.int32), order, np.arange(N))
    np.testing.assert_array_equal(array, rows[order])
    assert not points.arrange(order)  # nor are they written in another order


def test_points_are_put_back_into_the_order_of_the_coreset(points: LocalPoints) -> None:
    points.put_back()  # nothing to put back yet
    before = points.array.copy()
    points.fill(points.array, np.arange(N)[::-1])
    assert (points.array != before).any()
    points.put_back()
    np.testing.assert_array_equal(points.array, before)


def test_points_may_be_arranged_before_they_are_made(points: LocalPoints) -> None:
    order = np.random.default_rng(5).permutation(N)
    before = points.array.copy()
    assert points.arrange(order) == points.source.quick
    np.testing.assert_array_equal(points.array, before[order] if points.source.quick else before)
    points.put_back()
    np.testing.assert_array_equal(points.array, before)
    points.arrange(order)
    points.put_back()  # in time
    np.testing.assert_array_equal(points.array, before)


def test_projections_lie_where_all_points_will(points: LocalPoints) -> None:
    directions = np.linalg.qr(np.random.default_rng(2).normal(size=(D, 3)))[0].astype(np.float32)
    projected = points.project(directions)
    found = projected.copy()
    np.testing.assert_allclose(found, points.array @ directions, atol=1e-3)
    assert np.shares_memory(projected, points.array)
    before = points.array.copy()
    np.testing.assert_array_equal(points.project(directions), found)  # written over the points, …
    np.testing.assert_array_equal(points.array, before)  # … which are there again when they are asked for
