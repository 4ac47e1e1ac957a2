from __future__ import annotations

import numpy as np
import pytest

from vcgmm.algorithm.nearest import nearest
from vcgmm.algorithm.passes import routing
from vcgmm.algorithm.passes.routing import MOST_LANDMARKS, Routing, finds_its_way
from vcgmm.parallel import Workers

ALONE = np.arange(2000, dtype=np.int32)[:, None]


@pytest.fixture(scope="module", params=[8, 24])
def problem(request: pytest.FixtureRequest) -> tuple[np.ndarray, np.ndarray]:
    """Means and points, of the features that they are compared by as floats and as short integers."""
    rng = np.random.default_rng(0)
    means = rng.normal(size=(2000, request.param)) * 3
    points = means[rng.integers(0, 2000, 6000)] + rng.normal(size=(6000, request.param))
    return means, points.astype(np.float32)


def test_most_points_find_their_nearest_mean_with_few_distances(
    problem: tuple[np.ndarray, np.ndarray], workers: Workers
) -> None:
    means, points = problem
    labels, n_evaluations = Routing(means, points.dtype, ALONE, workers).labels_of(points, workers)
    true, distances = nearest(points, means, workers)
    assert (labels == true).mean() > 0.98
    error = ((points - means[labels]) ** 2).sum()
    assert error < 1.01 * distances.sum()
    assert n_evaluations < 0.6 * len(points) * len(means)


@pytest.mark.parametrize(("n_features", "in_steps"), [(15, None), (16, True)])
def test_wide_rows_are_compared_as_short_integers(
    n_features: int, in_steps: bool | None, workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    step = routing.step_to_nearest
    monkeypatch.setattr(routing, "step_to_nearest", lambda *a: asked.append(a[8]) or step(*a))
    means = np.random.default_rng(3).normal(size=(60, n_features))
    Routing(means, np.dtype(np.float32), ALONE[:60], workers).labels_of(means.astype(np.float32), workers)
    assert set(asked) == {in_steps}


def test_rows_find_their_way_where_that_is_sooner() -> None:
    limit = routing.ALL_COMPARED
    assert [finds_its_way(limit, 8), finds_its_way(limit + 1, 8)] == [False, True]
    assert [finds_its_way(2 * limit, 16), finds_its_way(2 * limit + 1, 16)] == [False, True]


def test_a_mean_that_no_other_is_near_to_is_found(workers: Workers) -> None:
    rng = np.random.default_rng(1)
    means = np.vstack([rng.normal(size=(1500, 6)), [[80.0, 0, 0, 0, 0, 0], [-70.0, 5, 0, 0, 0, 0]]])
    points = (means[[1500, 1501, 1500, 1501]] + rng.normal(size=(4, 6))).astype(np.float32)
    labels, _ = Routing(means, points.dtype, np.arange(1502, dtype=np.int32)[:, None], workers).labels_of(
        points, workers
    )
    assert labels.tolist() == [1500, 1501, 1500, 1501]


def test_labels_do_not_depend_on_the_number_of_threads(problem: tuple[np.ndarray, np.ndarray]) -> None:
    means, points = problem
    found = []
    for n_threads in (1, 3):
        with Workers(n_threads) as workers:
            found.append(Routing(means, points.dtype, ALONE, workers).labels_of(points, workers)[0])
    np.testing.assert_array_equal(found[0], found[1])


def test_the_distances_for_a_point_do_not_grow_with_the_number_of_means(
    workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"MOST_LANDMARKS": 16, "FROM_LANDMARK": 16, "FROM_CLUSTER": 16}.items():
        monkeypatch.setattr(routing, name, value)
    rng = np.random.default_rng(2)
    for n_clusters in (600, 4800):
        means, points = rng.uniform(size=(n_clusters, 2)), rng.uniform(size=(500, 2))
        known = np.arange(n_clusters, dtype=np.int32)[:, None]
        labels, n_evaluations = Routing(means, points.dtype, known, workers).labels_of(points, workers)
        assert n_evaluations <= len(points) * 16 * (2 + routing.MOST_STEPS)
        assert (labels == nearest(points, means, workers)[0]).mean() > 0.8
    assert MOST_LANDMARKS == 1024


def test_no_points_need_no_way(workers: Workers) -> None:
    labels, n_evaluations = Routing(np.eye(3), np.dtype(np.float64), ALONE[:3], workers).labels_of(
        np.empty((0, 3)), workers
    )
    assert (len(labels), n_evaluations) == (0, 0)
