from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcgmm.algorithm import reference
from vcgmm.algorithm.cells.extent import Extent
from vcgmm.algorithm.cells.natural import Natural
from vcgmm.algorithm.cells.neighbourhoods import sort_by_cluster
from vcgmm.kernels.search.pointwise import search_points, sum_points, update_neighbors
from vcgmm.parallel import Workers

pytestmark = pytest.mark.interpreted

N, C, D = 60, 12, 3


@dataclass
class Problem:
    Y: np.ndarray
    gamma: np.ndarray
    mu: np.ndarray
    K: np.ndarray
    G: np.ndarray
    explored: np.ndarray


def problem(seed: int, truncation: int, n_neighbors: int, n_explore: int, dtype: type = np.float64) -> Problem:
    rng = np.random.default_rng(seed)
    others = np.array([rng.permutation(np.delete(np.arange(C), c)) for c in range(C)])
    return Problem(
        Y=rng.normal(size=(N, D)).astype(dtype),
        gamma=rng.uniform(0.5, 3.0, N),
        mu=rng.normal(size=(C, D)).astype(dtype),
        K=np.array([rng.permutation(C)[:truncation] for _ in range(N)], np.int32),
        G=np.hstack([np.arange(C)[:, None], others[:, : n_neighbors - 1]]).astype(np.int32),
        explored=rng.integers(0, C, (N, n_explore)).astype(np.int32),
    )


def search(p: Problem) -> tuple[np.ndarray, ...]:
    """New winners, their distances, new neighbours, and the number of distances evaluated."""
    width = p.K.shape[1] * p.G.shape[1] + p.explored.shape[1]
    winners, near = p.K.copy(), np.empty(p.K.shape, p.Y.dtype)
    space, distances = np.empty((N, width), np.int32), np.empty((N, width), p.Y.dtype)
    search_points(0, N, p.Y, p.mu, p.G, p.explored, winners, near, space, distances)
    order, start = sort_by_cluster(winners[:, 0], C)
    new = np.empty_like(p.G)
    update_neighbors(0, C, order, start, space, distances, p.G, new)
    return winners, near, new, np.count_nonzero(space >= 0)


def add_up(p: Problem, sigma2: float, winners: np.ndarray, near: np.ndarray) -> tuple[np.ndarray, ...]:
    rounding = Extent.of(p.Y, p.gamma, Workers(1)).rounding(Natural.shared(p.mu))
    shifts, masses, facts = np.zeros((C, D)), np.zeros(C), np.empty((N, 2))
    sum_points(
        0, N, p.Y, p.gamma, p.mu, winners, near, 0.5 / sigma2, rounding.shifts, rounding.rows,
        rounding.masses, shifts, masses, facts,
    )  # fmt: skip
    return shifts, masses, facts


@pytest.mark.parametrize(
    ("truncation", "n_neighbors", "n_explore"), [(3, 4, 0), (3, 4, 2), (1, 1, 1), (1, 3, 0), (C, 1, 0), (2, C, 0)]
)
def test_a_search_is_the_variational_e_step(truncation: int, n_neighbors: int, n_explore: int) -> None:
    p = problem(truncation, truncation, n_neighbors, n_explore)
    winners, near, neighbors, n_evaluations = search(p)
    expected_winners, expected_neighbors, expected_evaluations = reference.variational_e_step(
        p.Y, p.mu, p.K, p.G, p.explored
    )
    np.testing.assert_array_equal(winners, expected_winners)
    np.testing.assert_array_equal(neighbors, expected_neighbors)
    assert n_evaluations == expected_evaluations
    all_distances = reference.squared_distances(p.Y, p.mu)
    np.testing.assert_allclose(near, np.take_along_axis(all_distances, winners.astype(np.int64), axis=1))


def test_a_cluster_without_members_keeps_its_neighbours() -> None:
    p = problem(0, 2, 4, 0)
    p.mu[5] = 1e3
    winners, _, neighbors, _ = search(p)
    assert 5 not in winners[:, 0]
    np.testing.assert_array_equal(neighbors[5], p.G[5])


