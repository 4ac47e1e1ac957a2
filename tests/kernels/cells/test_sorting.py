from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcgmm.kernels.cells.sorting import (
    RUNS,
    begin_labels,
    count_labels,
    fingerprints,
    permute_rows,
    place_points,
    take_rows,
)

pytestmark = [
    pytest.mark.interpreted,
    pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning"),  # hashes wrap around on purpose
]


def hashes(rows: np.ndarray) -> np.ndarray:
    out = np.empty(len(rows), np.int64)
    fingerprints(rows.astype(np.float64).view(np.int64), out)
    return out


def count_sort(labels: np.ndarray, n_labels: int, n_parts: int, dtype: type) -> tuple[np.ndarray, np.ndarray]:
    """All three steps; the parts one by one, the last one first."""
    order, start = np.full(len(labels), -1, dtype), np.empty(n_labels + 1, np.int64)
    counts = np.full((n_parts, n_labels, RUNS), 7, dtype)
    for part in range(n_parts)[::-1]:
        count_labels(part, part + 1, labels, counts)
    begin_labels(counts, start)
    for part in range(n_parts)[::-1]:
        place_points(part, part + 1, labels, counts, order)
    return order, start


@given(st.lists(st.integers(0, 5), max_size=40), st.integers(1, 5))
def test_counting_sorts_like_a_stable_argsort(values: list[int], n_parts: int) -> None:
    labels = np.array(values, np.int32)
    order, start = count_sort(labels[:, None], 7, n_parts, np.int64)
    np.testing.assert_array_equal(order, np.argsort(labels, kind="stable"))
    np.testing.assert_array_equal(start, np.searchsorted(np.sort(labels), np.arange(8)))


def test_the_labels_are_the_first_column_of_a_wider_array() -> None:
    winners = np.random.default_rng(0).integers(0, 4, (30, 3)).astype(np.int32)
    order, start = count_sort(winners, 4, 1, np.int32)
    np.testing.assert_array_equal(order, np.argsort(winners[:, 0], kind="stable"))
    assert start[-1] == 30


def test_equal_rows_have_equal_fingerprints() -> None:
    rows = np.random.default_rng(1).normal(size=(20, 3))
    np.testing.assert_array_equal(hashes(rows[::-1].copy()), hashes(rows)[::-1])


@pytest.mark.parametrize("step", [1.0, 0.1])
def test_neighbouring_rows_of_a_grid_have_different_fingerprints(step: float) -> None:
    grid = step * np.array(list(itertools.product(range(-5, 6), repeat=3)))
    assert len(np.unique(hashes(grid))) == len(grid)


def test_the_order_of_the_features_matters() -> None:
    assert len(np.unique(hashes(np.array([[1.0, 2.0], [2.0, 1.0], [0.0, 3.0]])))) == 3


@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.float64])
def test_rows_are_taken_in_the_order_asked_for(dtype: type) -> None:
    source = np.arange(24).reshape(8, 3).astype(dtype)
    rows = np.array([5, 0, 0, 7, 3, 1, 7, 2, 4, 6])
    out = np.full((10, 3), -1, dtype)
    take_rows(2, 9, source, rows, out)
    np.testing.assert_array_equal(out[2:9], source[rows[2:9]])
    assert (out[[0, 1, 9]] == -1).all()  # another thread's
    take_rows(4, 4, source, rows, np.full((10, 3), -1, dtype))


@given(st.permutations(list(range(9))))
def test_rows_change_places_like_a_fancy_index(order: list[int]) -> None:
    before = np.arange(27.0).reshape(9, 3)
    rows = before.copy()
    for first, last in ((0, 1), (1, 3)):  # the columns of two threads
        done = np.zeros(9, np.bool_)
        permute_rows(first, last, rows, np.array(order), done, np.empty(3))
        np.testing.assert_array_equal(rows[:, :last], before[order, :last])
        np.testing.assert_array_equal(rows[:, last:], before[:, last:])
        np.testing.assert_array_equal(done, np.array(order) != np.arange(9))  # all that have come elsewhere
