from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp

from vcgmm.algorithm import reference
from vcgmm.algorithm.blocked import BlockedSearch
from vcgmm.algorithm.bound import lower_bound
from vcgmm.algorithm.cells import sort_by_cluster
from vcgmm.algorithm.em import Fit, relative_change, variational_em
from vcgmm.algorithm.models.shared import Shared, SharedModel
from vcgmm.algorithm.mstep import Statistics, m_step, next_step
from vcgmm.algorithm.pointwise import PointwiseSearch
from vcgmm.algorithm.seeding import assign
from vcgmm.parallel import Workers
from vcgmm.progress import Iteration, Progress

INLINE = Workers(1)
Search = BlockedSearch | PointwiseSearch


@dataclass
class Problem:
    Y: np.ndarray
    gamma: np.ndarray
    mu: np.ndarray


def problem(n: int = 150, n_clusters: int = 15, D: int = 2, seed: int = 0, dtype: type = np.float64) -> Problem:
    rng = np.random.default_rng(seed)
    Y = rng.normal(size=(n, D)).astype(dtype)
    return Problem(Y, rng.uniform(0.5, 3.0, n), Y[rng.permutation(n)[:n_clusters]].astype(np.float64))


def make(
    kind: str, p: Problem, truncation: int, n_neighbors: int, n_candidates: int, n_explore: int = 0
) -> Search:
    n_clusters = len(p.mu)
    if kind == "pointwise":
        return PointwiseSearch(p.Y, p.gamma, n_clusters, truncation, n_neighbors, n_explore, 0, 1e-12, INLINE)
    start = assign(p.Y, p.gamma, p.mu, INLINE)
    return BlockedSearch(
        p.Y, p.gamma, start.labels, n_clusters, truncation, n_neighbors, n_candidates, n_explore, 0,
        start.error, 1e-12, INLINE,
    )  # fmt: skip


def run(kind: str, p: Problem, search: Any = None, variance: float | None = None, **changes: Any) -> Fit:
    options: dict[str, Any] = {
        "n_warmup": 0,
        "tol": 0.0,
        "max_iter": 8,
        "relaxation": 1.8,
        "variance_floor": 1e-12,
        "log_scale": 0.0,
        "weight_unit": 1.0,
        "callbacks": (),
        "progress": Progress(),
        "begun": 0.0,
        **changes,
    }
    search = make(kind, p, 3, 4, 6) if search is None else search
    floor, relaxation, log_scale = (options.pop(name) for name in ("variance_floor", "relaxation", "log_scale"))
    model = SharedModel(search, float(p.gamma.sum()), floor, relaxation, log_scale)
    fit = Fit.at(p.mu)
    start = Shared(p.mu, math.nan if variance is None else variance)
    return variational_em(model, model.warm_up(start, options.pop("n_warmup"), fit), fit, **options)


def exact_em(p: Problem, n_iter: int) -> list[tuple[np.ndarray, float, float]]:
    """Textbook EM for equal mixing weights and one shared variance: means, variance and likelihood per step."""
    Y, gamma, mu = p.Y.astype(np.float64), p.gamma, p.mu
    D = Y.shape[1]
    d2 = ((Y[:, None] - mu) ** 2).sum(axis=2)
    sigma2 = (gamma * d2.min(axis=1)).sum() / (D * gamma.sum())
    steps = []
    for _ in range(n_iter):
        joint = -np.log(len(mu)) - 0.5 * D * np.log(2 * np.pi * sigma2) - d2 / (2 * sigma2)
        evidence = logsumexp(joint, axis=1)
        r = gamma[:, None] * np.exp(joint - evidence[:, None])
        mu = (r.T @ Y) / r.sum(axis=0)[:, None]
        d2 = ((Y[:, None] - mu) ** 2).sum(axis=2)
        sigma2 = (r * d2).sum() / (D * gamma.sum())
        steps.append((mu, sigma2, float((gamma * evidence).sum())))
    return steps


KINDS = pytest.mark.parametrize("kind", ["blocked", "pointwise"])
RELAXATIONS = pytest.mark.parametrize("relaxation", [1.0, 1.8])


# ------------------------------------------------------------------------------------------------------- exactness


@KINDS
def test_full_truncation_is_exact_em_step_by_step(kind: str) -> None:
    p = problem(n_clusters=6)
    search = make(kind, p, 6, 6, 6)
    means, variance = p.mu, None
    for expected_means, expected_variance, likelihood in exact_em(p, 6):
        statistics = search.e_step(means, variance)
        assert lower_bound(statistics) == pytest.approx(likelihood, rel=1e-10)
        means, variance = m_step(statistics, 1e-12, search.scatter)
        np.testing.assert_allclose(means, expected_means, atol=1e-7)
        assert variance == pytest.approx(expected_variance, rel=1e-7)


