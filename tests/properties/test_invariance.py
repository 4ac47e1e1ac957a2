"""What must not change a fit, from given means and for a fixed number of iterations."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from digits import digits
from vcgmm import VCGMM

N, D, C = 120, 3, 8
seeds = st.integers(0, 10_000)
SEARCHES = pytest.mark.parametrize("search", ["blocked", "pointwise"])


def fit(X: np.ndarray, init: np.ndarray, sample_weight: np.ndarray | None = None, **changes: Any) -> VCGMM:
    """A few iterations on all points, with all clusters in every search."""
    options = {"search": "blocked", "truncation": C, "n_neighbors": C, "n_candidates": C, "max_iter": 4}
    model = VCGMM(len(init), init=init, coreset_size=None, tol=0.0, random_state=0, **{**options, **changes})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, sample_weight=sample_weight)


def data(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Points and initial means."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D)) + 3 * rng.integers(0, 2, (N, D))
    return X, X[rng.permutation(N)[:C]] + 0.01


def assert_same(model: VCGMM, other: VCGMM, rtol: float = 1e-7) -> None:
    rtol = digits(rtol)
    np.testing.assert_allclose(model.means_, other.means_, rtol=0, atol=rtol * np.abs(other.means_).max())
    assert model.variance_ == pytest.approx(other.variance_, rel=rtol)
    np.testing.assert_allclose(model.lower_bounds_, other.lower_bounds_, rtol=rtol)
    np.testing.assert_allclose(model.counts_, other.counts_, atol=10 * rtol * other.counts_.max())


# --------------------------------------------------------------------------------------- shift, scale, permutation


@SEARCHES
@given(seed=seeds, offset=st.floats(-1e4, 1e4))
def test_shifting_the_data_shifts_the_means(search: str, seed: int, offset: float) -> None:
    X, init = data(seed)
    model, shifted = fit(X, init, search=search), fit(X + offset, init + offset, search=search)
    shifted.means_ = shifted.means_ - offset
    assert_same(shifted, model)


@pytest.mark.parametrize("truncation", [2, C])
@given(seed=seeds, exponent=st.integers(-40, 40))
def test_scaling_by_a_power_of_two_changes_no_digit(truncation: int, seed: int, exponent: int) -> None:
    X, init = data(seed)
    factor = 2.0**exponent
    model, scaled = (fit(a * X, a * init, truncation=truncation) for a in (1.0, factor))
    np.testing.assert_array_equal(scaled.means_, factor * model.means_)
    assert scaled.variance_ == factor**2 * model.variance_
    np.testing.assert_array_equal(scaled.counts_, model.counts_)


@SEARCHES
@given(seed=seeds, factor=st.floats(1e-6, 1e6))
def test_scaling_the_data_scales_the_means(search: str, seed: int, factor: float) -> None:
    X, init = data(seed)
    model, scaled = fit(X, init, search=search), fit(factor * X, factor * init, search=search)
    scaled.means_ = scaled.means_ / factor
    scaled.variance_ = scaled.variance_ / factor**2
    scaled.lower_bounds_ = scaled.lower_bounds_ + N * D * np.log(factor)
    assert_same(scaled, model)


@SEARCHES
@given(seed=seeds)
def test_the_order_of_the_rows_does_not_matter(search: str, seed: int) -> None:
    X, init = data(seed)
    order = np.random.default_rng(seed + 1).permutation(N)
    assert_same(fit(X[order], init, search=search), fit(X, init, search=search))


@given(seed=seeds)
def test_the_order_of_the_features_does_not_matter(seed: int) -> None:
    X, init = data(seed)
    model, reordered = fit(X, init), fit(X[:, ::-1], init[:, ::-1])
    reordered.means_ = reordered.means_[:, ::-1]
    assert_same(reordered, model)


@given(seed=seeds)
def test_the_order_of_the_means_does_not_matter(seed: int) -> None:
    X, init = data(seed)
    model, reordered = fit(X, init), fit(X, init[::-1])
    reordered.means_ = reordered.means_[::-1]
    reordered.counts_ = reordered.counts_[::-1]
    assert_same(reordered, model)


# --------------------------------------------------------------------------------------------------------- weights


@SEARCHES
@given(seed=seeds)
def test_weight_w_counts_like_w_copies(search: str, seed: int) -> None:
    X, init = data(seed)
    copies = np.random.default_rng(seed + 1).integers(0, 4, N)
    weighted = fit(X, init, copies.astype(np.float64), search=search)
    assert_same(weighted, fit(np.repeat(X, copies, axis=0), init, search=search))


@SEARCHES
@given(seed=seeds, factor=st.floats(1e-3, 1e3))
def test_scaling_the_weights_scales_counts_and_bound_alone(search: str, seed: int, factor: float) -> None:
    X, init = data(seed)
    weights = np.random.default_rng(seed + 1).uniform(0.5, 3.0, N)
    model, scaled = fit(X, init, weights, search=search), fit(X, init, factor * weights, search=search)
    scaled.counts_ = scaled.counts_ / factor
    scaled.lower_bounds_ = scaled.lower_bounds_ / factor
    assert_same(scaled, model)


@given(seed=seeds)
def test_equal_weights_are_no_weights(seed: int) -> None:
    X, init = data(seed)
    assert_same(fit(X, init, np.ones(N)), fit(X, init), rtol=1e-12)


# ----------------------------------------------------------------------------------------- searches, types, theory


@given(seed=seeds)
def test_both_searches_agree_where_nothing_is_truncated(seed: int) -> None:
    X, init = data(seed)
    assert_same(fit(X, init, search="pointwise"), fit(X, init, search="blocked"))


@given(
    seed=seeds,
    search=st.sampled_from(["blocked", "pointwise"]),
    truncation=st.integers(1, C),
    n_neighbors=st.integers(1, C),
    n_candidates=st.integers(1, C),
    n_explore=st.integers(0, 3),
)
def test_the_bound_never_falls_and_lies_below_the_likelihood(seed: int, **changes: Any) -> None:
    X, init = data(seed)
    model = fit(X, init, max_iter=8, **changes)
    slack = digits(1e-9) * np.abs(model.lower_bounds_)
    assert (np.diff(model.lower_bounds_) >= -slack[1:]).all()
    assert model.lower_bound_ <= model.score_samples(X).sum() + slack[-1]
    assert model.counts_.sum() == pytest.approx(N, rel=digits(1e-6))


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float16])
def test_narrow_types_are_fitted_as_the_floats_they_hold(dtype: type) -> None:
    X = np.random.default_rng(0).integers(0, 200, (N, D)).astype(dtype)
    init = X[:C].astype(np.float64)
    model, wide = fit(X, init), fit(X.astype(np.float32), init)
    np.testing.assert_allclose(model.means_, wide.means_, rtol=10 * digits(0.0))
    assert model.lower_bound_ == pytest.approx(wide.lower_bound_, rel=digits(0.0), abs=0.0)


@SEARCHES
def test_an_offset_in_float32_costs_nothing(search: str) -> None:
    X, _ = data(0)
    far = (X + 1e6).astype(np.float32)
    centred = far.astype(np.float64) - 1e6
    init = centred[:C]
    model, exact = fit(far, init + 1e6, search=search), fit(centred, init, search=search)
    model.means_ = model.means_ - 1e6
    assert_same(model, exact, rtol=1e-4)


@SEARCHES
@pytest.mark.parametrize("factor", [1e-300, 1e-50, 1e-9, 1e9, 1e100, 1e300])
def test_the_scale_of_weights_costs_no_digits(search: str, factor: float) -> None:
    X, init = data(7)
    X = X.astype(np.float32)
    weights = np.random.default_rng(7).uniform(0.5, 2.0, N)
    plain = fit(X, init, weights, search=search, truncation=3)
    scaled = fit(X, init, weights * factor, search=search, truncation=3)
    np.testing.assert_allclose(scaled.means_, plain.means_, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(scaled.counts_ / factor, plain.counts_, rtol=1e-5)
    np.testing.assert_allclose(scaled.lower_bounds_ / factor, plain.lower_bounds_, rtol=1e-5)
    np.testing.assert_allclose(scaled.coreset_.weights / factor, weights, rtol=1e-12)


def test_a_single_weight_may_be_as_large_as_a_float_can_be() -> None:
    X, _ = data(8)
    weights = np.zeros(N)
    weights[3] = 1.7e308
    model = VCGMM(1, random_state=0).fit(X, sample_weight=weights)
    np.testing.assert_allclose(model.means_[0], X[3])
    assert model.counts_[0] == pytest.approx(1.7e308)
    assert model.converged_  # though F itself is beyond what a float can hold
