"""metric="cosine": rows and means on the unit sphere, in every method."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.pipeline import Pipeline

import vcgmm
from digits import digits
from vcgmm import VCGMM, Coreset, lightweight_coreset
from vcgmm.algorithm import reference

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

rng = np.random.default_rng(0)
DIRECTIONS = rng.normal(size=(25, 9))
LENGTHS = rng.lognormal(sigma=2, size=(1200, 1))
X = (DIRECTIONS[rng.integers(25, size=1200)] + 0.5 * rng.normal(size=(1200, 9))) * LENGTHS
WEIGHTS = rng.uniform(0, 3, size=1200)


def by_hand(rows: np.ndarray) -> np.ndarray:
    wide = rows.astype(np.float64)
    return wide / np.linalg.norm(wide, axis=1, keepdims=True)


U = by_hand(X)


def fit(rows: Any = X, weights: Any = None, **options: Any) -> VCGMM:
    defaults = {"n_components": 25, "metric": "cosine", "random_state": 0}
    return VCGMM(**{**defaults, **options}).fit(rows, sample_weight=weights)


# ------------------------------------------------------------------------------------------------------ the fit


@pytest.mark.parametrize("search", ["blocked", "pointwise"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("relaxation", [1.0, 1.8])
def test_the_bound_never_falls_and_means_have_length_one(search: str, dtype: str, relaxation: float) -> None:
    model = fit(
        search=search, dtype=dtype, relaxation=relaxation, n_components=40, truncation=3, n_candidates=8, tol=0,
        max_iter=25, init="afkmc2",
    )  # fmt: skip
    assert (np.diff(model.lower_bounds_) >= -digits(1e-7) * np.abs(model.lower_bounds_).max()).all()
    np.testing.assert_allclose(np.linalg.norm(model.means_, axis=1), 1.0, rtol=1e-12)


def test_with_all_clusters_searched_it_is_exact_em_on_the_sphere() -> None:
    start, C, D = U[:6], 6, U.shape[1]
    model = fit(
        init=X[:6],
        n_components=C,
        truncation=C,
        relaxation=1,
        tol=0,
        max_iter=5,
        coreset_size=None,
        n_candidates=C,
    )
    mu, sigma2, bounds = start, reference.quantization_error(U, np.ones(len(U)), start) / (D * len(U)), []
    for _ in range(5):
        joints = reference.log_joint(U, mu, sigma2)
        bounds.append(logsumexp(joints, axis=1).sum())
        s = np.exp(joints - logsumexp(joints, axis=1, keepdims=True))
        mu, sigma2 = reference.sphere_m_step(U, np.ones(len(U)), s, mu)
    np.testing.assert_allclose(model.lower_bounds_, bounds, rtol=digits(1e-9))
    np.testing.assert_allclose(model.means_, mu, atol=digits(1e-6))
    assert model.variance_ == pytest.approx(sigma2, rel=digits(1e-6))


@pytest.mark.parametrize("options", [{}, {"coreset_size": 400}, {"refine": 2, "coreset_size": 400}, {"n_init": 2}])
def test_it_is_the_same_as_scaling_by_hand(options: dict[str, Any]) -> None:
    model, scaled = fit(X, WEIGHTS, **options), fit(U, WEIGHTS, **options)
    np.testing.assert_allclose(model.means_, scaled.means_, atol=1e-9)
    np.testing.assert_allclose(model.lower_bounds_, scaled.lower_bounds_, rtol=1e-9)
    np.testing.assert_array_equal(model.predict(X), scaled.predict(U))
    assert model.quantization_error(X, WEIGHTS) == pytest.approx(scaled.quantization_error(U, WEIGHTS), rel=1e-9)


def test_lengths_of_rows_change_nothing() -> None:
    powers = 2.0 ** rng.integers(-40, 40, size=(1200, 1))  # exact, so the same bits
    one, other = fit(X), fit(X * powers)
    np.testing.assert_array_equal(one.means_, other.means_)
    np.testing.assert_array_equal(one.predict(X), other.predict(X * powers))
    np.testing.assert_array_equal(one.score_samples(X), one.score_samples(X * powers))


def test_it_finds_directions_that_differ_in_length() -> None:
    """Clusters that only their directions tell apart."""
    angles = 0.1 + rng.uniform(-0.05, 0.05, size=3000) + rng.integers(6, size=3000)
    rows = np.column_stack([np.cos(angles), np.sin(angles)]) * rng.uniform(0.1, 100, size=(3000, 1))
    model = fit(rows, n_components=6)
    found = np.sort(np.mod(np.arctan2(model.means_[:, 1], model.means_[:, 0]), 2 * np.pi))
    np.testing.assert_allclose(found, 0.1 + np.arange(6), atol=0.01)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.uint8, np.int64])
def test_rows_of_any_type(dtype: type) -> None:
    rows = (np.abs(U) * 100 + 1).astype(dtype)
    model = fit(rows)
    assert model.coreset_.points.dtype == np.float32
    scaled = fit(by_hand(rows).astype(np.float32))
    np.testing.assert_allclose(model.means_, scaled.means_, atol=10 * digits(1e-5))
    assert model.quantization_error(rows) == pytest.approx(scaled.quantization_error(by_hand(rows)), rel=1e-3)


def test_a_start_in_few_dimensions_ends_on_the_sphere() -> None:
    wide = rng.normal(size=(12, 300))[rng.integers(12, size=2000)] + 0.3 * rng.normal(size=(2000, 300))
    model = fit(wide.astype(np.float32), n_components=12)
    np.testing.assert_allclose(np.linalg.norm(model.means_, axis=1), 1.0, rtol=1e-12)
    assert (np.diff(model.lower_bounds_) >= -1e-6 * abs(model.lower_bound_)).all()


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    one, two = (fit(X.astype(np.float32), n_threads=n) for n in (1, 2))
    np.testing.assert_array_equal(one.means_, two.means_)
    np.testing.assert_array_equal(one.lower_bounds_, two.lower_bounds_)


# -------------------------------------------------------------------------------------------- where rows come from


def test_files_and_arrays_give_the_same_bits(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", X)
    rows = vcgmm.open(tmp_path / "rows.npy")
    for options in ({"coreset_size": 300}, {"coreset_size": 300, "refine": 1}):
        one, other = fit(X, **options), fit(rows, **options)
        np.testing.assert_array_equal(one.means_, other.means_)
        np.testing.assert_array_equal(one.predict(X), other.predict(rows))
        assert one.quantization_error(X) == one.quantization_error(rows)


def test_weights_of_a_file_count(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", X)
    rows = vcgmm.open(tmp_path / "rows.npy", weights=WEIGHTS)
    one, other = fit(X, WEIGHTS), fit(rows)
    np.testing.assert_allclose(one.means_, other.means_, atol=1e-12)
    assert one.score(X, sample_weight=WEIGHTS) == pytest.approx(one.score(rows), rel=1e-12)


def test_coresets() -> None:
    coreset = lightweight_coreset(X, 800, random_state=0)
    model = fit(coreset)
    np.testing.assert_allclose(np.linalg.norm(model.coreset_.points, axis=1), 1.0)
    np.testing.assert_array_equal(model.coreset_.indices, coreset.indices)
    again = fit(Coreset(by_hand(coreset.points), coreset.weights))
    np.testing.assert_allclose(model.means_, again.means_, atol=1e-9)


@pytest.mark.parametrize("as_file", [False, True])
def test_a_stream_is_followed(tmp_path: Path, as_file: bool) -> None:
    rows = np.tile(X, (4, 1)) + 0.01 * rng.normal(size=(4800, 9))
    model = VCGMM(25, metric="cosine", random_state=0, coreset_size=500)
    for i, block in enumerate(np.split(rows, 12)):
        if as_file:
            np.save(tmp_path / f"{i}.npy", block)
        model.partial_fit(vcgmm.open(tmp_path / f"{i}.npy") if as_file else block)
        np.testing.assert_allclose(np.linalg.norm(model.means_, axis=1), 1.0, rtol=1e-12)
    whole = fit(rows)
    assert model.quantization_error(rows) < 1.1 * whole.quantization_error(rows)
    assert model.variance_ == pytest.approx(whole.variance_, rel=0.25)
    np.testing.assert_allclose(np.linalg.norm(model.coreset_.points, axis=1), 1.0)


def test_a_stream_keeps_its_metric() -> None:
    model = VCGMM(5, random_state=0).partial_fit(X)
    with pytest.raises(ValueError, match=r"metric='cosine', but the rows .* are those of metric='euclidean'"):
        model.set_params(metric="cosine").partial_fit(X)


# ----------------------------------------------------------------------------------------------------- predictions


@pytest.fixture(scope="module")
def model() -> VCGMM:
    return fit(compute_labels=True)


def test_distances_are_those_on_the_sphere(model: VCGMM) -> None:
    cosines = U @ model.means_.T
    distances, ids = model.nearest(X, k=3)
    order = np.argsort(-cosines, axis=1)[:, :3]
    np.testing.assert_array_equal(ids, order)
    np.testing.assert_allclose(
        distances**2, 2 * (1 - np.take_along_axis(cosines, order, axis=1)), atol=digits(1e-12)
    )
    np.testing.assert_array_equal(model.predict(X), order[:, 0])
    np.testing.assert_array_equal(model.labels_, order[:, 0])
    error = 2 * (1 - cosines.max(axis=1)).sum()
    assert model.quantization_error(X) == pytest.approx(error, rel=digits(1e-9))
    assert model.inertia_ == pytest.approx(error, rel=digits(1e-9))
    weighted = 2 * (WEIGHTS * (1 - cosines.max(axis=1))).sum()
    assert model.quantization_error(X, WEIGHTS) == pytest.approx(weighted, rel=digits(1e-9))


def test_densities_and_posteriors_are_those_of_scaled_rows(model: VCGMM) -> None:
    joints = reference.log_joint(U, model.means_, model.variance_)
    expected = logsumexp(joints, axis=1)
    np.testing.assert_allclose(model.score_samples(X), expected, rtol=digits(1e-9), atol=digits(0.0))
    assert model.score(X) == pytest.approx(expected.mean(), rel=digits(1e-9))
    # Up to a factor, the same for all rows, they are von Mises-Fisher densities of concentration 1 / sigma^2.
    fisher = logsumexp(U @ model.means_.T / model.variance_, axis=1)
    assert np.ptp(model.score_samples(X) - fisher) < 10 * digits(1e-9)
    top = np.sort(joints, axis=1)[:, -5:]
    shares = np.exp(top - logsumexp(top, axis=1, keepdims=True))
    np.testing.assert_allclose(
        model.predict_proba(X).max(axis=1).toarray().ravel(), shares.max(axis=1), rtol=digits(1e-9)
    )
    n_parameters = 25 * 8 + 1
    assert model.aic(X) == pytest.approx(2 * n_parameters - 2 * model.score_samples(X).sum())


def test_samples_have_length_one(model: VCGMM) -> None:
    drawn, labels = model.sample(2000)
    np.testing.assert_allclose(np.linalg.norm(drawn, axis=1), 1.0)
    assert (model.predict(drawn) == labels).mean() > 0.9


def test_the_metric_of_the_fit_is_what_counts(model: VCGMM) -> None:
    changed = fit().set_params(metric="euclidean")
    np.testing.assert_array_equal(changed.predict(X), model.predict(X))


def test_files_of_models(model: VCGMM, tmp_path: Path) -> None:
    model.save(tmp_path / "model.vcgmm")
    loaded = VCGMM.load(tmp_path / "model.vcgmm")
    assert loaded.metric == "cosine"
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.score_samples(X), model.score_samples(X))
    assert clone(loaded).get_params()["metric"] == "cosine"


def test_a_warm_start_goes_on(model: VCGMM) -> None:
    euclidean = VCGMM(25, random_state=0).fit(U)
    euclidean.set_params(metric="cosine", warm_start=True, tol=1e-6).fit(X)
    np.testing.assert_allclose(np.linalg.norm(euclidean.means_, axis=1), 1.0, rtol=1e-12)
    assert euclidean.quantization_error(X) < 1.1 * model.quantization_error(X)


# ------------------------------------------------------------------------------------------------- other libraries


def test_for_scikit_learn_it_comes_with_the_scaling(model: VCGMM) -> None:
    theirs = model.to_sklearn()
    assert isinstance(theirs, Pipeline)
    np.testing.assert_array_equal(theirs.predict(X), model.predict(X))
    np.testing.assert_allclose(
        theirs.score_samples(X), model.score_samples(X), rtol=digits(1e-8), atol=digits(0.0)
    )


def test_for_faiss_it_goes_by_inner_products(model: VCGMM) -> None:
    faiss = pytest.importorskip("faiss")
    index = model.to_faiss()
    assert index.metric_type == faiss.METRIC_INNER_PRODUCT
    rows = X.astype(np.float32)
    _, ids = index.search(rows, 1)
    assert (ids[:, 0] == model.predict(X)).mean() > 0.999  # float32 there
    lists = model.to_faiss("ivf")
    lists.add(by_hand(X).astype(np.float32))
    assert lists.ntotal == len(X)
    scores, _ = lists.search(by_hand(X[:5]).astype(np.float32), 1)
    np.testing.assert_allclose(scores[:, 0], 1.0, atol=1e-5)


def test_pictures(model: VCGMM) -> None:
    pytest.importorskip("matplotlib").use("agg")
    from vcgmm.plotting import plot_map

    ax = plot_map(model, X)
    (low_x, high_x), (low_y, high_y) = ax.get_xlim(), ax.get_ylim()
    assert max(high_x - low_x, high_y - low_y) < 3  # of the sphere, not of the rows as they were


# ------------------------------------------------------------------------------------------------------- bad input


def test_rows_of_zeros_are_named_wherever_they_come() -> None:
    bad = X.copy()
    bad[77] = 0
    message = re.escape("X has a row of zeros, row 77, which has no direction")
    unfitted, fitted = VCGMM(5, metric="cosine", random_state=0), fit(n_components=5)
    for call in (
        unfitted.fit,
        unfitted.partial_fit,
        fitted.predict,
        fitted.score,
        fitted.quantization_error,
        fitted.predict_proba,
        fitted.nearest,
    ):
        with pytest.raises(ValueError, match=message):
            call(bad)
    with pytest.raises(ValueError, match="init has a row of zeros, row 2"):
        fit(n_components=5, init=np.vstack([X[:2], np.zeros((1, 9)), X[3:5]]))


@pytest.mark.parametrize(
    "other", [{"covariance_type": "spherical"}, {"covariance_type": "diag"}, {"mixing": "learned"}]
)
def test_other_mixtures_are_refused(other: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"metric='cosine' is for one variance and equal weights.*'euclidean'"):
        fit(**other)


def test_an_unknown_metric_is_refused() -> None:
    with pytest.raises(ValueError, match=r"metric='manhattan' is not known: choose from 'euclidean', 'cosine'"):
        fit(metric="manhattan")


def test_rows_that_differ_in_length_alone_are_too_few() -> None:
    rows = np.outer(np.arange(1, 101), [1.0, 2.0])
    with pytest.raises(ValueError, match=r"distinct point\(s\) of positive weight"):
        fit(rows, n_components=90)
