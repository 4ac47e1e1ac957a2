from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcgmm.algorithm import reference
from vcgmm.algorithm.coreset import lightweight
from vcgmm.algorithm.coreset.drawing import Draws, Probabilities, _parts_at_once, draw, part_deviations
from vcgmm.algorithm.coreset.frame import Moments, moments
from vcgmm.algorithm.coreset.lightweight import Coreset, lightweight_coreset
from vcgmm.algorithm.coreset.walk import Walk
from vcgmm.data import ArrayRows
from vcgmm.data.rows import FEW_PARTS
from vcgmm.parallel import Workers

INLINE = Workers(1)


def silent(amount: int) -> None:
    """No progress is told."""


def moments_of(X: np.ndarray, weights: np.ndarray | None = None) -> Moments:
    return moments(ArrayRows(X), weights, INLINE, silent)


def walk_along(probabilities: np.ndarray, numbers: np.ndarray, cuts: list[int]) -> tuple[np.ndarray, Walk]:
    walk, places = Walk(numbers), []
    for first, last in zip([0, *cuts], [*cuts, len(probabilities)], strict=True):
        if last > first:
            running = np.cumsum(probabilities[first:last])
            catch = walk.on(running[-1:]).meet(running, len(running))
            places.append(first + np.repeat(catch.rows, catch.counts))
            steps = np.diff(running, prepend=0.0)
            np.testing.assert_array_equal(catch.probabilities, steps[catch.rows])
    return np.concatenate(places), walk


@given(
    st.lists(st.sampled_from([0.0, 1.0, 2.5]), min_size=1, max_size=12).filter(any),
    st.lists(st.integers(0, 12), max_size=3),
    st.integers(0, 1000),
)
def test_a_walk_in_blocks_draws_what_one_search_draws(masses: list[float], cuts: list[int], seed: int) -> None:
    probabilities = np.array(masses) / sum(masses)
    numbers = np.sort(np.random.default_rng(seed).random(30))
    drawn, walk = walk_along(probabilities, numbers, sorted(min(cut, len(masses)) for cut in cuts))
    expected = np.searchsorted(np.cumsum(probabilities), numbers[: len(drawn)], side="right")
    assert len(drawn) + walk.n_left == 30
    assert walk.n_left == 0 or numbers[-walk.n_left] > 1 - 1e-12
    assert (probabilities[drawn] > 0).all()  # rows of probability zero are never drawn
    off = drawn != expected  # only where rounding decides
    np.testing.assert_allclose(np.cumsum(probabilities)[drawn[off]], numbers[: len(drawn)][off], atol=1e-14)
    assert walk.total == pytest.approx(1.0)


def test_a_number_just_under_the_end_of_a_block_is_its_last_row_of_any_probability() -> None:
    walk = Walk(np.array([0.25, np.nextafter(0.5, 0.0)]))
    running = np.array([0.1, 0.4, 0.4, 0.5, 0.5])
    assert walk.on(running[-1:]).meet(running, 5).rows.tolist() == [1, 3]
    assert walk.n_left == 0


def test_blocks_of_one_stretch_are_walked_like_stretches_of_their_own() -> None:
    rng = np.random.default_rng(1)
    probabilities = rng.random(23)
    probabilities /= probabilities.sum()
    numbers = np.sort(rng.random(40))
    step = 5
    running = np.concatenate([np.cumsum(probabilities[i : i + step]) for i in range(0, 23, step)])
    ends = np.array([5, 10, 15, 20, 23])
    walk = Walk(numbers)
    catch = walk.on(running[ends - 1]).meet(running, step)
    alone, other = walk_along(probabilities, numbers, [5, 10, 15, 20])
    np.testing.assert_array_equal(np.repeat(catch.rows, catch.counts), alone)
    assert walk.total == other.total
    assert walk.n_left == other.n_left


