from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcgmm.algorithm import reference
from vcgmm.algorithm.bound import lower_bound
from vcgmm.algorithm.mstep import (
    AT_ONCE,
    LocalStatistics,
    Statistics,
    as_used,
    initial_variance,
    m_step,
    next_step,
)
from vcgmm.parallel import Workers


def random_problem(seed: int, n: int = 30, n_clusters: int = 5, D: int = 2) -> tuple[np.ndarray, ...]:
    """Points, weights, means and winners."""
    rng = np.random.default_rng(seed)
    winners = np.array([rng.permutation(n_clusters)[:3] for _ in range(n)])
    return rng.normal(size=(n, D)), rng.uniform(0.1, 5.0, n), rng.normal(size=(n_clusters, D)), winners


def statistics_of(
    Y: np.ndarray, gamma: np.ndarray, mu: np.ndarray, s: np.ndarray, sigma2: float = 1.0
) -> Statistics:
    """The sums of an E-step with responsibilities s (N', C), straight from their definitions."""
    part = gamma[:, None] * s
    joint = np.where(s > 0, -reference.squared_distances(Y, mu) / (2 * sigma2), -np.inf)
    return Statistics(
        means=mu,
        variance=sigma2,
        shifts=np.array([(part[:, [c]] * (Y - mu[c])).sum(axis=0) for c in range(len(mu))]),
        masses=part.sum(axis=0),
        scatter=float((part * reference.squared_distances(Y, mu)).sum()),
        log_sum=float((gamma * np.logaddexp.reduce(joint, axis=1)).sum()),
        total_weight=float(gamma.sum()),
        n_evaluations=0,
    )


def not_needed(_statistics: Statistics, _means: np.ndarray) -> float:
    """A second pass that nobody should ask for."""
    pytest.fail("the scatter did not cancel, so one pass is enough")


# ---------------------------------------------------------------------------------------------------------- M-step


@given(st.integers(0, 10_000), st.sampled_from([0.01, 0.5, 20.0]))
def test_one_pass_gives_the_means_and_variance_of_two(seed: int, sigma2: float) -> None:
    Y, gamma, mu, K = random_problem(seed)
    s = reference.responsibilities(Y, mu, sigma2, K)
    means, variance = m_step(statistics_of(Y, gamma, mu, s), 0.0, not_needed)
    expected_means, expected_variance = reference.m_step(Y, gamma, s, mu)
    np.testing.assert_allclose(means, expected_means, rtol=1e-9, atol=1e-12)
    assert variance == pytest.approx(expected_variance, rel=1e-9)