@KINDS
def test_float32_stays_close_to_exact_em(kind: str) -> None:
    p = problem(n_clusters=6, dtype=np.float32)
    fit = run(kind, p, make(kind, p, 6, 6, 6), max_iter=6, relaxation=1.0)
    expected_means, expected_variance, likelihood = exact_em(p, 6)[-1]
    np.testing.assert_allclose(fit.means, expected_means, atol=1e-3)
    assert fit.variance == pytest.approx(expected_variance, rel=1e-3)
    assert fit.bounds[-1] == pytest.approx(likelihood, rel=1e-5)


def test_the_pointwise_search_is_the_loop_of_the_paper() -> None:
    p = problem(n=60, n_clusters=10)
    search = make("pointwise", p, 3, 3, 0)
    means, variance, winners, neighbors, bounds = reference.vc_gmm(
        p.Y, p.gamma, p.mu, search.winners, search.neighbors, 5
    )
    fit = run("pointwise", p, search, max_iter=5, relaxation=1.0)
    np.testing.assert_allclose(fit.bounds, bounds, rtol=1e-9)
    np.testing.assert_allclose(fit.means, means, atol=1e-6)
    assert fit.variance == pytest.approx(variance, rel=1e-6)
    np.testing.assert_array_equal(search.winners, winners)
    np.testing.assert_array_equal(search.neighbors, neighbors)


# ------------------------------------------------------------------------------------------------------ the theory


@KINDS
@RELAXATIONS
@pytest.mark.parametrize("n_explore", [0, 2])
def test_neither_step_lowers_the_bound_and_it_stays_below_the_likelihood(
    kind: str, relaxation: float, n_explore: int
) -> None:
    p = problem()
    search = make(kind, p, 3, 3, 5, n_explore)
    means, variance = p.mu, None
    before = -math.inf
    for _ in range(7):
        statistics = search.e_step(means, variance)
        after_e = lower_bound(statistics)
        Y, gamma, winners = search.points, search.weights, search.winners
        assert after_e == pytest.approx(reference.bound(Y, gamma, means, statistics.variance, winners), rel=1e-9)
        assert after_e >= before - 1e-9 * abs(after_e)
        assert after_e <= reference.log_likelihood(Y, gamma, means, statistics.variance) + 1e-9
        means, variance = m_step(statistics, 1e-12, search.scatter, relaxation)
        before = reference.bound(Y, gamma, means, variance, winners)  # after the M-step, with the same winners
        assert before >= after_e - 1e-9 * abs(after_e)


@KINDS
@RELAXATIONS
def test_bounds_rise_in_float32_too(kind: str, relaxation: float) -> None:
    p = problem(n=800, n_clusters=60, D=5, dtype=np.float32)
    bounds = np.array(run(kind, p, make(kind, p, 4, 4, 12), max_iter=25, relaxation=relaxation).bounds)
    assert (np.diff(bounds) >= -1e-6 * np.abs(bounds[1:])).all()
    assert bounds[-1] > bounds[0]


@KINDS
@RELAXATIONS
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_outlier_that_gets_its_own_cluster_does_not_make_the_bound_fall(
    kind: str, relaxation: float, dtype: type
) -> None:
    """Its scatter cancels in the M-step, and what is left must not be rounding."""
    Y = np.random.default_rng(0).normal(size=(200, 1)) / 16
    Y[0] = 1e5 / 16
    p = Problem(Y.astype(dtype), np.ones(200), np.array([[0.5 / 16], [0.0]]))
    bounds = np.array(run(kind, p, make(kind, p, 1, 2, 2), max_iter=6, relaxation=relaxation).bounds)
    assert (np.diff(bounds) >= -1e-6 * np.abs(bounds[1:])).all()


@KINDS
def test_a_search_leaves_the_points_it_is_given_as_they_were(kind: str) -> None:
    p = problem()
    Y, gamma = p.Y.copy(), p.gamma.copy()
    run(kind, p)
    np.testing.assert_array_equal(p.Y, Y)
    np.testing.assert_array_equal(p.gamma, gamma)


@pytest.mark.parametrize("weighted", [False, True])
def test_points_may_lie_in_the_order_of_their_labels_from_the_beginning(weighted: bool) -> None:
    p = problem(300, 12, 4)
    gamma = p.gamma if weighted else np.ones(300)
    start = assign(p.Y, gamma, p.mu, INLINE)
    rows, _ = sort_by_cluster(start.labels, 12)
    common = (start.labels, 12, 3, 4, 6, 0, 0, start.error, 1e-12, INLINE)
    as_given = BlockedSearch(p.Y, gamma, *common)
    arranged = BlockedSearch(p.Y[rows], gamma, *common, None, rows)
    means = p.mu
    for _ in range(3):
        one, other = as_given.e_step(means, None), arranged.e_step(means, None)
        np.testing.assert_array_equal(other.shifts, one.shifts)
        np.testing.assert_array_equal(other.masses, one.masses)
        assert other.log_sum == one.log_sum
        np.testing.assert_array_equal(arranged.labels(), as_given.labels())
        means = one.moved(1.0)