@pytest.mark.parametrize("weighted", [False, True])
def test_running_probabilities_take_the_place_of_deviations(weighted: bool) -> None:
    rng = np.random.default_rng(2)
    deviations, weights = rng.random(11), rng.random(11) if weighted else None
    q = Probabilities(0.25, 0.5)
    expected = np.concatenate([np.cumsum(part) for part in np.split(q(deviations, weights), [4, 8])])
    given = deviations.copy()
    assert q.running(given, weights, 4) is given
    np.testing.assert_allclose(given, expected, rtol=1e-15)


@pytest.mark.parametrize("offset", [0.0, 1e4])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8])
def test_deviations_of_a_part_are_those_to_the_mean(dtype: type, offset: float) -> None:
    X = (abs(np.random.default_rng(3).normal(size=(700, 5))) * 40 + (0 if dtype is np.uint8 else offset)).astype(
        dtype
    )
    facts = moments_of(X)
    exact = ((X - facts.mean) ** 2).sum(axis=1)
    (part,) = ArrayRows(X).parts()
    np.testing.assert_allclose(part_deviations(part, facts), exact, rtol=1e-12 if dtype is np.float64 else 1e-6)


@pytest.mark.parametrize("scale", [1e-24, 1e-17, 1e17, 1e24])
def test_deviations_that_float32_cannot_hold_are_found_all_the_same(scale: float) -> None:
    X = (np.random.default_rng(4).normal(size=(700, 5)) * scale).astype(np.float32)
    facts = moments_of(X)
    (part,) = ArrayRows(X).parts()
    wide = X.astype(np.float64)
    np.testing.assert_allclose(facts.mean, wide.mean(axis=0), rtol=0, atol=2e-8 * scale)  # of the spread
    assert facts.total_variance == pytest.approx(((wide - wide.mean(axis=0)) ** 2).sum(axis=1).mean(), rel=1e-6)
    np.testing.assert_allclose(part_deviations(part, facts), ((wide - facts.mean) ** 2).sum(axis=1), rtol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_draws_are_those_of_the_whole_running_sum(weighted: bool, n_threads: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40_000, 20)) * np.linspace(0.1, 3.0, 40_000)[:, None]
    weights = rng.uniform(0, 2, len(X)) * (rng.random(len(X)) < 0.7) if weighted else None
    facts = moments_of(X, weights)
    numbers = np.sort(rng.random(3000))
    with Workers(n_threads) as workers:
        drawn, total = draw(ArrayRows(X), facts, weights, numbers, facts.spread, workers, silent)
    mass = np.ones(len(X)) if weights is None else weights
    q = reference.coreset_probabilities(X, mass)
    indices, counts = np.unique(np.searchsorted(np.cumsum(q), numbers), return_counts=True)
    np.testing.assert_array_equal(drawn.indices, indices)
    np.testing.assert_array_equal(drawn.counts, counts)
    np.testing.assert_array_equal(drawn.masses, mass[indices])
    np.testing.assert_array_equal(drawn.points, X[indices])
    np.testing.assert_allclose(drawn.probabilities, q[indices], rtol=1e-10)
    assert total == pytest.approx(1.0, abs=1e-12)
    assert drawn.size == 3000


def test_a_pass_tells_how_many_rows_it_reads() -> None:
    told: list[int] = []
    X = np.random.default_rng(0).normal(size=(50_000, 20))
    draw(ArrayRows(X), moments_of(X), None, np.array([0.5]), 1.0, INLINE, told.append)
    assert sum(told) == 50_000
    assert len(told) > 1


def test_what_no_row_has_met_goes_to_the_last_one_that_can_be_drawn() -> None:
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    weights = np.array([1.0, 1.0, 1.0, 0.0])
    facts = moments_of(X, weights)
    # Twice the spread: the probabilities add up to 3/4 only.
    drawn, total = draw(ArrayRows(X), facts, weights, np.array([0.1, 0.8, 0.9]), 2 * facts.spread, INLINE, silent)
    assert total == pytest.approx(0.75)
    assert drawn.indices.tolist() == [0, 2]
    assert drawn.counts.tolist() == [1, 2]
    assert drawn.masses.tolist() == [1.0, 1.0]
    assert drawn.points[:].tolist() == [[0.0], [2.0]]


