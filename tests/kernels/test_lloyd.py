from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcgmm.algorithm import reference
from vcgmm.kernels.lloyd import assign_rows, cluster_cells, spread_rows
from vcgmm.kernels.nearest import POINTS

pytestmark = pytest.mark.interpreted


# ------------------------------------------------------------------------------------------------------ assignment


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_row_goes_to_the_nearest_of_the_first_centres(dtype: type) -> None:
    rng = np.random.default_rng(0)
    n = POINTS + 5
    rows, centres = rng.normal(size=(n + 3, 2)).astype(dtype), rng.normal(size=(6, 2)).astype(dtype)
    centres[4:] = 0.0  # not among the first four
    ids, distances = np.full(n + 3, -1, np.int32), np.full(n + 3, -1, dtype)
    assign_rows(n, rows, (rows**2).sum(axis=1), centres, 4, np.empty(6, dtype), ids, distances)
    true = reference.squared_distances(rows[:n], centres[:4])
    np.testing.assert_allclose(true[np.arange(n), ids[:n]], true.min(axis=1), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(distances[:n], true.min(axis=1), rtol=1e-4, atol=1e-5)
    assert (ids[n:] == -1).all()


def test_rounding_makes_no_distance_negative() -> None:
    rows = (50 + np.random.default_rng(1).normal(size=(30, 3))).astype(np.float32)
    ids, distances = np.empty(30, np.int32), np.empty(30, np.float32)
    assign_rows(30, rows, (rows**2).sum(axis=1), rows, 30, np.empty(30, np.float32), ids, distances)
    assert distances.min() >= 0.0


# --------------------------------------------------------------------------------------------------------- samples


@given(st.integers(1, 30), st.floats(0.0, 1.0, exclude_max=True), st.data())
def test_a_sample_takes_a_row_of_every_run_and_the_others_follow(
    size: int, jitter: float, data: st.DataObject
) -> None:
    n = data.draw(st.integers(1, size))
    order = 100 + np.arange(size + 4)[::-1]
    out = np.empty(size, np.int64)
    spread_rows(order, 2, 2 + size, n, jitter, out)
    np.testing.assert_array_equal(np.sort(out), np.sort(order[2 : 2 + size]))
    places = order[2] - out  # back to 0, 1, 2 …
    runs = size * np.arange(n + 1) // n
    assert (runs[:-1] <= places[:n]).all()
    assert (places[:n] < runs[1:]).all()
    assert (np.diff(places[n:]) > 0).all()


# ----------------------------------------------------------------------------------------------------------- cells


@pytest.fixture
def cells() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Points, weights, and two cells of 40 and 25 rows with an empty one between them."""
    rng = np.random.default_rng(2)
    points = rng.normal(size=(65, 2)).astype(np.float32)
    return points, rng.uniform(0.5, 2.0, 65), rng.permutation(65), np.array([0, 40, 40, 65])


def cluster(
    cells: tuple[np.ndarray, ...], wanted: list[int], sample_per_centre: int, n_steps: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Centres, labels, distances and seeds, which are the first rows of every cell."""
    points, weights, order, start = cells
    seeds = np.concatenate([order[low : low + k] for low, k in zip(start[:-1], wanted, strict=True)])
    centre_start = np.concatenate([[0], np.cumsum(wanted)])
    centres = np.full((len(seeds), points.shape[1]), np.nan)
    labels, distances = np.full(len(points), -1, np.int32), np.empty(len(points), points.dtype)
    cluster_cells(
        0, len(wanted), points, weights, order, start, seeds, centre_start, sample_per_centre, n_steps,
        centres, labels, distances,
    )  # fmt: skip
    return centres, labels, distances, seeds


def test_no_lloyd_step_leaves_the_seeds_as_centres(cells: tuple[np.ndarray, ...]) -> None:
    centres, _, _, seeds = cluster(cells, [4, 0, 3], 100, 0)
    np.testing.assert_allclose(centres, cells[0][seeds], atol=1e-6)


def test_rows_get_the_nearest_centre_of_their_own_cell(cells: tuple[np.ndarray, ...]) -> None:
    points, _, order, _ = cells
    centres, labels, distances, _ = cluster(cells, [4, 0, 3], 5, 3)
    for members, own in ((order[:40], np.arange(4)), (order[40:], np.arange(4, 7))):
        true = reference.squared_distances(points[members], centres[own])
        assert np.isin(labels[members], own).all()
        np.testing.assert_allclose(
            true[np.arange(len(members)), labels[members] - own[0]], true.min(axis=1), atol=1e-5
        )
        np.testing.assert_allclose(distances[members], true.min(axis=1), atol=1e-5)


def test_lloyd_steps_lower_the_error(cells: tuple[np.ndarray, ...]) -> None:
    weights = cells[1]
    errors = [float(np.dot(weights, cluster(cells, [4, 0, 3], 100, steps)[2])) for steps in range(4)]
    assert (np.diff(errors) <= 1e-5).all()
    assert errors[-1] < errors[0]


def test_lloyd_centres_are_the_weighted_means_of_their_rows(cells: tuple[np.ndarray, ...]) -> None:
    points, weights, _, _ = cells
    centres, labels, _, _ = cluster(cells, [4, 0, 3], 100, 25)
    for c in range(7):
        mine = labels == c
        np.testing.assert_allclose(centres[c], np.average(points[mine], axis=0, weights=weights[mine]), atol=1e-5)


def test_a_centre_that_loses_its_rows_stays() -> None:
    points = np.array([[0.0], [1.0], [10.0]], np.float32)
    centres, labels, distances = np.empty((3, 1)), np.empty(3, np.int32), np.empty(3, np.float32)
    cluster_cells(
        0, 1, points, np.ones(3), np.arange(3), np.array([0, 3]), np.array([0, 0, 2]), np.array([0, 3]), 10, 1,
        centres, labels, distances,
    )  # fmt: skip
    np.testing.assert_allclose(centres[:, 0], [0.5, 0.0, 10.0])
    assert labels.tolist() == [1, 0, 2]
