from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from digits import digits
from vcgmm import VCGMM, prediction
from vcgmm.algorithm.models import reference

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

KINDS = ("spherical", "diag", "tied_diag")


def blobs(seed: int, C: int = 6, D: int = 3, n: int = 120) -> np.ndarray:
    """Clusters of different widths, by feature too, and different sizes."""
    rng = np.random.default_rng(seed)
    return np.concatenate(
        [
            rng.normal(4 * rng.normal(size=D), rng.uniform(0.2, 2.0, size=D), size=(n * (1 + c % 3), D))
            for c in range(C)
        ]
    )


def fit(X: np.ndarray, **options: Any) -> VCGMM:
    return VCGMM(**{"n_components": 6, "coreset_size": None, "random_state": 0, **options}).fit(X)


# ------------------------------------------------------------------------------- step by step beside scikit-learn


@settings(max_examples=10)
@given(
    seed=st.integers(0, 1000), kind=st.sampled_from(["spherical", "diag"]), n_iter=st.sampled_from([1, 2, 3, 8])
)
def test_with_all_clusters_searched_it_is_the_em_of_scikit_learn(seed: int, kind: str, n_iter: int) -> None:
    X, C = blobs(seed), 6
    start = X[np.random.default_rng(seed).choice(len(X), C, replace=False)]
    variance = ((X[:, None] - start) ** 2).sum(axis=2).min(axis=1).mean() / X.shape[1]
    ours = fit(
        X,
        covariance_type=kind,
        init=start,
        n_shared=0,
        reg_covar=0,
        truncation=C,
        relaxation=1,
        tol=0,
        max_iter=n_iter,
    )
    theirs = GaussianMixture(
        C,
        covariance_type=kind,
        means_init=start,
        weights_init=np.full(C, 1 / C),
        precisions_init=np.full((C, X.shape[1]) if kind == "diag" else C, 1 / variance),
        tol=0,
        max_iter=n_iter,
        reg_covar=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        theirs.fit(X)
    # Responsibilities below 1e-9 are left out of our sums.
    np.testing.assert_allclose(ours.means_, theirs.means_, atol=10 * digits(1e-7))
    np.testing.assert_allclose(ours.covariances_, theirs.covariances_, rtol=10 * digits(1e-6))
    np.testing.assert_allclose(ours.precisions_, theirs.precisions_, rtol=10 * digits(1e-6))
    np.testing.assert_allclose(ours.weights_, theirs.weights_, atol=10 * digits(1e-8))
    assert ours.lower_bound_ / len(X) == pytest.approx(theirs.lower_bound_, abs=10 * digits(1e-8))
    np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), atol=10 * digits(1e-6))
    np.testing.assert_allclose(ours.predict_proba(X).toarray(), theirs.predict_proba(X), atol=10 * digits(1e-6))
    assert (ours.predict(X) == theirs.predict(X)).mean() > 0.999
    assert ours.bic(X) == pytest.approx(theirs.bic(X), rel=digits(1e-6))
    assert ours.aic(X) == pytest.approx(theirs.aic(X), rel=digits(1e-6))


@pytest.mark.parametrize("kind", KINDS)
def test_a_mixture_for_scikit_learn_is_the_same(kind: str) -> None:
    X = blobs(1)
    model = fit(X, covariance_type=kind)
    theirs = model.to_sklearn()
    np.testing.assert_allclose(theirs.score_samples(X), model.score_samples(X), rtol=digits(1e-8))
    np.testing.assert_array_equal(theirs.predict(X), model.predict(X))


# ----------------------------------------------------------------------------------------------------- the fit


@pytest.mark.parametrize("mixing", ["equal", "learned"])
@pytest.mark.parametrize("kind", ["isotropic", *KINDS])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_bound_never_falls_in_any_phase(kind: str, mixing: str, dtype: str) -> None:
    X = blobs(2, C=20, D=4)
    model = fit(
        X, n_components=40, covariance_type=kind, mixing=mixing, n_shared=4, tol=0, max_iter=30, dtype=dtype,
        truncation=3, n_candidates=8,
    )  # fmt: skip
    assert model.active_.all()
    gains = np.diff(model.lower_bounds_)
    assert (gains >= -1e-7 * np.abs(model.lower_bounds_[1:]).max()).all()