def test_further_draws_are_added_row_by_row() -> None:
    def some(indices: list[int], counts: list[int]) -> Draws:
        rows = np.array(indices)
        return Draws(rows, np.array(counts), rows / 10.0, rows * 2.0, rows[:, None] + 0.5)

    both = some([1, 4], [2, 1]).and_also(some([0, 4, 5], [1, 3, 1]))
    assert both.indices.tolist() == [0, 1, 4, 5]
    assert both.counts.tolist() == [1, 2, 4, 1]
    assert both.probabilities.tolist() == [0.0, 0.1, 0.4, 0.5]
    assert both.masses.tolist() == [0.0, 2.0, 8.0, 10.0]
    assert both.points.ravel().tolist() == [0.5, 1.5, 4.5, 5.5]
    assert both.size == 8


def coreset_of(X: np.ndarray, size: int, facts: Moments) -> Coreset:
    rng = np.random.default_rng(0)
    return lightweight_coreset(ArrayRows(X), facts, None, size, rng, 1, INLINE, silent)


@pytest.mark.parametrize("factor", [1e-3, 0.5, 7.0, 1e6])
def test_a_spread_that_was_rounded_away_is_put_right_in_one_more_pass(factor: float) -> None:
    X = np.random.default_rng(1).normal(size=(500, 3))
    facts = moments_of(X)
    wrong = Moments(facts.total_weight, facts.mean, factor * facts.total_variance, facts.n_usable)
    right, repaired = coreset_of(X, 50, facts), coreset_of(X, 50, wrong)
    np.testing.assert_array_equal(repaired.indices, right.indices)
    np.testing.assert_allclose(repaired.weights, right.weights, rtol=1e-9)


def test_rows_that_differ_by_rounding_alone_are_drawn_evenly() -> None:
    # The mean of equal rows is not quite one of them; what is left of the deviations is noise.
    X = np.full((90_000, 3), 0.1)
    coreset = coreset_of(X, 3000, moments_of(X))
    assert np.abs(np.histogram(coreset.indices, 9, (0, 90_000))[0] / len(coreset) - 1 / 9).max() < 0.03
    assert coreset.weights.sum() == pytest.approx(90_000, rel=0.1)


def test_an_ordinary_coreset_is_drawn_in_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    passes = []

    def count(*arguments: object) -> tuple[Draws, float]:
        passes.append(1)
        return draw(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(lightweight, "draw", count)
    X = (1e4 + np.random.default_rng(2).normal(size=(100_000, 8))).astype(np.float32)
    coreset_of(X, 1000, moments_of(X))
    assert len(passes) == 1


@pytest.mark.parametrize(("n_features", "at_once"), [(2, 4), (64, FEW_PARTS)])
def test_running_sums_of_narrow_rows_are_not_all_in_memory(n_features: int, at_once: int) -> None:
    rows = ArrayRows(np.zeros((4096, n_features), np.float32))
    with Workers(2) as workers:
        assert _parts_at_once(rows, 1024, workers) == at_once


def test_drawing_from_narrow_rows_takes_less_memory_than_a_column_of_them() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3_000_000, 2)).astype(np.float32)
    facts, few, rows = moments_of(X), np.sort(rng.random(100)), ArrayRows(X)
    assert rows.in_few_parts
    with Workers(2) as workers:
        draw(rows, facts, None, few[:10], facts.spread, workers, silent)  # compiled
        tracemalloc.start()
        draw(rows, facts, None, few, facts.spread, workers, silent)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert most < 0.75 * 8 * len(X)
