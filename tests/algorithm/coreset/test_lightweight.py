from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcgmm.algorithm import reference
from vcgmm.algorithm.coreset.drawing import Probabilities
from vcgmm.algorithm.coreset.frame import Moments, moments
from vcgmm.algorithm.coreset.lightweight import (
    Coreset,
    all_rows,
    count_distinct,
    in_memory,
    lightweight_coreset,
    row_hashes,
)
from vcgmm.data import ArrayRows, Selection
from vcgmm.parallel import Workers


def moments_of(X: np.ndarray, weights: np.ndarray | None = None) -> Moments:
    return moments(ArrayRows(X), weights, Workers(1), lambda _: None)


def coreset_of(
    X: np.ndarray, size: int, weights: np.ndarray | None = None, seed: int = 0, n_distinct: int = 1
) -> Coreset:
    rng = np.random.default_rng(seed)
    facts = moments_of(X, weights)
    return lightweight_coreset(ArrayRows(X), facts, weights, size, rng, n_distinct, Workers(1), lambda _: None)


def probabilities_of(X: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    facts = moments_of(X, weights)
    deviations = ((X - facts.mean) ** 2).sum(axis=1)
    return Probabilities.of(facts, facts.spread)(deviations, weights)


def standard_errors_off(values: np.ndarray, expected: float) -> float:
    """How many standard errors their mean lies from what is expected."""
    return abs(values.mean() - expected) / (values.std(ddof=1) / np.sqrt(len(values)))


# --------------------------------------------------------------------------------------------------- probabilities


@given(st.integers(0, 1000), st.booleans())
def test_probabilities_are_the_reference(seed: int, weighted: bool) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(3.0, 2.0, size=(25, 3))
    weights = rng.uniform(0, 5, 25) * (rng.random(25) < 0.8) if weighted else None
    probabilities = probabilities_of(X, weights)
    expected = reference.coreset_probabilities(X, np.ones(25) if weights is None else weights)
    np.testing.assert_allclose(probabilities, expected, rtol=1e-12)
    assert probabilities.sum() == pytest.approx(1.0)


def test_equal_points_are_drawn_by_weight_alone() -> None:
    weights = np.array([1.0, 2.0, 5.0])
    X = np.full((3, 2), 0.5)
    np.testing.assert_allclose(probabilities_of(X, weights), weights / 8)
    assert coreset_of(X, 50, weights).weights.sum() == pytest.approx(8.0)


def test_weight_w_has_the_probability_of_w_copies_and_stands_for_as_much() -> None:
    rng = np.random.default_rng(0)
    X, copies = rng.normal(size=(20, 3)), rng.integers(1, 5, 20)
    weights = copies.astype(np.float64)
    once = probabilities_of(X, weights)
    repeated = probabilities_of(np.repeat(X, copies, axis=0))
    np.testing.assert_allclose(np.add.reduceat(repeated, np.cumsum(copies) - copies), once, rtol=1e-12)
    firsts = np.cumsum(copies) - copies
    np.testing.assert_allclose(
        reference.coreset_weights(np.ones(20), repeated[firsts], 7), reference.coreset_weights(weights, once, 7)
    )


# --------------------------------------------------------------------------------------------------- what is drawn


def test_weights_are_w_over_n_q_times_the_number_of_draws() -> None:
    rng = np.random.default_rng(1)
    X, weights = rng.normal(size=(60, 2)), rng.uniform(0.5, 2.0, 60)
    coreset = coreset_of(X, 100, weights)
    q = probabilities_of(X, weights)
    draws = coreset.weights / reference.coreset_weights(weights, q, 100)[coreset.indices]
    np.testing.assert_allclose(draws, draws.round(), atol=1e-9)
    assert draws.round().sum() == 100
    assert draws.max() > 1.5
    assert (np.diff(coreset.indices) > 0).all()
    np.testing.assert_array_equal(coreset.points, X[coreset.indices])
    assert len(coreset) == len(coreset.indices)


@pytest.mark.parametrize("kind", ["float32", "uint8", "Fortran", "mapped"])
def test_rows_of_an_array_in_memory_are_not_copied_before_they_are_asked_for(
    kind: str, workers: Workers, tmp_path: Path
) -> None:
    X = np.random.default_rng(7).integers(0, 200, (5000, 3))
    X = np.asfortranarray(X) if kind == "Fortran" else X.astype("uint8" if kind == "mapped" else kind)
    if kind == "mapped":
        np.save(tmp_path / "X.npy", X)
        X = np.load(tmp_path / "X.npy", mmap_mode="r")
    coreset = coreset_of(X, 3000)
    assert isinstance(coreset.source, Selection) == (kind != "mapped")
    held = in_memory(coreset, workers)
    assert held.source is held.points
    np.testing.assert_array_equal(held.points, X[coreset.indices])
    assert held.points.dtype == X.dtype
    assert in_memory(held, workers) is held


def test_points_keep_their_dtype() -> None:
    X = np.random.default_rng(2).integers(0, 255, (50, 3)).astype(np.uint8)
    assert coreset_of(X, 10).points.dtype == np.uint8


@pytest.mark.parametrize("weighted", [False, True])
def test_the_cost_of_any_centre_is_unbiased(weighted: bool) -> None:
    rng = np.random.default_rng(3)
    X = np.vstack([rng.normal(size=(150, 2)), rng.normal(20.0, 1.0, size=(3, 2))])
    weights = rng.uniform(0, 4, len(X)) if weighted else np.ones(len(X))
    coresets = [coreset_of(X, 30, weights if weighted else None, seed) for seed in range(400)]
    for centre in (np.zeros(2), np.array([20.0, 20.0]), np.array([-3.0, 7.0])):
        costs = np.array([c.weights @ ((c.points - centre) ** 2).sum(axis=1) for c in coresets])
        assert standard_errors_off(costs, weights @ ((X - centre) ** 2).sum(axis=1)) < 4
    totals = np.array([c.weights.sum() for c in coresets])
    assert standard_errors_off(totals, weights.sum()) < 4


def test_rows_without_weight_are_never_drawn() -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(40, 2))
    weights = (np.arange(40) % 2).astype(np.float64)
    X[::2] += 100.0
    drawn = np.concatenate([coreset_of(X, 20, weights, seed).indices for seed in range(20)])
    assert (drawn % 2 == 1).all()