def test_a_cluster_leads_its_neighbours_also_where_others_are_nearer_to_its_points() -> None:
    p = problem(1, C, 3, 0)
    p.mu[1:] = p.mu[0]  # all are equally far from every point
    _, _, neighbors, _ = search(p)
    np.testing.assert_array_equal(neighbors[:, 0], np.arange(C))


@pytest.mark.parametrize("truncation", [1, 3, C])
def test_the_sums_are_those_of_the_m_step(truncation: int) -> None:
    p = problem(7, truncation, 4, 0)
    sigma2 = 0.7
    winners, near, _, _ = search(p)
    shifts, masses, facts = add_up(p, sigma2, winners, near)
    s = reference.responsibilities(p.Y, p.mu, sigma2, winners)
    np.testing.assert_allclose(masses, (p.gamma[:, None] * s).sum(axis=0), atol=1e-6)
    means, variance = reference.m_step(p.Y, p.gamma, s, p.mu)
    moves = shifts / np.where(masses > 0, masses, 1.0)[:, None]
    np.testing.assert_allclose(p.mu + moves, means, atol=1e-6)
    moved = (masses * (moves**2).sum(axis=1)).sum()
    assert (facts[:, 1].sum() - moved) / (D * p.gamma.sum()) == pytest.approx(variance, rel=1e-6)


def test_the_facts_of_a_point_give_its_part_of_the_bound() -> None:
    p = problem(8, 3, 4, 0)
    sigma2 = 0.4
    winners, near, _, _ = search(p)
    _, _, facts = add_up(p, sigma2, winners, near)
    normaliser = np.log(C) + 0.5 * D * np.log(2 * np.pi * sigma2)
    bound = facts[:, 0].sum() - p.gamma.sum() * normaliser
    assert bound == pytest.approx(reference.bound(p.Y, p.gamma, p.mu, sigma2, winners), rel=1e-12)


def test_negligible_responsibilities_move_no_mean() -> None:
    p = problem(9, 3, 4, 0)
    winners, near, _, _ = search(p)
    shifts, masses, _ = add_up(p, 1e-6, winners, near)
    hard = np.bincount(winners[:, 0], p.gamma, C)
    np.testing.assert_allclose(masses, hard, rtol=1e-12)
    assert not shifts[hard == 0].any()


def test_float32_agrees_with_the_reference_up_to_rounding() -> None:
    p = problem(10, 3, 4, 1, np.float32)
    winners, near, _, _ = search(p)
    expected, _, _ = reference.variational_e_step(p.Y, p.mu, p.K, p.G, p.explored)
    all_distances = reference.squared_distances(p.Y.astype(np.float64), p.mu.astype(np.float64))
    np.testing.assert_allclose(
        near, np.take_along_axis(all_distances, expected.astype(np.int64), axis=1), rtol=1e-5
    )
    shifts, masses, _ = add_up(p, 0.5, winners, near)
    s = reference.responsibilities(p.Y, p.mu, 0.5, expected)
    np.testing.assert_allclose(masses, (p.gamma[:, None] * s).sum(axis=0), rtol=1e-4)
    assert np.isfinite(shifts).all()


@given(st.integers(0, 10_000), st.integers(1, 5), st.integers(1, 5), st.integers(0, 3))
def test_any_e_step_is_that_of_the_reference(seed: int, truncation: int, n_neighbors: int, n_explore: int) -> None:
    p = problem(seed, truncation, n_neighbors, n_explore)
    winners, _, new, n_evaluations = search(p)
    K, G, expected_evaluations = reference.variational_e_step(p.Y, p.mu, p.K, p.G, p.explored)
    np.testing.assert_array_equal(winners, K)
    np.testing.assert_array_equal(new, G)
    assert n_evaluations == expected_evaluations
