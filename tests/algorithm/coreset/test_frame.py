from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcgmm.algorithm.coreset.frame import Frame, Moments, moments
from vcgmm.data import ArrayRows
from vcgmm.parallel import Workers

FLOAT32 = np.dtype(np.float32)


def silent(amount: int) -> None:
    """No progress is told."""


def moments_of(X: np.ndarray, weights: np.ndarray | None = None, n_threads: int = 1) -> Moments:
    with Workers(n_threads) as workers:
        return moments(ArrayRows(X), weights, workers, silent)


@pytest.mark.parametrize("weighted", [False, True])
def test_mean_and_variance_are_weighted(weighted: bool) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    weights = rng.uniform(0, 4, 200) if weighted else None
    facts = moments_of(X, weights)
    mean = np.average(X, axis=0, weights=weights)
    deviations = ((X - mean) ** 2).sum(axis=1)
    assert facts.total_weight == pytest.approx(200 if weights is None else weights.sum())
    np.testing.assert_allclose(facts.mean, mean, atol=1e-14)
    assert facts.n_usable == 200
    assert facts.total_variance == pytest.approx(np.average(deviations, weights=weights))


def test_moments_of_many_blocks_do_not_depend_on_the_number_of_threads() -> None:
    X = np.random.default_rng(1).normal(size=(70_000, 10)).astype(np.float32)
    assert ArrayRows(X).n_blocks > 2
    alone, together = moments_of(X), moments_of(X, n_threads=3)
    np.testing.assert_array_equal(alone.mean, together.mean)
    assert alone.total_variance == together.total_variance
    np.testing.assert_allclose(alone.mean, X.mean(axis=0, dtype=np.float64), atol=1e-8)


def test_the_pass_tells_how_many_rows_it_reads() -> None:
    told: list[int] = []
    moments(ArrayRows(np.ones((30, 2))), None, Workers(1), told.append)
    assert sum(told) == 30


@pytest.mark.parametrize("weighted", [False, True])
def test_the_variance_of_many_blocks_loses_no_digits(weighted: bool) -> None:
    # Blocks far apart, each of little extent: where squares are subtracted, nothing is left of it.
    rng = np.random.default_rng(8)
    X = np.repeat(rng.normal(size=(40, 3)) * 1e6, 2000, axis=0) + rng.normal(size=(80_000, 3)) * 1e-3
    weights = rng.uniform(0, 2, len(X)) * (rng.random(len(X)) < 0.9) if weighted else None
    facts = moments_of(np.repeat(X, 10, axis=1), None if weights is None else weights)
    wide = np.repeat(X, 10, axis=1).astype(np.longdouble)
    mean = np.average(wide, axis=0, weights=weights)
    variance = np.average(((wide - mean) ** 2).sum(axis=1), weights=weights)
    assert facts.total_variance == pytest.approx(float(variance), rel=1e-13)
    np.testing.assert_allclose(facts.mean, mean.astype(np.float64), rtol=1e-12)
    tight = moments_of(X[:2000] + 1e6)
    shifted = X[:2000] + 1e6
    expected = ((shifted - shifted.mean(axis=0)) ** 2).sum(axis=1).mean()
    assert tight.total_variance == pytest.approx(expected, rel=1e-9)


def test_an_offset_costs_no_digits() -> None:
    X = (1e6 + np.random.default_rng(2).normal(size=(500, 4))).astype(np.float32)
    facts = moments_of(X)
    exact = X.astype(np.float64) - X.astype(np.float64).mean(axis=0)
    assert facts.total_variance == pytest.approx((exact**2).sum(axis=1).mean(), rel=1e-9)
    frame = facts.frame(FLOAT32)
    np.testing.assert_allclose(frame.enter(X), exact * frame.scale, rtol=1e-6, atol=1e-7)


@given(st.floats(-60, 60), st.floats(1, 2))
def test_the_scale_is_a_power_of_two_that_makes_features_vary_by_about_one(exponent: float, factor: float) -> None:
    X = np.random.default_rng(3).normal(size=(100, 3)) * factor * 10.0**exponent
    frame = moments_of(X).frame(FLOAT32)
    assert math.frexp(frame.scale)[0] == 0.5
    spread = np.sqrt(np.mean((frame.enter(X, np.dtype(np.float64))) ** 2))
    assert 2**-0.51 < spread < 2**0.51


def test_leaving_undoes_entering() -> None:
    X = np.random.default_rng(4).normal(5, 100, size=(50, 3))
    frame = moments_of(X).frame(np.dtype(np.float64))
    np.testing.assert_allclose(frame.leave(frame.enter(X)), X, rtol=1e-13)


def test_equal_points_have_a_frame_too() -> None:
    facts = moments_of(np.full((5, 2), 0.25))
    assert facts.total_variance == 0.0
    assert facts.frame(FLOAT32).scale == 1.0


def test_the_log_of_the_scale_is_what_a_density_gains_per_dimension() -> None:
    assert Frame(np.zeros(1), 8.0, FLOAT32).log_scale == pytest.approx(math.log(8))


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float16, np.int64])
def test_any_real_type_enters_without_loss(dtype: type) -> None:
    X = np.random.default_rng(5).integers(0, 100, (20, 3)).astype(dtype)
    frame = Frame(np.full(3, 0.5), 2.0, FLOAT32)
    np.testing.assert_array_equal(frame.enter(X), (X.astype(np.float64) - 0.5) * 2)


@pytest.mark.parametrize(("value", "kind"), [(np.nan, "NaN"), (-np.inf, "infinity")])
def test_values_that_are_not_finite_are_named(value: float, kind: str) -> None:
    X = np.zeros((10, 3), np.float32)
    X[7, 1] = value
    with pytest.raises(ValueError, match=f"contains {kind}.*row 7, feature 1"):
        moments_of(X)


def test_squares_that_overflow_float64_are_refused() -> None:
    with pytest.raises(ValueError, match="overflow"), np.errstate(over="ignore"):
        moments_of(np.array([[1e200], [-1e200]]))


def test_squares_that_underflow_float64_are_refused() -> None:
    with pytest.raises(ValueError, match="underflow"):
        moments_of(np.array([[1e-200], [-1e-200]]))


def test_rows_without_weight_do_not_spread_the_others() -> None:
    facts = moments_of(np.array([[2.0], [5.0]]), np.array([1.0, 0.0]))
    assert facts.mean.tolist() == [2.0]
    assert facts.total_variance == 0.0


@pytest.mark.parametrize(
    ("offset", "spread", "light"),
    [(0.0, 1.0, True), (0.9, 1.0, True), (3.0, 1.0, False), (0.0, 1e-8, False), (0.0, 1e8, False)],
)
def test_rows_about_the_origin_that_vary_by_about_one_may_stay_in_their_coordinates(
    offset: float, spread: float, light: bool
) -> None:
    X = np.random.default_rng(0).normal(offset, 1.0, size=(4000, 3)) * spread
    with Workers(1) as workers:
        found = moments(ArrayRows(X), None, workers, lambda _: None)
    assert found.light_frame(np.dtype(np.float32)).changes_nothing == light
    assert not found.frame(np.dtype(np.float32)).changes_nothing
    if not light:
        frames = found.light_frame(np.dtype(np.float32)), found.frame(np.dtype(np.float32))
        np.testing.assert_array_equal(*(frame.origin for frame in frames))
        assert frames[0].scale == frames[1].scale
