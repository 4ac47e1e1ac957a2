from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp

from vcgmm.algorithm import reference
from vcgmm.algorithm.nearest import Centres, k_nearest, nearest
from vcgmm.kernels.parts.shorts import FEATURES, PRODUCTS
from vcgmm.parallel import Workers


@pytest.fixture
def points() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(700, 3)).astype(np.float32)


def test_labels_do_not_depend_on_the_number_of_threads(points: np.ndarray) -> None:
    found = []
    for n_threads in (1, 2, 3):
        with Workers(n_threads) as workers:
            found.append(nearest(points, points[:50].astype(np.float64), workers))
    for ids, distances in found[1:]:
        np.testing.assert_array_equal(ids, found[0][0])
        np.testing.assert_array_equal(distances, found[0][1])
    true = ((points[:, None] - points[None, :50]) ** 2).sum(axis=2)
    np.testing.assert_allclose(found[0][1], true.min(axis=1), rtol=1e-5)
    np.testing.assert_array_equal(found[0][0][:50], np.arange(50))


def test_centres_serve_every_kind_of_search(points: np.ndarray) -> None:
    ready = Centres(points[:20], np.dtype(np.float64))
    some = points[:40].astype(np.float64)
    true = reference.squared_distances(some, points[:20].astype(np.float64))
    ids, distances = np.empty((40, 3), np.int32), np.empty((40, 3))
    ready.k_nearest_of(some, ids, distances)
    np.testing.assert_allclose(distances, np.sort(true, axis=1)[:, :3], atol=1e-12)
    out = np.empty(40)
    ready.log_sum_of(some, 0.7, out)
    np.testing.assert_allclose(out, logsumexp(-0.7 * true, axis=1), atol=1e-12)


def test_the_k_nearest_come_nearest_first(points: np.ndarray, workers: Workers) -> None:
    ids = k_nearest(points, points[:20].astype(np.float64), 4, workers)
    true = ((points[:, None].astype(np.float64) - points[None, :20].astype(np.float64)) ** 2).sum(axis=2)
    np.testing.assert_array_equal(ids, np.argsort(true, axis=1)[:, :4])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_features", [FEATURES, 100, 787])
def test_wide_points_find_the_same_by_short_integers_as_by_floats(
    n_features: int, dtype: type, workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(5000, n_features)).astype(dtype)
    centres = np.vstack([rows[: 2 * PRODUCTS], rows[:3]])  # some twice
    rows[7] *= 1e7
    assert Centres(centres, np.dtype(dtype)).steps > 0.0
    ids, distances = nearest(rows, centres, workers)
    np.testing.assert_array_equal(ids[:3], np.arange(3))
    assert not distances[:3].any()
    monkeypatch.setattr("vcgmm.algorithm.nearest.FEATURES", n_features + 1)
    assert Centres(centres, np.dtype(dtype)).steps == 0.0
    for one, other in zip((ids, distances), nearest(rows, centres, workers), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("size", [0.0, 1e-20, 1e150, 1e200])
def test_centres_of_no_size_or_of_too_large_a_one_are_floats(size: float) -> None:
    with np.errstate(over="ignore"):
        assert Centres(np.full((PRODUCTS, FEATURES), size), np.dtype(np.float64)).steps == 0.0
