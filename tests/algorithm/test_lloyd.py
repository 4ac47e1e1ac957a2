from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcgmm.algorithm import reference
from vcgmm.algorithm.lloyd import Lloyd, lloyd, means_of
from vcgmm.parallel import Workers


def run(points: np.ndarray, weights: np.ndarray, means: np.ndarray, **changes: Any) -> Lloyd:
    chosen: dict[str, Any] = {"tol": 1e-4, "max_iter": 100, "variance_floor": 1e-150, "log_scale": 0.0}
    with Workers(2) as workers:
        return lloyd(points, weights, means.astype(np.float64), workers=workers, **(chosen | changes))


@pytest.mark.interpreted
@given(seed=st.integers(0, 10_000), n_clusters=st.integers(1, 6), n_features=st.integers(1, 4))
def test_iterations_are_those_of_the_reference(seed: int, n_clusters: int, n_features: int) -> None:
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(40, n_features))
    weights = rng.uniform(0.1, 3.0, 40)
    means = points[rng.choice(40, n_clusters, replace=False)]
    found = run(points, weights, means, tol=0.0, max_iter=4)
    true_means, _, true_bounds = reference.k_means(points, weights, means, len(found.bounds))
    np.testing.assert_allclose(found.means, true_means, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.bounds, true_bounds, rtol=1e-9)
    assert found.n_evaluations == len(found.bounds) * 40 * n_clusters


def test_the_bound_rises_and_ends_the_run_by_its_relative_change() -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(3000, 3))
    found = run(points, np.ones(3000), points[:40], tol=1e-4)
    bounds = np.array(found.bounds)
    assert found.converged
    assert (np.diff(bounds) > 0).all()
    changes = np.abs(np.diff(bounds) / bounds[1:])
    assert changes[-1] < 1e-4
    assert (changes[:-1] >= 1e-4).all()
    stricter = run(points, np.ones(3000), points[:40], tol=1e-6)
    assert stricter.bounds[: len(bounds)] == found.bounds
    assert len(stricter.bounds) > len(bounds)


def test_few_iterations_do_not_converge() -> None:
    points = np.random.default_rng(0).normal(size=(500, 2))
    found = run(points, np.ones(500), points[:20], max_iter=2)
    assert len(found.bounds) == 2
    assert not found.converged


def test_the_bound_is_told_in_data_coordinates() -> None:
    points = np.random.default_rng(0).normal(size=(200, 3))
    plain = run(points, np.ones(200), points[:5], tol=0.0, max_iter=3)
    scaled = run(points * 4, np.ones(200), points[:5] * 4, tol=0.0, max_iter=3, log_scale=np.log(4.0))
    np.testing.assert_allclose(scaled.bounds, plain.bounds, rtol=1e-12)


def test_weight_two_counts_like_two_copies() -> None:
    rng = np.random.default_rng(1)
    points, weights = rng.normal(size=(100, 2)), rng.integers(1, 4, 100)
    copies = np.repeat(points, weights, axis=0)
    weighted = run(points, weights.astype(np.float64), points[:7], tol=0.0, max_iter=5)
    repeated = run(copies, np.ones(len(copies)), points[:7], tol=0.0, max_iter=5)
    np.testing.assert_allclose(weighted.means, repeated.means, rtol=1e-12)
    np.testing.assert_allclose(weighted.bounds, repeated.bounds, rtol=1e-12)


def test_a_cluster_without_points_stays_where_it_is(workers: Workers) -> None:
    points = np.array([[0.0], [1.0], [2.0]])
    before = np.array([[1.0], [50.0]])
    means, distances = means_of(points, np.ones(3), np.zeros(3, np.int32), before, workers)
    np.testing.assert_array_equal(means, [[1.0], [50.0]])
    np.testing.assert_array_equal(distances, [1.0, 0.0, 1.0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_results_do_not_depend_on_the_number_of_threads(dtype: type) -> None:
    points = np.random.default_rng(0).normal(size=(2000, 5)).astype(dtype)
    options: dict[str, Any] = {"tol": 1e-5, "max_iter": 50, "variance_floor": 1e-150, "log_scale": 0.0}
    found = []
    for n_threads in (1, 2, 3):
        with Workers(n_threads) as workers:
            found.append(lloyd(points, np.ones(2000), points[:30].astype(np.float64), workers=workers, **options))
    for other in found[1:]:
        np.testing.assert_array_equal(other.means, found[0].means)
        assert other.bounds == found[0].bounds
