from __future__ import annotations

import warnings
import weakref
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from vcgmm import VCGMM
from vcgmm.algorithm import attempts
from vcgmm.algorithm.attempts import Attempts
from vcgmm.algorithm.coreset.frame import Moments, moments
from vcgmm.algorithm.coreset.lightweight import Coreset, all_rows
from vcgmm.algorithm.pipeline import SMALLEST_VARIANCE, check_distinct, make_coreset, to_local, variance_floor
from vcgmm.algorithm.seeding.afkmc2 import Start
from vcgmm.data import ArrayRows
from vcgmm.parallel import Workers
from vcgmm.progress import Iteration

INLINE = Workers(1)


def moments_of(X: np.ndarray, weights: np.ndarray | None = None) -> Moments:
    return moments(ArrayRows(X), weights, INLINE, lambda _: None)


def coreset_of(X: np.ndarray, chosen: Any, weights: np.ndarray | None = None) -> Coreset:
    return make_coreset(ArrayRows(X), weights, moments_of(X, weights), chosen, INLINE, lambda _: None)


def settings(**changes: Any) -> Any:
    return SimpleNamespace(**{"coreset_size": 10, "seed": 0, "n_components": 1, **changes})


@pytest.fixture(name="X")
def random_points() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(400, 2))


def test_of_several_fits_the_one_with_the_best_bound_is_kept(X: np.ndarray) -> None:
    seen: list[Iteration] = []
    model = VCGMM(30, init="random", n_init=4, max_iter=3, tol=0.0, random_state=0, callbacks=seen.append)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X)
    ends = [facts.bound for facts in seen if facts.iteration == 3]
    assert len(ends) == 4
    assert len(set(ends)) > 1
    assert model.lower_bound_ == max(ends)


def test_all_fits_see_one_coreset(X: np.ndarray) -> None:
    one, several = (VCGMM(5, coreset_size=50, n_init=n, random_state=0).fit(X) for n in (1, 3))
    np.testing.assert_array_equal(one.coreset_.indices, several.coreset_.indices)
    assert several.lower_bound_ >= one.lower_bound_


def test_a_coreset_as_large_as_the_data_is_the_data(X: np.ndarray) -> None:
    for size in (None, 400, 1000):
        coreset = coreset_of(X, settings(coreset_size=size))
        np.testing.assert_array_equal(coreset.weights, np.ones(400))
    weights = (np.arange(400) < 30).astype(np.float64)
    usable = coreset_of(X, settings(coreset_size=30), weights)
    np.testing.assert_array_equal(usable.indices, np.arange(30))


def test_a_smaller_coreset_is_drawn_by_the_seed(X: np.ndarray) -> None:
    drawn = [coreset_of(X, settings(seed=seed)).indices.tolist() for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_more_clusters_than_distinct_points_are_refused() -> None:
    coreset = all_rows(ArrayRows(np.repeat(np.eye(3), 10, axis=0)), None)
    check_distinct(coreset, "n_components", 3, 30)
    with pytest.raises(ValueError, match=r"3 distinct.*n_components=4"):
        check_distinct(coreset, "n_components", 4, 30)
    with pytest.raises(ValueError, match=r"n_clusters=31"):
        check_distinct(coreset, "n_clusters", 31, 30)


def test_local_points_have_mean_zero_and_about_unit_spread(X: np.ndarray) -> None:
    far = 1e3 + 50 * X
    frame = moments_of(far).frame(np.dtype(np.float32))
    points = to_local(all_rows(ArrayRows(far), None), frame, INLINE)
    assert points.dtype == np.float32
    np.testing.assert_allclose(points.mean(axis=0), 0, atol=1e-5)
    assert 0.7 < points.std() < 1.42


def test_the_floor_of_the_variance_is_relative_and_never_zero(X: np.ndarray) -> None:
    facts = moments_of(X)
    frame = facts.frame(np.dtype(np.float64))
    assert variance_floor(facts, frame, 0.01) == pytest.approx(0.01 * X.var(axis=0).mean() * frame.scale**2)
    assert variance_floor(facts, frame, 0.0) == SMALLEST_VARIANCE
    same = moments_of(np.ones((3, 2)))
    assert variance_floor(same, same.frame(np.dtype(np.float64)), 0.01) == SMALLEST_VARIANCE


@pytest.mark.parametrize("init", ["two_level", "afkmc2", "k-means++", "random"])
@pytest.mark.parametrize("search", ["blocked", "pointwise"])
def test_every_start_goes_with_every_search(X: np.ndarray, init: str, search: str) -> None:
    model = VCGMM(10, init=init, search=search, n_warmup=1, random_state=0).fit(X)
    assert len(np.unique(model.means_, axis=0)) == 10
    assert model.quantization_error(X) < 0.2 * ((X - X.mean(axis=0)) ** 2).sum()
    assert set(model.timings_) == set(model.n_distance_evaluations_) == {"coreset", "seeding", "em"}


@pytest.mark.parametrize("search", ["blocked", "pointwise"])
def test_another_fit_can_begin_where_the_last_one_ended(X: np.ndarray, search: str) -> None:
    model = VCGMM(10, warm_start=True, random_state=0, coreset_size=None, search=search).fit(X)
    end = model.lower_bound_
    model.fit(X)
    assert model.lower_bounds_[0] >= end - 1e-6 * abs(end)


def test_a_callback_that_stops_a_fit_stops_the_other_attempts_too(X: np.ndarray) -> None:
    seen: list[Iteration] = []

    def stop(facts: Iteration) -> bool:
        seen.append(facts)
        return len(seen) == 2

    VCGMM(10, n_init=5, tol=0.0, random_state=0, callbacks=stop).fit(X)
    assert [facts.iteration for facts in seen] == [1, 2]


@pytest.mark.on_cpu  # whose start is looked at
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_means_of_the_start_are_let_go_of_once_em_has_left_them(
    X: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts: list[weakref.ref[np.ndarray]] = []
    alive: list[bool] = []

    def seed(*arguments: Any) -> Start:
        start = attempts.seed(*arguments)
        starts.append(weakref.ref(start.means))
        return start

    def look(_facts: Iteration) -> None:
        alive.append(starts[-1]() is not None)

    def begin(self: Attempts, attempt: int) -> Start:
        return seed(self.points, self.problem, attempt, self.workers, self.progress)

    monkeypatch.setattr(Attempts, "_start", begin)
    again = {"tol": 0.0, "max_iter": 3, "n_init": 2, "random_state": 0, "callbacks": [look], "coreset_size": None}
    VCGMM(8, init="k-means++", **again).fit(X)
    assert len(starts) == 2
    assert alive == 2 * [True, False, False]  # the sums of the first E-step tell which means it used
    alive.clear()
    VCGMM(8, **again).fit(X)
    assert alive == 6 * [False]  # the default start has settled, and has other means
