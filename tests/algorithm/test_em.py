"""The loop of EM, and what the two searches of the CPU do each in its own way; what both owe to EM: contract/."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from vcgmm.algorithm import reference
from vcgmm.algorithm.cells.neighbourhoods import sort_by_cluster
from vcgmm.algorithm.em import Fit, relative_change, variational_em
from vcgmm.algorithm.models.shared import Shared, SharedModel
from vcgmm.algorithm.mstep import Statistics
from vcgmm.algorithm.search.blocked import BlockedSearch
from vcgmm.algorithm.search.pointwise import PointwiseSearch
from vcgmm.algorithm.seeding.afkmc2 import assign
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


def run(kind: str, p: Problem, search: Any = None, **changes: Any) -> Fit:
    options: dict[str, Any] = {
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
    return variational_em(model, Shared(p.mu, math.nan), fit, **options)


# ------------------------------------------------------------------------------------------------------- exactness


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


# ---------------------------------------------------------------------------------------------- points and winners


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


def test_the_pointwise_search_may_go_on_from_known_winners() -> None:
    p = problem(n_clusters=6)
    known = np.array([reference.nearest_of(y, p.mu, np.arange(6), 3) for y in p.Y], np.int32)
    itself = np.arange(6, dtype=np.int32)[:, None]
    search = PointwiseSearch(p.Y, p.gamma, 6, 3, 1, 0, 0, 1e-12, INLINE, known.copy(), itself)
    assert search.e_step(p.mu, 0.5).n_evaluations == 3 * len(p.Y)
    np.testing.assert_array_equal(search.winners, known)


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


def test_without_over_relaxation_em_goes_on_from_where_it_would_end() -> None:
    p = problem()
    recorder = Recorder(make("blocked", p, 3, 4, 6))
    run("blocked", p, recorder, max_iter=6, relaxation=1.0)
    for k in range(1, 6):
        fit = run("blocked", p, max_iter=k, relaxation=1.0)
        np.testing.assert_array_equal(fit.means, recorder.given[k].means)
        assert fit.variance == recorder.given[k].variance


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