def test_labels_come_in_the_order_of_the_points_given() -> None:
    p = problem(n_clusters=9)
    search = make("blocked", p, 3, 4, 9)
    np.testing.assert_array_equal(search.labels(), assign(p.Y, p.gamma, p.mu, INLINE).labels)
    for _ in range(4):
        p.mu[:] = p.mu[::-1]  # every point has to move, so that they are put in order again
        search.e_step(p.mu, 0.3)
        assert search.labels().dtype == np.int32
        np.testing.assert_array_equal(search.labels(), assign(p.Y, p.gamma, p.mu, INLINE).labels)
    assert (search.points != p.Y).any()
    np.testing.assert_array_equal(np.sort(search.points, axis=0), np.sort(p.Y, axis=0))


@KINDS
def test_warm_up_finds_winners_and_the_first_variance(kind: str) -> None:
    p = problem()
    search = make(kind, p, 3, 4, 8)
    error, n_evaluations = search.warm_up(p.mu)
    winners = search.winners
    expected = reference.initial_variance(search.points, search.weights, p.mu, winners) * 2 * p.gamma.sum()
    assert error == pytest.approx(expected)
    assert n_evaluations > 0
    better, _ = search.warm_up(p.mu)
    assert better <= error
    fit = run(kind, p, n_warmup=2, max_iter=1)
    cold = run(kind, p, max_iter=1)
    assert fit.n_evaluations > cold.n_evaluations


@KINDS
def test_a_given_variance_is_used(kind: str) -> None:
    seen: list[Iteration] = []
    run(kind, problem(), variance=0.7, n_warmup=1, max_iter=1, callbacks=(seen.append,))
    assert seen[0].variance == 0.7


def test_without_a_variance_the_blocked_search_begins_from_its_start() -> None:
    p = problem()
    statistics = make("blocked", p, 3, 3, 5).e_step(p.mu, None)
    everything = np.tile(np.arange(len(p.mu)), (len(p.Y), 1))
    assert statistics.variance == pytest.approx(reference.initial_variance(p.Y, p.gamma, p.mu, everything))


def test_the_pointwise_search_may_go_on_from_known_winners() -> None:
    p = problem(n_clusters=6)
    known = np.array([reference.nearest_of(y, p.mu, np.arange(6), 3) for y in p.Y], np.int32)
    itself = np.arange(6, dtype=np.int32)[:, None]
    search = PointwiseSearch(p.Y, p.gamma, 6, 3, 1, 0, 0, 1e-12, INLINE, known.copy(), itself)
    assert search.e_step(p.mu, 0.5).n_evaluations == 3 * len(p.Y)
    np.testing.assert_array_equal(search.winners, known)


def test_a_cluster_that_loses_all_points_stays_and_has_no_mass() -> None:
    p = problem(n_clusters=4)
    p.mu[2] = 1e3
    fit = run("blocked", p, make("blocked", p, 4, 4, 4))
    assert fit.masses[2] == 0.0
    np.testing.assert_allclose(fit.means[2], 1e3)
    assert fit.masses.sum() == pytest.approx(p.gamma.sum())


# ------------------------------------------------------------------------------------------------- over-relaxation


class Recorder:
    """A search that remembers the statistics it gave."""

    def __init__(self, search: Search) -> None:
        self.search = search
        self.scatter = search.scatter
        self.given: list[Statistics] = []

    def e_step(self, means: np.ndarray, variance: float | None) -> Statistics:
        self.given.append(self.search.e_step(means, variance))
        return self.given[-1]


@KINDS
@pytest.mark.parametrize("relaxation", [0.3, 1.0, 1.8])
@pytest.mark.parametrize("max_iter", [1, 5])
def test_em_goes_on_from_relaxed_means_and_ends_at_the_weighted_ones(
    kind: str, relaxation: float, max_iter: int
) -> None:
    p = problem()
    search = make(kind, p, 3, 4, 6)
    recorder = Recorder(search)
    fit = run(kind, p, recorder, max_iter=max_iter, relaxation=relaxation)
    last = recorder.given[-1]
    Y, gamma = search.points, search.weights
    s = reference.responsibilities(Y, last.means, last.variance, search.winners)
    means, variance = reference.m_step(Y, gamma, s, last.means)
    np.testing.assert_allclose(fit.means, means, atol=1e-9)
    assert fit.variance == pytest.approx(variance, rel=1e-9)
    step, ways = 1.0, None
    for before, after in itertools.pairwise(recorder.given):
        way = before.shifts / before.masses[:, None]
        step = next_step(step, ways, way, before.masses, relaxation)
        ways = way
        assert 0 < step <= relaxation
        np.testing.assert_allclose(after.means, before.means + step * way, atol=1e-9)