@pytest.mark.parametrize("step", [1.0, 1.8])
def test_means_go_along_the_ways_and_leave_the_sums_alone(step: float) -> None:
    Y, gamma, mu, K = random_problem(1)
    statistics = statistics_of(Y, gamma, mu, reference.responsibilities(Y, mu, 1.0, K))
    statistics.masses[2] = 0.0
    shifts, means = statistics.shifts.copy(), statistics.means.copy()
    statistics.shifts[2] = shifts[2] = 0.0
    moved = statistics.moved(step)
    masses = np.where(statistics.masses > 0, statistics.masses, 1.0)
    np.testing.assert_array_equal(moved, means + step * (shifts / masses[:, None]))
    np.testing.assert_array_equal(moved[2], means[2])
    np.testing.assert_array_equal(statistics.shifts, shifts)
    np.testing.assert_array_equal(statistics.means, means)


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize(("n_clusters", "D"), [(7, 3), (3, AT_ONCE + 1), (16_000, AT_ONCE // 999)])
def test_threads_take_the_same_steps(n_clusters: int, D: int, n_threads: int) -> None:
    rng = np.random.default_rng(0)
    facts: dict[str, Any] = {
        "variance": 1.0,
        "scatter": 1.0,
        "log_sum": 0.0,
        "total_weight": 1.0,
        "n_evaluations": 0,
    }
    facts["means"] = rng.normal(size=(n_clusters, D)).astype(np.float32)
    facts["shifts"], facts["masses"] = rng.normal(size=(n_clusters, D)), rng.uniform(0.1, 2.0, n_clusters)
    facts["shifts"][1], facts["masses"][1] = 0.0, 0.0
    plain = Statistics(**facts)
    with Workers(n_threads) as workers:
        local = LocalStatistics(**facts, workers=workers)
        for step in (1.0, 1.8):
            np.testing.assert_array_equal(local.moved(step), plain.moved(step))
        assert local.gain == pytest.approx(plain.gain, rel=1e-12)
        assert local.gain == LocalStatistics(**facts, workers=Workers(1)).gain


def test_new_means_are_rounded_as_the_next_e_step_would() -> None:
    Y, gamma, mu, K = random_problem(2)
    wide = statistics_of(Y, gamma, mu, reference.responsibilities(Y, mu, 1.0, K))
    narrow = replace(wide, means=mu.astype(np.float32))
    new = mu + 1e-3
    assert as_used(new, wide) is new
    np.testing.assert_array_equal(as_used(new, narrow), new.astype(np.float32))
    assert as_used(new, narrow).dtype == np.float32


def test_where_the_scatter_cancels_it_is_taken_anew() -> None:
    Y, gamma, mu, _ = random_problem(3)
    far = statistics_of(Y, gamma, mu + 1e4, np.eye(5)[np.arange(len(Y)) % 5])
    asked: list[np.ndarray] = []

    def again(_statistics: Statistics, means: np.ndarray) -> float:
        asked.append(means)
        return 12.0

    means, variance = m_step(far, 0.0, again)
    np.testing.assert_array_equal(asked, [means])
    assert variance == pytest.approx(12.0 / (2 * gamma.sum()))


@pytest.mark.parametrize("relaxation", [1.0, 1.8])
def test_a_cluster_without_weight_keeps_its_place(relaxation: float) -> None:
    Y, gamma, mu, _ = random_problem(0)
    s = np.zeros((len(Y), 5))
    s[:, 1] = 1.0
    means, variance = m_step(statistics_of(Y, gamma, mu, s), 0.0, not_needed, relaxation)
    np.testing.assert_array_equal(means[[0, 2, 3, 4]], mu[[0, 2, 3, 4]])
    np.testing.assert_allclose(means[1], mu[1] + relaxation * (np.average(Y, axis=0, weights=gamma) - mu[1]))
    assert np.isfinite(variance)


def test_the_variance_does_not_fall_below_its_floor() -> None:
    Y = np.zeros((4, 2))
    means, variance = m_step(statistics_of(Y, np.ones(4), np.zeros((1, 2)), np.ones((4, 1))), 1e-6, lambda *_: 0.0)
    assert variance == 1e-6
    assert not means.any()


# -------------------------------------------------------------------------------------------------- relaxed M-step

RELAXATIONS = st.sampled_from([0.3, 1.0, 1.5, 1.8, 1.99])


def scatter_with(Y: np.ndarray, gamma: np.ndarray, s: np.ndarray) -> Callable[[Statistics, np.ndarray], float]:
    """The second pass, naively: sum_n sum_c gamma s_c ||y - mu_c||^2 about any means."""
    return lambda _, means: float((gamma[:, None] * s * reference.squared_distances(Y, means)).sum())


@given(st.integers(0, 10_000), st.sampled_from([0.01, 0.5, 20.0]), RELAXATIONS)
def test_a_relaxed_step_goes_beyond_the_weighted_means_and_takes_the_variance_there(
    seed: int, sigma2: float, relaxation: float
) -> None:
    Y, gamma, mu, K = random_problem(seed)
    s = reference.responsibilities(Y, mu, sigma2, K)
    statistics = statistics_of(Y, gamma, mu, s)
    means, variance = m_step(statistics, 0.0, not_needed, relaxation)
    weighted, _ = reference.m_step(Y, gamma, s, mu)
    np.testing.assert_allclose(means, mu + relaxation * (weighted - mu), rtol=1e-9, atol=1e-12)
    scatter = scatter_with(Y, gamma, s)(statistics, means)
    assert variance == pytest.approx(scatter / (2 * gamma.sum()), rel=1e-9)


@given(st.integers(0, 10_000), st.sampled_from([0.01, 0.5, 20.0]), RELAXATIONS, st.sampled_from([0.0, 5.0, 1e3]))
def test_no_relaxed_step_lowers_the_bound(seed: int, sigma2: float, relaxation: float, offset: float) -> None:
    Y, gamma, mu, K = random_problem(seed)
    mu = mu + offset
    everything = np.tile(np.arange(len(mu)), (len(Y), 1))  # exact EM
    for winners in (K, everything):
        s = reference.responsibilities(Y, mu, sigma2, winners)
        scatter = scatter_with(Y, gamma, s)
        means, variance = m_step(statistics_of(Y, gamma, mu, s, sigma2), 0.0, scatter, relaxation)
        before = reference.bound(Y, gamma, mu, sigma2, winners)
        after = reference.bound(Y, gamma, means, variance, winners)
        assert after >= before - 1e-9 * abs(before)
        _, plain = m_step(statistics_of(Y, gamma, mu, s, sigma2), 0.0, scatter)
        assert variance >= plain * (1 - 1e-9)  # no means have less scatter than the weighted ones


def test_twice_the_way_is_too_far() -> None:
    Y, gamma, mu, K = random_problem(4)
    s = reference.responsibilities(Y, mu, 0.5, K)
    statistics = statistics_of(Y, gamma, mu, s, 0.5)
    still, twice, farther = (m_step(statistics, 0.0, not_needed, r)[1] for r in (0.0, 2.0, 2.1))
    assert still == pytest.approx(twice)  # where it comes out as far away as it was
    assert farther > twice


def test_a_relaxed_step_that_cancels_takes_the_scatter_about_its_own_means() -> None:
    Y, gamma, mu, _ = random_problem(3)
    s = np.eye(5)[np.arange(len(Y)) % 5]
    far = statistics_of(Y, gamma, mu + 1e4, s)
    means, variance = m_step(far, 0.0, scatter_with(Y, gamma, s), 0.999)
    expected = reference.squared_distances(Y, means)[np.arange(len(Y)), np.arange(len(Y)) % 5]
    assert variance == pytest.approx(gamma @ expected / (2 * gamma.sum()), rel=1e-12)


# -------------------------------------------------------------------------------------------------- first variance


def test_the_first_variance_is_the_mean_squared_distance_to_the_nearest_winner() -> None:
    Y, gamma, mu, K = random_problem(1)
    expected = reference.initial_variance(Y, gamma, mu, K)
    assert initial_variance(expected * 2 * gamma.sum(), gamma.sum(), 2, 0.0) == pytest.approx(expected)
    assert initial_variance(0.0, 5.0, 2, 1e-9) == 1e-9


# ----------------------------------------------------------------------------------------------------------- bound


@given(st.integers(0, 10_000), st.sampled_from([0.05, 0.5, 20.0]))
def test_the_bound_is_the_objective_with_entropy_at_its_optimum(seed: int, sigma2: float) -> None:
    Y, gamma, mu, K = random_problem(seed)
    s = reference.responsibilities(Y, mu, sigma2, K)
    bound = lower_bound(statistics_of(Y, gamma, mu, s, sigma2))
    assert bound == pytest.approx(reference.bound_with_entropy(Y, gamma, mu, sigma2, K, s), rel=1e-9)
    assert bound == pytest.approx(reference.bound(Y, gamma, mu, sigma2, K), rel=1e-9)


@given(st.integers(0, 10_000))
def test_other_responsibilities_give_a_lower_objective(seed: int) -> None:
    Y, gamma, mu, K = random_problem(seed)
    other = reference.responsibilities(Y, mu, 3.0, K)
    assert reference.bound_with_entropy(Y, gamma, mu, 0.5, K, other) < reference.bound(Y, gamma, mu, 0.5, K)


def test_the_bound_lies_below_the_likelihood() -> None:
    Y, gamma, mu, K = random_problem(2)
    everything = np.tile(np.arange(5), (len(Y), 1))
    likelihood = reference.log_likelihood(Y, gamma, mu, 0.5)
    assert reference.bound(Y, gamma, mu, 0.5, K) < likelihood
    assert reference.bound(Y, gamma, mu, 0.5, everything) == pytest.approx(likelihood)


def test_the_bound_is_told_in_data_coordinates() -> None:
    Y, gamma, mu, K = random_problem(3)
    scale = 8.0
    s = reference.responsibilities(Y, mu, 0.5, K)
    local = statistics_of(scale * Y, gamma, scale * mu, s, 0.5 * scale**2)
    told = lower_bound(local, np.log(scale))
    assert told == pytest.approx(reference.bound(Y, gamma, mu, 0.5, K), rel=1e-9)


# ------------------------------------------------------------------------------------------------- how far to go


def test_steps_are_plain_where_the_last_one_came_back() -> None:
    ways = np.array([[1.0, 2.0], [-3.0, 0.5]])
    assert next_step(1.8, ways, -0.8 * ways, np.array([2.0, 5.0]), 1.8) == pytest.approx(1.0)


def test_steps_are_as_long_as_allowed_where_ways_hardly_change_and_at_first() -> None:
    ways = np.array([[1.0, 2.0], [-3.0, 0.5]])
    masses = np.array([2.0, 5.0])
    assert next_step(1.0, None, ways, masses, 1.8) == 1.8
    assert next_step(1.8, ways, 0.9 * ways, masses, 1.8) == 1.8
    assert next_step(1.8, ways, 1.1 * ways, masses, 1.8) == 1.8  # growing: no rate can be told from that
    assert next_step(1.8, np.zeros((2, 2)), ways, masses, 1.8) == 1.8


@pytest.mark.parametrize("rate", [0.0, 0.2, 0.4])
def test_the_step_that_meets_the_optimum_is_found_from_the_rate(rate: float) -> None:
    ways, step = np.array([[1.0], [2.0]]), 1.5
    after = (1 - step * (1 - rate)) * ways
    assert next_step(step, ways, after, np.ones(2), 1.9) == pytest.approx(1 / (1 - rate))


def test_without_over_relaxation_every_step_is_plain() -> None:
    ways = np.array([[1.0], [2.0]])
    assert next_step(1.0, ways, 0.5 * ways, np.ones(2), 1.0) == 1.0