def test_shapes_of_all_kinds() -> None:
    X = blobs(3)
    for kind, shape in {"isotropic": (6,), "spherical": (6,), "diag": (6, 3), "tied_diag": (3,)}.items():
        model = fit(X, covariance_type=kind, mixing="learned")
        assert model.covariances_.shape == model.precisions_.shape == shape
        assert model.weights_.sum() == pytest.approx(1.0)
        assert np.ptp(model.weights_) > 0.01
        assert np.ptp(fit(X, covariance_type=kind, mixing="equal").weights_) == 0
        n_variances = {"isotropic": 1, "spherical": 6, "diag": 18, "tied_diag": 3}[kind]
        n_parameters = 18 + n_variances + 5
        log_likelihood = model.score_samples(X).sum()
        assert model.aic(X) == pytest.approx(2 * n_parameters - 2 * log_likelihood)
    assert np.ptp(fit(X, covariance_type="isotropic", mixing="learned").covariances_) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_results_do_not_depend_on_the_number_of_threads(kind: str) -> None:
    X = blobs(4, C=20).astype(np.float32)
    one, two = (fit(X, n_components=30, covariance_type=kind, n_threads=n) for n in (1, 2))
    for name in ("means_", "covariances_", "weights_", "lower_bounds_", "neighbors_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    np.testing.assert_array_equal(one.score_samples(X), two.score_samples(X))


@pytest.mark.parametrize("kind", KINDS)
def test_more_room_for_variances_raises_the_held_out_likelihood(kind: str) -> None:
    X = np.random.default_rng(0).permutation(blobs(5, C=8, D=4, n=300))
    shared = fit(X[500:], n_components=8)
    own = fit(X[500:], n_components=8, covariance_type=kind)
    assert own.score(X[:500]) > shared.score(X[:500]) + 0.05


def test_samples_follow_weights_and_variances() -> None:
    X = np.concatenate([np.random.default_rng(0).normal(size=(3000, 2)) * [1, 5], 100 + np.zeros((1000, 2))])
    X[3000:] += np.random.default_rng(1).normal(size=(1000, 2)) * [0.1, 0.2]
    model = fit(X, n_components=2, covariance_type="diag")
    drawn, labels = model.sample(40_000)
    wide = int(np.argmax(model.weights_))
    assert (labels == wide).mean() == pytest.approx(0.75, abs=0.02)
    np.testing.assert_allclose(drawn[labels == wide].std(axis=0), [1, 5], rtol=0.05)
    np.testing.assert_allclose(drawn[labels != wide].std(axis=0), [0.1, 0.2], rtol=0.1)


# ------------------------------------------------------------------------------------------- soundness in float32


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_float32_comes_to_what_float64_comes_to(kind: str, offset: float) -> None:
    X = blobs(6) + offset
    start = X[:: len(X) // 6][:6]
    options = {"covariance_type": kind, "init": start, "max_iter": 12, "tol": 0}
    narrow, wide = fit(X, dtype="float32", **options), fit(X, dtype="float64", **options)
    np.testing.assert_allclose(narrow.means_ - offset, wide.means_ - offset, atol=0.01)
    np.testing.assert_allclose(narrow.covariances_, wide.covariances_, rtol=0.02)
    assert narrow.lower_bound_ == pytest.approx(wide.lower_bound_, rel=1e-4)


@pytest.mark.parametrize("kind", ["diag", "tied_diag"])
def test_features_of_very_different_scale_keep_their_variances(kind: str) -> None:
    scales = np.array([1e-6, 1.0, 1e5])
    X = (blobs(7) * scales).astype(np.float32)
    model = fit(X, covariance_type=kind, truncation=6, relaxation=1, tol=0, max_iter=300)
    # At the end of EM they are the variances of the points that clusters answer for.
    shares = model.predict_proba(X).toarray()
    masses = shares.sum(axis=0)
    squares = np.einsum("nc,ncd->cd", shares, (X[:, None].astype(np.float64) - model.means_) ** 2)
    expected = squares / masses[:, None] if kind == "diag" else squares.sum(axis=0) / len(X)
    np.testing.assert_allclose(model.covariances_, expected, rtol=1e-2)
    assert np.isfinite(model.score_samples(X)).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("reg_covar", [None, 0.0])
def test_constant_features_and_equal_points_are_no_trouble(kind: str, dtype: str, reg_covar: float | None) -> None:
    X = blobs(8)
    X[:, 1] = 1234.5
    X[:400] = X[0]
    model = fit(X, covariance_type=kind, dtype=dtype, reg_covar=reg_covar)
    for name in ("means_", "covariances_", "weights_", "lower_bounds_"):
        assert np.isfinite(getattr(model, name)).all(), name
    assert (model.covariances_ > 0).all()
    if kind != "spherical" and reg_covar is None:  # a constant feature gets what all features together would
        floor = 1e-6 * X.var(axis=0).mean()
        np.testing.assert_allclose(np.atleast_2d(model.covariances_)[:, 1], floor, rtol=1e-3)
    assert np.isfinite(model.score_samples(X)).all()
    assert np.isfinite(model.predict_proba(X).data).all()


def test_the_floor_is_relative_to_each_feature() -> None:
    X = blobs(9) * [1.0, 1000.0, 1.0]
    model = fit(X, covariance_type="diag", reg_covar=0.5)
    assert (model.covariances_ >= 0.5 * X.var(axis=0) * (1 - 1e-6)).all()


# ------------------------------------------------------------------------------------------------------- collapse


def with_an_outlier() -> np.ndarray:
    return np.concatenate([blobs(10, D=2), [[500.0, 500.0]]])


def test_a_cluster_on_a_single_point_is_dropped_and_told() -> None:
    X = with_an_outlier()
    start = np.concatenate([X[:5], X[-1:]])
    model = fit(X, covariance_type="spherical", init=start, n_shared=0)
    assert not model.active_[5]
    assert (model.weights_[5], model.counts_[5]) == (0.0, 0.0)
    assert model.history_["active"][-1] < 6
    assert not (model.predict(X) == 5).any()
    assert model.predict_proba(X).shape == (len(X), 6)
    assert (model.sample(1000)[1] != 5).all()


def test_a_dropped_cluster_gets_one_new_start_where_the_bound_is_worst() -> None:
    X = blobs(10, D=2)
    start = np.concatenate([X[:: len(X) // 5][:5], [[500.0, 500.0]]])  # far from all points: it gets none
    options = {"covariance_type": "spherical", "init": start, "n_shared": 0}
    assert not fit(X, **options).active_[5]
    model = fit(X, **options, reassign=True)
    assert model.active_.all()
    assert model.lower_bound_ > fit(X, **options).lower_bound_


@pytest.mark.parametrize("kind", KINDS)
def test_equal_weights_stay_equal_when_clusters_get_a_new_start(kind: str) -> None:
    X = blobs(10, D=2)
    start = np.concatenate([X[:: len(X) // 5][:5], [[500.0, 500.0]]])
    model = fit(X, covariance_type=kind, mixing="equal", init=start, n_shared=0, reassign=True)
    np.testing.assert_allclose(model.weights_[model.active_], 1 / model.active_.sum())


@pytest.mark.parametrize("kind", KINDS)
def test_as_many_clusters_as_points_leave_more_than_one(kind: str) -> None:
    X = np.random.default_rng(0).normal(size=(20, 2))
    model = fit(X, n_components=20, covariance_type=kind)
    assert model.active_.sum() >= 5
    assert np.isfinite(model.score_samples(X)).all()


# --------------------------------------------------------------------------------------------------------- keeping


@pytest.mark.parametrize("kind", ["isotropic", *KINDS])
def test_saved_models_predict_the_same_to_the_last_bit(kind: str, tmp_path: Path) -> None:
    X = blobs(11)
    model = fit(X, covariance_type=kind, mixing="learned")
    model.save(tmp_path / "model.vcgmm")
    loaded = VCGMM.load(tmp_path / "model.vcgmm")
    np.testing.assert_array_equal(loaded.score_samples(X), model.score_samples(X))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.covariances_, model.covariances_)
    assert loaded.bic(X) == model.bic(X)


def test_what_was_fitted_counts_not_what_parameters_have_become() -> None:
    X = blobs(12)
    model = fit(X, covariance_type="diag")
    expected = model.score_samples(X)
    model.set_params(covariance_type="isotropic")
    np.testing.assert_array_equal(model.score_samples(X), expected)


def test_labels_of_a_fit_are_those_of_predict() -> None:
    X = blobs(13)
    model = fit(X, covariance_type="diag", compute_labels=True)
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    assert model.inertia_ == pytest.approx(model.quantization_error(X))


def test_a_fit_that_ends_in_its_shared_iterations_is_a_mixture_too() -> None:
    X = blobs(14)
    model = fit(X, covariance_type="diag", n_shared=10, max_iter=3)
    assert (model.n_iter_, model.covariances_.shape) == (3, (6, 3))
    assert np.ptp(model.covariances_) == 0
    stopped = fit(X, covariance_type="diag", callbacks=lambda _: True)
    assert (stopped.n_iter_, stopped.covariances_.shape) == (1, (6, 3))


# ------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"covariance_type": "full"},
            "covariance_type='full' is not offered: use sklearn.mixture.GaussianMixture",
        ),
        (
            {"covariance_type": "tied"},
            "covariance_type='tied' is not offered: use sklearn.mixture.GaussianMixture",
        ),
        ({"covariance_type": "round"}, "covariance_type='round'"),
        ({"mixing": "mixed"}, "mixing='mixed'"),
        ({"n_shared": -1}, "n_shared=-1"),
        ({"reassign": "yes"}, "reassign='yes'"),
        ({"covariance_type": "diag", "search": "pointwise"}, "search='pointwise' is the paper's"),
        ({"mixing": "learned", "search": "pointwise"}, "use search='blocked'"),
    ],
)
def test_what_is_not_offered_is_said(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        fit(blobs(0), **options)


def test_streams_are_refused_for_own_variances() -> None:
    with pytest.raises(ValueError, match="partial_fit is not offered yet for covariance_type='diag'"):
        VCGMM(6, covariance_type="diag").partial_fit(blobs(0))


# ----------------------------------------------------------------------------------------- all rows, many clusters


@pytest.mark.parametrize("kind", ["spherical", "diag"])
def test_a_pass_of_refinement_is_an_em_step_on_all_rows(kind: str) -> None:
    X, C = blobs(20), 6
    before = fit(X, covariance_type=kind, coreset_size=300, truncation=C)
    after = fit(X, covariance_type=kind, coreset_size=300, truncation=C, refine=1)
    v = np.broadcast_to(before.covariances_.reshape(C, -1), X[:C].shape)
    joints = reference.log_joint(X, before.means_, v, before.weights_)
    K = np.tile(np.arange(C), (len(X), 1))
    means, variances, weights = reference.m_step(X, np.ones(len(X)), reference.responsibilities(joints, K), kind)
    assert after.refine_bounds_ == pytest.approx([reference.bound(joints, np.ones(len(X)), K)], rel=digits(1e-9))
    np.testing.assert_allclose(after.means_, means, atol=10 * digits(1e-7))
    np.testing.assert_allclose(
        after.covariances_, variances[:, 0] if kind == "spherical" else variances, rtol=10 * digits(1e-6)
    )
    np.testing.assert_allclose(after.weights_, weights, atol=digits(1e-7))
    np.testing.assert_array_equal(after.lower_bounds_, before.lower_bounds_)


@pytest.mark.parametrize("kind", KINDS)
def test_refinement_raises_the_likelihood_of_all_rows(kind: str) -> None:
    X = np.random.default_rng(1).permutation(blobs(21, C=20, D=4, n=300)).astype(np.float32)
    weights = np.random.default_rng(2).uniform(0.5, 2, size=len(X))
    options = {"n_components": 30, "covariance_type": kind, "coreset_size": 1000, "random_state": 0}
    plain = VCGMM(**options).fit(X, sample_weight=weights)
    refined = VCGMM(**options, refine=4).fit(X, sample_weight=weights)
    assert (np.diff(refined.refine_bounds_) > 0).all()
    assert refined.score(X, sample_weight=weights) > plain.score(X, sample_weight=weights) + 0.01
    two = VCGMM(**options, refine=4, n_threads=2).fit(X, sample_weight=weights)
    np.testing.assert_array_equal(two.means_, VCGMM(**options, refine=4, n_threads=1).fit(X, None, weights).means_)


@pytest.mark.parametrize("kind", ["spherical", "diag"])
def test_approximate_predictions_mostly_are_the_exact_ones(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prediction, "FEW_COMPONENTS", 16)
    X = blobs(22, C=60, D=5, n=60)
    model = fit(X, n_components=300, covariance_type=kind, max_iter=8)
    exact, near = model.predict(X), model.predict(X, method="approximate")
    assert (exact == near).mean() > 0.97
    assert near.dtype == np.int32
    assert model.active_[near].all()