def test_without_over_relaxation_em_goes_on_from_where_it_would_end() -> None:
    p = problem()
    recorder = Recorder(make("blocked", p, 3, 4, 6))
    run("blocked", p, recorder, max_iter=6, relaxation=1.0)
    for k in range(1, 6):
        fit = run("blocked", p, max_iter=k, relaxation=1.0)
        np.testing.assert_array_equal(fit.means, recorder.given[k].means)
        assert fit.variance == recorder.given[k].variance


@KINDS
def test_over_relaxation_saves_iterations_where_clusters_overlap(kind: str) -> None:
    n_iter, ends = {}, {}
    for relaxation in (1.0, 1.8):
        fits = []
        for seed in range(3):
            p = problem(n=400, n_clusters=12, seed=seed)
            search = make(kind, p, 12, 12, 12)
            fits.append(run(kind, p, search, tol=1e-7, max_iter=1000, relaxation=relaxation))
        assert all(fit.converged for fit in fits)
        n_iter[relaxation] = sum(len(fit.bounds) for fit in fits)
        ends[relaxation] = sum(fit.bounds[-1] for fit in fits)
    assert n_iter[1.8] < 0.75 * n_iter[1.0]
    assert ends[1.8] > ends[1.0] - 1e-3 * abs(ends[1.0])


# -------------------------------------------------------------------------------------------------------- the loop


def test_em_ends_when_the_bound_changes_by_less_than_the_tolerance() -> None:
    fit = run("blocked", problem(), tol=1e-3, max_iter=200)
    assert fit.converged
    assert relative_change(fit.bounds) < 1e-3
    assert all(relative_change(fit.bounds[:k]) >= 1e-3 for k in range(2, len(fit.bounds)))


def test_em_ends_after_the_most_iterations_allowed() -> None:
    fit = run("blocked", problem(), tol=1e-12, max_iter=3)
    assert len(fit.bounds) == 3
    assert not fit.converged


def test_a_callback_sees_every_iteration_and_can_stop_the_fit() -> None:
    seen: list[Iteration] = []

    def stop_at_four(facts: Iteration) -> bool:
        seen.append(facts)
        return facts.iteration == 4

    heard: list[int] = []
    fit = run("blocked", problem(), callbacks=(stop_at_four, lambda facts: heard.append(facts.iteration)))
    assert [facts.iteration for facts in seen] == heard == [1, 2, 3, 4]
    assert [facts.bound for facts in seen] == fit.bounds
    assert fit.stopped
    assert seen[0].change == math.inf
    assert seen[1].change == relative_change(fit.bounds[:2])
    assert not fit.converged


def test_a_callback_is_told_how_many_clusters_hold_weight() -> None:
    p = problem(n_clusters=4)
    p.mu[2] = 1e3
    seen: list[Iteration] = []
    run("blocked", p, make("blocked", p, 4, 4, 4), callbacks=(seen.append,), max_iter=2)
    assert [facts.active for facts in seen] == [3, 3]


def test_facts_are_told_in_data_coordinates() -> None:
    p = problem()
    seen: list[Iteration] = []
    run("blocked", p, callbacks=(seen.append,), max_iter=1, log_scale=math.log(4.0))
    assert seen[0].variance == pytest.approx(make("blocked", p, 3, 4, 6).e_step(p.mu, None).variance / 16)
    plain = run("blocked", p, max_iter=1).bounds[0]
    assert seen[0].bound == pytest.approx(plain + p.gamma.sum() * 2 * math.log(4.0))


@pytest.mark.parametrize(
    ("bounds", "change"),
    [([], math.inf), ([3.0], math.inf), ([-4.0, -5.0], 0.2), ([1.0, 0.0], math.inf), ([0.0, 0.0], 0.0)],
)
def test_the_change_is_relative_to_the_last_bound(bounds: list[float], change: float) -> None:
    assert relative_change(bounds) == pytest.approx(change)


@KINDS
def test_evaluations_of_all_e_steps_are_counted(kind: str) -> None:
    p = problem()
    counts = [run(kind, p, max_iter=k).n_evaluations for k in (1, 2, 3)]
    assert 0 < counts[0] < counts[1] < counts[2]
