from __future__ import annotations

import numpy as np
import pytest

from vcgmm.algorithm import levels
from vcgmm.algorithm.levels import Levels
from vcgmm.parallel import Workers


def problem(n_clusters: int, n_features: int = 6) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    means = rng.normal(size=(n_clusters, n_features)).astype(np.float32)
    points = means[rng.integers(n_clusters, size=3000)] + rng.normal(scale=0.3, size=(3000, n_features))
    return means, points.astype(np.float32)


def exact(points: np.ndarray, means: np.ndarray) -> np.ndarray:
    return np.array([((means - point) ** 2).sum(axis=1).argmin() for point in points])


def test_few_means_are_all_looked_at(workers: Workers) -> None:
    means, points = problem(50)
    labels, n_evaluations = Levels(means, 3000, np.random.default_rng(1), workers).near(points)
    np.testing.assert_array_equal(labels, exact(points, means))
    assert n_evaluations == 3000 * 50


def test_of_many_most_points_find_the_nearest_at_a_small_cost(
    workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(levels, "TOP", 40)
    monkeypatch.setattr(levels, "LISTED", 60)
    means, points = problem(1600)
    ladder = Levels(means, 3000, np.random.default_rng(1), workers)
    labels, n_evaluations = ladder.near(points)
    nearest = exact(points, means)
    assert n_evaluations == 3000 * (25 + 60 + 60 + 60)  # 1600, 400, 100, 25
    assert (labels == nearest).mean() > 0.8
    error, best = (((points - means[ids]) ** 2).sum() for ids in (labels, nearest))
    assert error < 1.15 * best


def test_for_a_few_points_all_means_are_looked_at(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels, "TOP", 40)
    means, points = problem(1600)
    few = points[:100]
    ladder = Levels(means, len(few), np.random.default_rng(1), workers)
    labels, n_evaluations = ladder.near(few)
    np.testing.assert_array_equal(labels, exact(few, means))
    assert (ladder.n_evaluations, n_evaluations) == (0, 100 * 1600)


def test_equal_means_do_no_harm(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels, "TOP", 10)
    means = np.repeat(np.eye(3, dtype=np.float64), 40, axis=0)
    labels, _ = Levels(means, 1000, np.random.default_rng(0), workers).near(np.eye(3))
    assert (labels // 40).tolist() == [0, 1, 2]


def test_the_number_of_threads_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels, "TOP", 40)
    means, points = problem(700)
    found = []
    for n_threads in (1, 3):
        with Workers(n_threads) as threads:
            found.append(Levels(means, 3000, np.random.default_rng(2), threads).near(points)[0])
    np.testing.assert_array_equal(*found)
