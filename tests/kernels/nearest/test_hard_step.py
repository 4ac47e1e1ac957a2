from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcgmm.kernels.nearest.hard_step import assign_and_add, move_rows
from vcgmm.kernels.nearest.nearest_tiles import padded
from vcgmm.kernels.parts.exact_sums import rounding_constant
from vcgmm.kernels.parts.selection import LANES
from vcgmm.kernels.parts.shorts import LARGEST

pytestmark = pytest.mark.interpreted


def stepped(
    points: np.ndarray,
    weights: np.ndarray,
    centres: np.ndarray,
    runs: list[tuple[int, int]],
    steps: float = 0.0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels, sums and masses of all points, by some calls for runs of them."""
    labels = np.full(len(points), -1, np.int32)
    totals, masses, n_moved = step_from(labels, points, weights, centres, runs, steps)
    assert n_moved == len(points)
    return labels, totals, masses


def step_from(
    labels: np.ndarray,
    points: np.ndarray,
    weights: np.ndarray,
    centres: np.ndarray,
    runs: list[tuple[int, int]],
    steps: float = 0.0,
) -> tuple[np.ndarray, np.ndarray, int]:
    """Sums, masses, and how many labels have changed; new labels in place."""
    dtype, (k, n_features) = points.dtype, centres.shape
    laid = np.full((padded(k), n_features), 3.0, dtype)  # what lies in rows that are no centres does not matter
    laid[:k] = centres
    squares = np.full(len(laid), np.inf, dtype)
    squares[:k] = (laid[:k] ** 2).sum(axis=1)
    magic = rounding_constant(weights @ np.abs(points.astype(np.float64)))
    totals, masses, n_moved = np.zeros((k, n_features)), np.zeros(k), 0
    mass_magic = float(rounding_constant(np.array(weights.sum())))
    for first, last in runs:
        n_moved += assign_and_add(
            first, last, points, weights, laid, squares, steps, magic, mass_magic, labels, totals, masses
        )
    return totals, masses, n_moved


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("largest", [0.0, LARGEST, 20 * LARGEST], ids=["floats", "shorts", "too long"])
@pytest.mark.parametrize(
    ("n", "n_features", "k"), [(1, 1, 1), (LANES, 3, 4), (2 * LANES + 5, 9, 7), (200, 17, 30)]
)
def test_every_row_goes_to_the_nearest_centre_and_into_its_sums(
    n: int, n_features: int, k: int, largest: float, dtype: type
) -> None:
    rng = np.random.default_rng(n)
    points, centres = (
        rng.normal(size=(n, n_features)).astype(dtype),
        rng.normal(size=(k, n_features)).astype(dtype),
    )
    weights = rng.uniform(0.0, 3.0, n)
    n_runs = -(-n // LANES)
    steps = largest / float(max(np.linalg.norm(points, axis=1).max(), np.linalg.norm(centres, axis=1).max() / 2))
    labels, totals, masses = stepped(points, weights, centres, [(0, n_runs)], steps)
    squares = ((points[:, None].astype(np.float64) - centres) ** 2).sum(axis=2)
    np.testing.assert_array_equal(labels, squares.argmin(axis=1))
    wide = points.astype(np.float64)
    for c in range(k):
        mine = labels == c
        np.testing.assert_allclose(totals[c], weights[mine] @ wide[mine], rtol=1e-12, atol=1e-11)
        np.testing.assert_allclose(masses[c], weights[mine].sum(), rtol=1e-12, atol=1e-12)


def test_sums_do_not_depend_on_how_rows_are_shared() -> None:
    rng = np.random.default_rng(3)
    points, centres = rng.normal(size=(5 * LANES + 3, 4)), rng.normal(size=(9, 4))
    weights = rng.lognormal(sigma=3.0, size=len(points))
    together = stepped(points, weights, centres, [(0, 6)])
    apart = stepped(points, weights, centres, [(4, 6), (0, 1), (1, 4)])
    for one, other in zip(together, apart, strict=True):
        np.testing.assert_array_equal(one, other)


def test_only_the_first_rows_are_added_and_those_that_stay_are_not() -> None:
    rows, labels = np.arange(15.0).reshape(5, 3), np.array([1, 0, 1, 1, 0], np.int32)
    before, totals, masses = np.array([-1, -1, 0, 1, -1], np.int32), np.zeros((2, 3)), np.zeros(2)
    weights, magic = np.array([1.0, 2.0, 3.0, 4.0, 5.0]), rounding_constant(np.full(3, 100.0))
    assert move_rows(4, rows, weights, before, labels, magic, float(magic[0]), totals, masses) == 3
    np.testing.assert_array_equal(totals, [2 * rows[1] - 3 * rows[2], rows[0] + 3 * rows[2]])
    np.testing.assert_array_equal(masses, [-1.0, 4.0])


@given(st.integers(0, 1000))
def test_changes_add_up_to_the_sums_of_the_last_labels_to_the_last_bit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    points, weights = rng.normal(size=(3 * LANES + 2, 4)), rng.lognormal(sigma=2.0, size=3 * LANES + 2)
    labels = np.full(len(points), -1, np.int32)
    totals, masses = np.zeros((6, 4)), np.zeros(6)
    for _ in range(4):
        centres = rng.normal(size=(6, 4))
        more, more_mass, _ = step_from(labels, points, weights, centres, [(2, 4), (0, 2)])
        totals, masses = totals + more, masses + more_mass
    fresh_labels, *fresh = stepped(points, weights, centres, [(0, 4)])
    np.testing.assert_array_equal(labels, fresh_labels)
    for one, other in zip((totals, masses), fresh, strict=True):
        np.testing.assert_array_equal(one, other)


def test_labels_that_change_are_counted() -> None:
    rng = np.random.default_rng(4)
    points, centres = rng.normal(size=(2 * LANES + 9, 3)), rng.normal(size=(5, 3))
    weights = np.ones(len(points))
    labels, *_ = stepped(points, weights, centres, [(0, 3)])
    others = labels.copy()
    others[[0, LANES, len(points) - 1]] += 1
    assert step_from(others, points, weights, centres, [(0, 1), (1, 3)])[2] == 3
    assert step_from(others, points, weights, centres, [(0, 3)])[2] == 0
    np.testing.assert_array_equal(others, labels)
