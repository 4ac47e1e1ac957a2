from __future__ import annotations

import numpy as np
import pytest

from vcgmm.algorithm import reference
from vcgmm.algorithm.cells.neighbourhoods import cut_into_tasks, sort_by_cluster
from vcgmm.kernels.nearest.routing import ONE_BY_ONE, step_to_nearest
from vcgmm.kernels.parts.shorts import FEATURES, PRODUCTS, may_be_short

pytestmark = pytest.mark.interpreted


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, ONE_BY_ONE, 40, 300])
@pytest.mark.parametrize(
    ("n_features", "n_candidates"), [(5, 7), (FEATURES, PRODUCTS), (FEATURES + 1, PRODUCTS + 1)]
)
def test_points_go_to_the_nearest_candidate_of_where_they_are(
    dtype: type, n: int, n_features: int, n_candidates: int
) -> None:
    rng = np.random.default_rng(n)
    n_centres = n_candidates + 13
    centres = rng.normal(size=(n_centres, n_features)).astype(dtype)
    points = rng.normal(size=(n, n_features)).astype(dtype)
    candidates = rng.permuted(np.tile(np.arange(n_centres, dtype=np.int32), (6, 1)), axis=1)[:, :n_candidates]
    at = rng.integers(0, 6, n).astype(np.int32)
    order, start = sort_by_cluster(at, 6)
    task_cell, task_start = cut_into_tasks(start)
    labels, near = np.full(n, -1, np.int32), np.full(n, np.inf, dtype)
    in_steps = may_be_short(n_features)
    step_to_nearest(
        0, len(task_cell), task_cell, task_start, order, points, candidates, centres, in_steps, labels, near
    )
    distances = reference.squared_distances(points.astype(np.float64), centres.astype(np.float64))
    of_candidates = np.take_along_axis(distances, candidates[at].astype(np.int64), axis=1)
    np.testing.assert_array_equal(labels, candidates[at, of_candidates.argmin(axis=1)])
    np.testing.assert_allclose(near, of_candidates.min(axis=1), rtol=1e-4)


def test_what_is_nearer_already_is_kept() -> None:
    points, centres = np.zeros((3, 2), np.float32), np.array([[1, 0], [2, 0]], np.float32)
    labels, near = np.full(3, 9, np.int32), np.array([0.5, 1.0, 1.5], np.float32)
    candidates, order = np.array([[1, 0]], np.int32), np.arange(3)
    step_to_nearest(
        0, 1, np.zeros(1, np.int32), np.array([0, 3]), order, points, candidates, centres, None, labels, near
    )
    assert labels.tolist() == [9, 9, 0]
    assert near.tolist() == [0.5, 1.0, 1.0]


def test_a_row_beyond_all_others_does_not_spoil_them() -> None:
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(PRODUCTS, FEATURES)).astype(np.float32)
    points = (centres[rng.integers(0, PRODUCTS, 100)] + 0.1 * rng.normal(size=(100, FEATURES))).astype(np.float32)
    points[7] = 1e18  # in steps of its length all others are 0
    labels, near = np.full(100, -1, np.int32), np.full(100, np.inf, np.float32)
    candidates = np.arange(PRODUCTS, dtype=np.int32)[None]
    step_to_nearest(
        0, 1, np.zeros(1, np.int32), np.array([0, 100]), np.arange(100), points, candidates, centres, True, labels,
        near,
    )  # fmt: skip
    expected = reference.squared_distances(points.astype(np.float64), centres.astype(np.float64)).argmin(axis=1)
    others = np.arange(100) != 7
    np.testing.assert_array_equal(labels[others], expected[others])