def test_it_draws_on_until_there_are_enough_distinct_points() -> None:
    X = np.repeat(np.random.default_rng(5).normal(size=(12, 2)), 20, axis=0)
    coreset = coreset_of(X, 3, n_distinct=10)
    assert len(np.unique(coreset.points, axis=0)) >= 10
    assert coreset.weights.sum() == pytest.approx(240, rel=0.5)


def test_points_that_no_draw_meets_are_added_with_their_own_weight() -> None:
    X = np.vstack([np.random.default_rng(6).normal(size=(5, 2)), [[0.0, 0.1], [0.1, 0.0], [0.1, 0.0]]])
    weights = np.array([1.0] * 5 + [1e-12] * 3)
    coreset = coreset_of(X, 20, weights, n_distinct=7)
    assert coreset.indices.tolist() == [0, 1, 2, 3, 4, 5, 6]
    np.testing.assert_array_equal(coreset.weights[5:], 1e-12)


def test_too_few_distinct_points_in_the_data_are_no_endless_loop() -> None:
    X = np.repeat(np.eye(2), 500, axis=0)
    coreset = coreset_of(X, 10, n_distinct=5)
    assert len(np.unique(coreset.points, axis=0)) == 2


# -------------------------------------------------------------------------------------------------------- all rows


def test_all_rows_leave_out_those_without_weight() -> None:
    X = np.arange(12.0).reshape(6, 2)
    weights = np.array([1.0, 0.0, 2.0, 0.0, 0.0, 3.0])
    coreset = all_rows(ArrayRows(X), weights)
    assert coreset.indices.tolist() == [0, 2, 5]
    np.testing.assert_array_equal(coreset.points, X[[0, 2, 5]])
    assert coreset.weights.tolist() == [1.0, 2.0, 3.0]
    assert all_rows(ArrayRows(X), None).weights.tolist() == [1.0] * 6


def test_indices_of_all_rows_are_made_when_they_are_asked_for() -> None:
    rows = ArrayRows(np.zeros((5, 2)))
    for weights in (None, np.ones(5)):
        coreset = all_rows(rows, weights)
        assert coreset.rows is None
        assert len(coreset) == 5
        np.testing.assert_array_equal(coreset.indices, np.arange(5))
        assert coreset.indices.dtype == np.int64


def test_all_rows_are_not_copied() -> None:
    X = np.ones((5, 2))
    assert all_rows(ArrayRows(X), None).points is X


# ---------------------------------------------------------------------------------------------------- distinctness


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8])
def test_distinct_rows_are_counted(dtype: type) -> None:
    X = np.random.default_rng(7).integers(0, 4, (300, 2)).astype(dtype)
    assert count_distinct(X, 300) == len(np.unique(X, axis=0))


def test_counting_may_stop_once_there_are_enough() -> None:
    X = np.repeat(np.arange(1000.0), 3)[:, None]
    assert count_distinct(X, 20) >= 20
    late = np.zeros((10_000, 1))
    late[-30:, 0] = np.arange(1, 31)
    assert count_distinct(late, 10) >= 10
    assert count_distinct(late, 100) == 31


def test_minus_zero_equals_zero() -> None:
    hashes = row_hashes(np.array([[0.0, 1.0], [-0.0, 1.0]]))
    assert hashes[0] == hashes[1]
