"""Methods and attributes of VCGMM, one by one."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy import sparse
from scipy.spatial.distance import cdist
from scipy.special import logsumexp, softmax
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_info

from digits import digits
from vcgmm import VCGMM, Iteration

BLOCKED: dict[str, Any] = {"search": "blocked", "init": "two_level"}
POINTWISE: dict[str, Any] = {"search": "pointwise", "init": "afkmc2"}
both_searches = pytest.mark.parametrize("search", [BLOCKED, POINTWISE], ids=["blocked", "pointwise"])


def make_data(n_samples: int = 400, n_clusters: int = 8, n_features: int = 4, seed: int = 0) -> np.ndarray:
    """Overlapping clusters, in float64."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(scale=2.0, size=(n_clusters, n_features))
    return centers[rng.integers(n_clusters, size=n_samples)] + rng.normal(size=(n_samples, n_features))


def make_corners(n_samples: int = 600) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Six clusters far apart: points, labels and centres."""
    rng = np.random.default_rng(1)
    centers = 20.0 * np.concatenate([np.eye(3), -np.eye(3)])
    labels = np.arange(n_samples) % 6
    return centers[labels] + rng.normal(size=(n_samples, 3)), labels, centers


X = make_data()
WEIGHTS = np.random.default_rng(2).uniform(0.5, 3.0, size=len(X))


@pytest.fixture(scope="module")
def model() -> VCGMM:
    return VCGMM(n_components=8, truncation=3, random_state=0).fit(X)


def squared_distances(model: VCGMM, rows: np.ndarray) -> np.ndarray:
    return cdist(rows, model.means_, "sqeuclidean")


# ------------------------------------------------------------------------------------------------------ methods


@both_searches
def test_fit_recovers_known_clusters(search: dict[str, Any]) -> None:
    points, labels, centers = make_corners()
    model = VCGMM(n_components=6, random_state=0, n_init=5, **search).fit(points)
    assert cdist(centers, model.means_).min(axis=1).max() < 0.5
    assert adjusted_rand_score(labels, model.predict(points)) == 1.0
    assert model.variance_ == pytest.approx(1.0, rel=0.1)


@pytest.mark.parametrize("period", [5, 10])
def test_rows_that_come_in_turns_are_no_trap(period: int) -> None:
    # A sample of every k-th row would meet only some of the clusters.
    rng = np.random.default_rng(0)
    centers = rng.uniform(-10, 10, size=(period, 6))
    points = centers[np.arange(100 * period) % period] + 0.5 * rng.normal(size=(100 * period, 6))
    fits = [VCGMM(n_components=period, random_state=seed).fit(points) for seed in range(8)]
    assert sum(model.variance_ < 0.3 for model in fits) >= 6


@both_searches
def test_predict_is_the_nearest_mean(search: dict[str, Any]) -> None:
    model = VCGMM(n_components=8, random_state=0, **search).fit(X)
    labels = model.predict(X)
    distances = squared_distances(model, X)
    assert labels.shape == (len(X),)
    assert labels.dtype == np.int32
    np.testing.assert_allclose(distances[np.arange(len(X)), labels], distances.min(axis=1), rtol=1e-12)


def _refuse(*_: object) -> None:
    raise AssertionError("nobody needs this")


def test_approximate_prediction_is_mostly_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    centres = 20 * rng.normal(size=(1200, 4))
    X = (centres[rng.integers(0, 1200, 8000)] + rng.normal(size=(8000, 4))).astype(np.float32)
    model = VCGMM(1100, random_state=0).fit(X)
    exact = model.predict(X)
    monkeypatch.setattr("vcgmm.evaluation.Routing", _refuse)
    np.testing.assert_array_equal(model.predict(X, method="approximate"), exact)  # so few are all compared
    monkeypatch.undo()
    monkeypatch.setattr("vcgmm.algorithm.passes.routing.ALL_COMPARED", 8)
    near = model.predict(X, method="approximate")
    assert near.dtype == np.int32
    assert (exact == near).mean() > 0.99
    before = pickle.dumps(model)
    made: list[object] = []
    monkeypatch.setattr("vcgmm.evaluation.Routing", lambda *_: made.append(None))
    np.testing.assert_array_equal(model.predict(X, method="approximate"), near)
    assert not made  # what it needs is kept, but not in the model
    assert pickle.dumps(model) == before


@pytest.mark.on_cpu  # a GPU refuses rows that are so far away
def test_approximate_prediction_follows_a_new_fit_and_rows_far_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vcgmm.algorithm.passes.routing.ALL_COMPARED", 8)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 2))
    model = VCGMM(1030, random_state=0, dtype=np.float32, max_iter=2, tol=1.0).fit(X)
    model.predict(X, method="approximate")
    model.fit(X + 1000)
    assert (model.predict(X + 1000, method="approximate") == model.predict(X + 1000)).mean() > 0.9
    far = np.array([[1e30, 0.0], [0.0, -1e30]])
    np.testing.assert_array_equal(model.predict(far, method="approximate"), model.predict(far))


def test_an_unknown_way_to_predict_is_refused(model: VCGMM) -> None:
    with pytest.raises(ValueError, match=r"method='fast'.*'exact', 'approximate'"):
        model.predict(X, method="fast")


def test_fit_predict_is_fit_then_predict(model: VCGMM) -> None:
    np.testing.assert_array_equal(clone(model).fit_predict(X), model.predict(X))


def test_nearest_lists_the_k_nearest_means_in_order(model: VCGMM) -> None:
    distances, ids = model.nearest(X, 3)
    every = np.sqrt(squared_distances(model, X))
    np.testing.assert_allclose(distances, np.sort(every, axis=1)[:, :3], rtol=digits(1e-10))
    np.testing.assert_allclose(np.take_along_axis(every, ids, axis=1), distances, rtol=digits(1e-10))


def test_nearest_is_clipped_to_all_means(model: VCGMM) -> None:
    distances, ids = model.nearest(X[:5], 99)
    assert distances.shape == ids.shape == (5, 8)
    np.testing.assert_array_equal(np.sort(ids, axis=1), np.tile(np.arange(8), (5, 1)))


def test_predict_proba_has_truncation_entries_a_row(model: VCGMM) -> None:
    posteriors = model.predict_proba(X)
    assert sparse.issparse(posteriors)
    assert posteriors.format == "csr"
    assert posteriors.shape == (len(X), 8)
    np.testing.assert_array_equal(np.diff(posteriors.indptr), 3)
    np.testing.assert_allclose(posteriors.sum(axis=1), 1.0, rtol=1e-12)


def test_predict_proba_lies_on_the_nearest_means(model: VCGMM) -> None:
    nearest = np.sort(model.nearest(X, 3)[1], axis=1)
    np.testing.assert_array_equal(model.predict_proba(X).indices.reshape(-1, 3), nearest)


def test_predict_proba_over_all_components_is_the_exact_posterior(model: VCGMM) -> None:
    everything = clone(model).set_params(truncation=8).fit(X)
    expected = softmax(-squared_distances(everything, X) / (2 * everything.variance_), axis=1)
    np.testing.assert_allclose(
        everything.predict_proba(X).toarray(), expected, rtol=10 * digits(1e-9), atol=digits(1e-14)
    )


def exact_log_density(model: VCGMM, rows: np.ndarray) -> np.ndarray:
    parts = [multivariate_normal(mean, model.variance_).logpdf(rows) for mean in model.means_]
    return logsumexp(parts, axis=0) - np.log(len(parts))


def test_score_samples_is_the_exact_log_density(model: VCGMM) -> None:
    np.testing.assert_allclose(model.score_samples(X), exact_log_density(model, X), rtol=digits(1e-10))


def test_score_samples_does_not_underflow_far_away(model: VCGMM) -> None:
    far = np.full((1, 4), 1e4)
    np.testing.assert_allclose(model.score_samples(far), exact_log_density(model, far), rtol=digits(1e-10))


def test_score_is_the_mean_log_density(model: VCGMM) -> None:
    assert model.score(X) == pytest.approx(model.score_samples(X).mean(), rel=1e-12)


def test_score_takes_weights(model: VCGMM) -> None:
    expected = np.average(model.score_samples(X), weights=WEIGHTS)
    assert model.score(X, sample_weight=WEIGHTS) == pytest.approx(expected, rel=1e-12)


def test_quantization_error_is_the_sum_of_squared_distances(model: VCGMM) -> None:
    expected = squared_distances(model, X).min(axis=1).sum()
    assert model.quantization_error(X) == pytest.approx(expected, rel=digits(1e-10))


def test_quantization_error_takes_weights(model: VCGMM) -> None:
    expected = np.dot(WEIGHTS, squared_distances(model, X).min(axis=1))
    assert model.quantization_error(X, WEIGHTS) == pytest.approx(expected, rel=digits(1e-10))


def test_sample_has_the_moments_of_the_mixture(model: VCGMM) -> None:
    points, labels = model.sample(40_000)
    assert points.shape == (40_000, 4)
    shares = np.bincount(labels, minlength=8) / 40_000
    np.testing.assert_allclose(shares, 1 / 8, atol=0.01)
    residuals = points - model.means_[labels]
    np.testing.assert_allclose(residuals.mean(axis=0), 0.0, atol=0.03)
    np.testing.assert_allclose(residuals.var(axis=0), model.variance_, rtol=0.04)


def test_sample_follows_random_state(model: VCGMM) -> None:
    np.testing.assert_array_equal(model.sample(5)[0], model.sample(5)[0])


def test_bic_counts_means_and_one_variance(model: VCGMM) -> None:
    expected = -2 * model.score_samples(X).sum() + (8 * 4 + 1) * np.log(len(X))
    assert model.bic(X) == pytest.approx(expected, rel=1e-12)


def test_aic_counts_means_and_one_variance(model: VCGMM) -> None:
    expected = -2 * model.score_samples(X).sum() + 2 * (8 * 4 + 1)
    assert model.aic(X) == pytest.approx(expected, rel=1e-12)


# --------------------------------------------------------------------------------------------------- attributes


def test_it_is_a_density_estimator(model: VCGMM) -> None:
    assert model.__sklearn_tags__().estimator_type == "density_estimator"


def test_cluster_centers_is_another_name_for_means(model: VCGMM) -> None:
    assert model.cluster_centers_ is model.means_
    assert model.means_.shape == (8, 4)


def test_components_share_their_weight_and_variance(model: VCGMM) -> None:
    np.testing.assert_array_equal(model.weights_, np.full(8, 1 / 8))
    np.testing.assert_array_equal(model.covariances_, np.full(8, model.variance_))


@both_searches
def test_counts_sum_to_the_total_weight(search: dict[str, Any]) -> None:
    model = VCGMM(n_components=8, coreset_size=None, random_state=0, **search).fit(X, sample_weight=WEIGHTS)
    assert model.counts_.sum() == pytest.approx(WEIGHTS.sum(), rel=digits(1e-9))


@both_searches
def test_counts_of_a_coreset_sum_to_its_weight(search: dict[str, Any]) -> None:
    model = VCGMM(n_components=8, coreset_size=100, random_state=0, **search).fit(X)
    assert model.counts_.sum() == pytest.approx(model.coreset_.weights.sum(), rel=1e-9)


@both_searches
def test_a_cluster_without_points_keeps_its_place(search: dict[str, Any]) -> None:
    start = np.concatenate([X[:3], np.full((1, 4), 1e4)])
    model = VCGMM(n_components=4, **{**search, "init": start}).fit(X)
    assert model.counts_[3] == 0.0
    np.testing.assert_allclose(model.means_[3], start[3], rtol=digits(1e-12))
    assert np.isfinite(model.means_).all()


@both_searches
@pytest.mark.parametrize("size", [None, 150])
def test_lower_bounds_never_fall(search: dict[str, Any], size: int | None) -> None:
    model = VCGMM(n_components=8, coreset_size=size, tol=1e-7, random_state=0, **search).fit(X)
    assert len(model.lower_bounds_) == model.n_iter_ > 2
    assert model.lower_bounds_[-1] == model.lower_bound_
    assert np.diff(model.lower_bounds_).min() >= -digits(1e-10) * abs(model.lower_bound_)


def test_lower_bound_lies_below_the_likelihood() -> None:
    model = VCGMM(n_components=8, coreset_size=None, truncation=2, random_state=0).fit(X)
    assert model.lower_bound_ < model.score_samples(X).sum()


def test_coreset_holds_rows_of_the_data() -> None:
    model = VCGMM(n_components=8, coreset_size=100, random_state=0).fit(X)
    coreset = model.coreset_
    assert 8 <= len(coreset.indices) <= 100
    np.testing.assert_array_equal(np.unique(coreset.indices), coreset.indices)
    np.testing.assert_array_equal(coreset.points, X[coreset.indices])
    assert (coreset.weights > 0).all()
    assert coreset.weights.sum() == pytest.approx(len(X), rel=0.3)


def test_coreset_of_all_points_keeps_their_weights() -> None:
    model = VCGMM(n_components=8, coreset_size=None, random_state=0).fit(X, sample_weight=WEIGHTS)
    np.testing.assert_array_equal(model.coreset_.indices, np.arange(len(X)))
    np.testing.assert_array_equal(model.coreset_.weights, WEIGHTS)


@both_searches
def test_neighbors_begin_with_the_cluster_itself(search: dict[str, Any]) -> None:
    neighbors = VCGMM(n_components=8, n_neighbors=3, random_state=0, **search).fit(X).neighbors_
    assert neighbors.shape == (8, 3)
    np.testing.assert_array_equal(neighbors[:, 0], np.arange(8))
    assert all(len(set(row)) == 3 for row in neighbors.tolist())


@both_searches
def test_costs_are_told_for_every_step(search: dict[str, Any]) -> None:
    model = VCGMM(n_components=8, random_state=0, **search).fit(X)
    assert {"coreset", "seeding", "em"} <= set(model.timings_)
    assert {"coreset", "seeding", "em"} <= set(model.n_distance_evaluations_)
    assert all(seconds > 0 for seconds in model.timings_.values())
    assert all(number > 0 for number in model.n_distance_evaluations_.values())


def test_pointwise_search_evaluates_no_more_than_its_search_spaces() -> None:
    model = VCGMM(n_components=100, truncation=2, n_neighbors=3, coreset_size=None, random_state=0, **POINTWISE)
    model.fit(make_data(2000, 100))
    assert model.n_distance_evaluations_["em"] <= model.n_iter_ * 2000 * 2 * 3


def test_labels_are_computed_on_request(model: VCGMM) -> None:
    labelled = clone(model).set_params(compute_labels=True).fit(X, sample_weight=WEIGHTS)
    np.testing.assert_array_equal(labelled.labels_, labelled.predict(X))
    assert labelled.inertia_ == pytest.approx(labelled.quantization_error(X, WEIGHTS), rel=1e-12)


def test_labels_are_not_kept_from_an_earlier_fit(model: VCGMM) -> None:
    refitted = clone(model).set_params(compute_labels=True).fit(X).set_params(compute_labels=False).fit(X)
    assert not hasattr(refitted, "labels_")
    assert not hasattr(refitted, "inertia_")


def test_what_is_computed_on_demand_says_how_to_come_by_it() -> None:
    model = VCGMM(n_components=4, random_state=0)
    with pytest.raises(AttributeError, match="object has no attribute 'labels_'"):
        _ = model.labels_
    model.fit(X)
    with pytest.raises(AttributeError, match=r"without labels_: set compute_labels=True.* or call predict\(X\)"):
        _ = model.labels_
    with pytest.raises(AttributeError, match=r"without inertia_: .* or call quantization_error\(X\)"):
        _ = model.inertia_
    with pytest.raises(AttributeError, match="object has no attribute 'label_'"):
        _ = model.label_  # type: ignore[attr-defined]
    assert not hasattr(model, "labels_")


# --------------------------------------------------------------------------------------------- the run of a fit


@both_searches
@pytest.mark.parametrize("size", [None, 150])
def test_results_are_the_same_for_any_number_of_threads(search: dict[str, Any], size: int | None) -> None:
    one, three = (
        VCGMM(n_components=8, coreset_size=size, random_state=0, n_threads=n, **search).fit(X) for n in (1, 3)
    )
    np.testing.assert_array_equal(one.means_, three.means_)
    np.testing.assert_array_equal(one.lower_bounds_, three.lower_bounds_)


def test_same_seed_same_fit_and_other_seed_other_coreset() -> None:
    first, again, other = (VCGMM(n_components=8, coreset_size=100, random_state=s).fit(X) for s in (3, 3, 4))
    np.testing.assert_array_equal(first.means_, again.means_)
    assert not np.array_equal(first.coreset_.indices, other.coreset_.indices)


def test_n_init_keeps_the_best_bound() -> None:
    one, many = (VCGMM(n_components=8, init="random", n_init=n, random_state=0).fit(X) for n in (1, 8))
    assert many.lower_bound_ > one.lower_bound_


def test_n_init_draws_one_coreset() -> None:
    one, many = (VCGMM(n_components=8, coreset_size=100, n_init=n, random_state=0).fit(X) for n in (1, 3))
    np.testing.assert_array_equal(one.coreset_.indices, many.coreset_.indices)
    assert many.n_distance_evaluations_["coreset"] == one.n_distance_evaluations_["coreset"]
    assert many.n_distance_evaluations_["seeding"] > one.n_distance_evaluations_["seeding"]


@both_searches
@pytest.mark.parametrize("size", [None, 500])
@pytest.mark.parametrize("n_warmup", [0, 2])
def test_warm_start_continues_where_the_last_fit_ended(
    search: dict[str, Any], size: int | None, n_warmup: int
) -> None:
    points = make_data(1000, 30)
    model = VCGMM(n_components=30, coreset_size=size, n_warmup=n_warmup, warm_start=True, random_state=0, **search)
    ended = model.fit(points).lower_bound_
    began = model.fit(points).lower_bounds_[0]
    assert began >= ended - 1e-10 * abs(ended)
    assert began == pytest.approx(ended, rel=1e-3)


def test_without_warm_start_a_fit_begins_anew(model: VCGMM) -> None:
    again = clone(model).fit(X)
    np.testing.assert_array_equal(again.fit(X).lower_bounds_, model.lower_bounds_)


def test_warm_start_refuses_another_number_of_components() -> None:
    model = VCGMM(n_components=8, warm_start=True, random_state=0).fit(X).set_params(n_components=9)
    with pytest.raises(ValueError, match=r"warm_start.*8.*n_components=9"):
        model.fit(X)


def test_max_iter_ends_a_fit_with_a_warning() -> None:
    with pytest.warns(ConvergenceWarning, match="max_iter=2.*Raise max_iter or tol") as caught:
        model = VCGMM(n_components=8, max_iter=2, tol=0.0, random_state=0).fit(X)
    assert caught[0].filename == __file__
    assert model.n_iter_ == 2
    assert not model.converged_


def test_a_converged_fit_warns_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = VCGMM(n_components=8, random_state=0).fit(X)
    assert model.converged_
    first, last = model.lower_bounds_[-2:]
    assert abs((last - first) / last) < model.tol


def test_a_callback_sees_every_iteration() -> None:
    seen: list[Iteration] = []
    model = VCGMM(n_components=8, random_state=0, callbacks=seen.append).fit(X)
    assert [facts.iteration for facts in seen] == list(range(1, model.n_iter_ + 1))
    assert [facts.bound for facts in seen] == model.lower_bounds_.tolist()
    assert seen[0].change == np.inf
    assert seen[-1].change < model.tol
    assert all(facts.variance > 0 for facts in seen)
    assert np.all(np.diff([facts.seconds for facts in seen]) > 0)


def test_a_callback_stops_the_fit_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = VCGMM(n_components=8, tol=0.0, random_state=0, callbacks=[lambda facts: facts.iteration == 3]).fit(
            X
        )
    assert model.n_iter_ == 3
    assert not model.converged_


def test_a_callback_stops_all_of_n_init() -> None:
    seen: list[Iteration] = []

    def stop_at_once(facts: Iteration) -> bool:
        seen.append(facts)
        return True

    VCGMM(n_components=8, n_init=3, random_state=0, callbacks=stop_at_once).fit(X)
    assert len(seen) == 1


@pytest.mark.on_cpu  # device="auto" has a line of its own
def test_verbose_writes_one_line_per_step_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    VCGMM(n_components=8, random_state=0, verbose=1).fit(X)
    out, err = capsys.readouterr()
    assert out == ""
    assert [line.split()[0] for line in err.splitlines()] == ["coreset", "seeding", "em"]


def test_a_fit_is_silent_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    VCGMM(n_components=8, random_state=0).fit(X)
    assert capsys.readouterr() == ("", "")


def raising(error: type[BaseException]) -> Callable[[Iteration], bool]:
    """A callback that fails in the second iteration."""

    def callback(facts: Iteration) -> bool:
        if facts.iteration == 2:
            raise error
        return False

    return callback


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_interrupted_first_fit_leaves_the_estimator_unfitted(error: type[BaseException]) -> None:
    model = VCGMM(n_components=8, random_state=0, callbacks=raising(error))
    before = dict(vars(model))
    with pytest.raises(error):
        model.fit(X)
    assert vars(model) == before


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_interrupted_refit_leaves_the_last_fit(error: type[BaseException]) -> None:
    model = VCGMM(n_components=8, random_state=0, compute_labels=True).fit(X)
    model.set_params(callbacks=raising(error))
    before = dict(vars(model))
    means = model.means_.copy()
    with pytest.raises(error):
        model.fit(pd.DataFrame(X[:, :3], columns=["a", "b", "c"]))
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())
    np.testing.assert_array_equal(model.means_, means)


def test_bad_input_leaves_the_last_fit() -> None:
    model = VCGMM(n_components=8, random_state=0).fit(X)
    before = dict(vars(model))
    with pytest.raises(ValueError, match="fewer than n_components=8"):
        model.fit(X[:5, :2])
    assert all(vars(model)[name] is value for name, value in before.items())


def test_an_interrupted_fit_gives_blas_its_threads_back() -> None:
    before = threadpool_info()
    with pytest.raises(KeyboardInterrupt):
        VCGMM(n_components=8, random_state=0, callbacks=raising(KeyboardInterrupt)).fit(X)
    assert threadpool_info() == before


# ---------------------------------------------------------------------------------------- among other estimators


def test_clone_keeps_parameters_and_forgets_the_fit(model: VCGMM) -> None:
    twin = clone(model)
    assert twin.get_params() == model.get_params()
    assert not hasattr(twin, "means_")


@both_searches
def test_a_pickled_model_predicts_the_same(search: dict[str, Any]) -> None:
    model = VCGMM(n_components=8, random_state=0, **search).fit(X)
    twin = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(twin.predict(X), model.predict(X))
    np.testing.assert_array_equal(twin.score_samples(X), model.score_samples(X))


def test_it_ends_a_pipeline(model: VCGMM) -> None:
    pipeline = make_pipeline(StandardScaler(), clone(model)).fit(X)
    alone = clone(model).fit(StandardScaler().fit_transform(X))
    np.testing.assert_array_equal(pipeline.predict(X), alone.predict(StandardScaler().fit_transform(X)))


def test_grid_search_finds_the_number_of_components() -> None:
    points, _, _ = make_corners()
    search = GridSearchCV(VCGMM(random_state=0, n_init=3), {"n_components": [2, 6]}, cv=3).fit(points)
    assert search.best_params_ == {"n_components": 6}


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_data_frames_fit_as_arrays_and_give_their_names(model: VCGMM, frame: Any) -> None:
    table = frame({name: X[:, i] for i, name in enumerate("abcd")})
    fitted = clone(model).fit(table)
    np.testing.assert_array_equal(fitted.means_, model.means_)
    assert fitted.feature_names_in_.tolist() == list("abcd")
    np.testing.assert_array_equal(fitted.predict(table), model.predict(X))


def test_arrays_have_no_feature_names(model: VCGMM) -> None:
    assert model.n_features_in_ == 4
    assert not hasattr(model, "feature_names_in_")


def test_frames_with_other_names_are_refused(model: VCGMM) -> None:
    fitted = clone(model).fit(pd.DataFrame(X, columns=list("abcd")))
    with pytest.raises(ValueError, match="feature names"):
        fitted.predict(pd.DataFrame(X, columns=list("abce")))


def test_weights_are_routed_through_a_pipeline() -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        last = VCGMM(n_components=8, coreset_size=None, random_state=0).set_fit_request(sample_weight=True)
        pipeline = make_pipeline(scaler, last).fit(X, sample_weight=WEIGHTS)
    np.testing.assert_array_equal(pipeline[-1].coreset_.weights, WEIGHTS)


def test_weights_are_routed_through_a_grid_search() -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        model = VCGMM(random_state=0).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        search = GridSearchCV(model, {"n_components": [8]}, cv=KFold(2)).fit(X, sample_weight=WEIGHTS)
    train, test = next(KFold(2).split(X))
    by_hand = VCGMM(n_components=8, random_state=0).fit(X[train], sample_weight=WEIGHTS[train])
    expected = by_hand.score(X[test], sample_weight=WEIGHTS[test])
    assert search.cv_results_["split0_test_score"][0] == pytest.approx(expected, rel=1e-12)


def test_a_callback_that_stops_at_the_last_iteration_is_no_failure_to_converge() -> None:
    X = np.random.default_rng(0).normal(size=(300, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = VCGMM(5, random_state=0, tol=0.0, max_iter=3, callbacks=lambda facts: facts.iteration == 3).fit(X)
    assert model.n_iter_ == 3
    assert not model.converged_


def test_exploration_comes_on_top_of_the_candidates() -> None:
    X = np.random.default_rng(0).normal(size=(2000, 3))
    alike = {"init": "k-means++", "random_state": 0, "tol": 0.0, "max_iter": 2, "coreset_size": None}
    plain = VCGMM(100, n_candidates=20, **alike)
    more = VCGMM(100, n_candidates=20, n_explore=7, **alike)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        extra = more.fit(X).n_distance_evaluations_["em"] - plain.fit(X).n_distance_evaluations_["em"]
    # Seven more for every point in both E-steps, give or take old winners that are candidates in one fit alone.
    assert extra == pytest.approx(2 * 7 * len(X), rel=0.1)
    assert more.lower_bounds_[0] >= plain.lower_bounds_[0]  # from the same start a larger search finds no less


def test_verbose_may_be_true() -> None:
    X = np.random.default_rng(0).normal(size=(200, 2))
    assert VCGMM(3, random_state=0, verbose=True).fit(X).n_iter_ > 0


@pytest.mark.on_cpu  # a GPU has rows in float32
def test_errors_are_taken_in_float64_whatever_the_fit_computes_in() -> None:
    X = np.array([[0], [1], [10**9], [10**9 + 1]])
    model = VCGMM(2, random_state=0).fit(X)
    assert model.quantization_error(X) == pytest.approx(1.0, abs=1e-6)
