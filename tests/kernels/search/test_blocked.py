from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcgmm.algorithm import reference
from vcgmm.algorithm.cells.extent import Extent
from vcgmm.algorithm.cells.natural import Natural
from vcgmm.algorithm.cells.neighbourhoods import sort_by_cluster
from vcgmm.kernels.parts.selection import FEW, key_indices, key_type
from vcgmm.kernels.parts.vectors import lanes
from vcgmm.kernels.search.blocked import BLOCK, BLOCKS_PER_FLUSH, POINTS, search_tasks
from vcgmm.parallel import Workers

pytestmark = pytest.mark.interpreted

#: Blocks are filled up to a multiple of this.
ROUND = lanes(8)


@dataclass
class Problem:
    Y: np.ndarray
    gamma: np.ndarray
    mu: np.ndarray
    K: np.ndarray  # old winners; the first says which cluster's candidates a point searches
    candidates: np.ndarray


def problem(
    seed: int,
    truncation: int,
    n_candidates: int,
    dtype: type = np.float64,
    n: int = 80,
    n_clusters: int = 10,
    D: int = 3,
) -> Problem:
    """Random points, means and winners; every cluster's candidates are itself and random others."""
    rng = np.random.default_rng(seed)
    others = np.array([rng.permutation(np.delete(np.arange(n_clusters), c)) for c in range(n_clusters)])
    return Problem(
        Y=rng.normal(size=(n, D)).astype(dtype),
        gamma=rng.uniform(0.5, 3.0, n),
        mu=rng.normal(size=(n_clusters, D)).astype(dtype),
        K=np.array([rng.permutation(n_clusters)[:truncation] for _ in range(n)], np.int32),
        candidates=np.hstack([np.arange(n_clusters)[:, None], others[:, : n_candidates - 1]]).astype(np.int32),
    )


@dataclass
class Found:
    winners: np.ndarray
    shifts: np.ndarray
    masses: np.ndarray
    facts: np.ndarray  # summed over tasks: log sum, scatter, error of the nearest, weight, moved, evaluations


def search(
    p: Problem,
    sigma2: float | None,
    cuts: tuple[int, ...] = (),
    points_per_task: int = 1 << 30,
    in_steps: bool = False,
) -> Found:
    """One pass over all points: `cuts` part the tasks into calls with sums of their own, as threads would."""
    n_clusters, n_features = p.mu.shape
    order, start = sort_by_cluster(p.K[:, 0], n_clusters)
    task_start = [low for c in range(n_clusters) for low in range(start[c], start[c + 1], points_per_task)]
    task_cell = p.K[order[task_start], 0]
    n_candidates = p.candidates.shape[1]
    indices = key_indices(n_candidates, key_type(p.Y.dtype, n_candidates))
    natural = Natural.shared(p.mu)
    rounding = Extent.of(p.Y, p.gamma, Workers(1)).rounding(natural)
    winners, facts = p.K.copy(), np.zeros((len(task_cell), 6))
    limits = [0, *cuts, len(task_cell)]
    shifts, masses = np.zeros((len(limits), n_clusters, n_features)), np.zeros((len(limits), n_clusters))
    for i, (first, last) in enumerate(itertools.pairwise(limits)):
        search_tasks(
            first, last, task_cell, np.array([*task_start, len(p.Y)]), p.Y, p.gamma, order, p.candidates, p.mu,
            natural.precisions, natural.offsets, winners, -1.0 if sigma2 is None else 0.5 / sigma2, indices,
            in_steps or None, natural.farthest, rounding.shifts, rounding.scatters,
            rounding.rows, rounding.masses, shifts[i], None, masses[i], facts,
        )  # fmt: skip
    return Found(winners, shifts.sum(axis=0), masses.sum(axis=0), facts.sum(axis=0))


def best_known(p: Problem) -> np.ndarray:
    """K(n) as it should become: the nearest of the candidates and the old winners."""
    spaces = [np.union1d(p.candidates[k[0]], k[k >= 0]) for k in p.K]
    return np.array(
        [reference.nearest_of(y, p.mu, space, p.K.shape[1]) for y, space in zip(p.Y, spaces, strict=True)]
    )


def bound_of(p: Problem, sigma2: float, found: Found) -> float:
    n_clusters, n_features = p.mu.shape
    normaliser = np.log(n_clusters) + 0.5 * n_features * np.log(2 * np.pi * sigma2)
    return float(found.facts[0] - p.gamma.sum() * normaliser)


def assert_sums(p: Problem, sigma2: float, found: Found, rtol: float) -> None:
    """Masses, new means and new variance are those of the reference's M-step for the winners found."""
    s = reference.responsibilities(p.Y.astype(np.float64), p.mu.astype(np.float64), sigma2, found.winners)
    np.testing.assert_allclose(found.masses, (p.gamma[:, None] * s).sum(axis=0), rtol=rtol, atol=rtol)
    means, variance = reference.m_step(p.Y.astype(np.float64), p.gamma, s, p.mu)
    moves = found.shifts / np.where(found.masses > 0, found.masses, 1.0)[:, None]
    heavy = found.masses > 1e-3 * p.gamma.sum()
    np.testing.assert_allclose((p.mu + moves)[heavy], means[heavy], atol=rtol * np.abs(means).max())
    moved = (found.masses * (moves**2).sum(axis=1)).sum()
    new = (found.facts[1] - moved) / (p.mu.shape[1] * p.gamma.sum())
    assert new == pytest.approx(variance, rel=rtol)


# -------------------------------------------------------------------------------------------------- all candidates


@pytest.mark.parametrize("truncation", [1, 4, FEW, FEW + 1, 10])
def test_with_all_clusters_as_candidates_a_search_is_exact(truncation: int) -> None:
    p = problem(truncation, truncation, n_candidates=10)
    sigma2 = 0.6
    found = search(p, sigma2)
    np.testing.assert_array_equal(found.winners, best_known(p))
    assert_sums(p, sigma2, found, 1e-6)
    assert bound_of(p, sigma2, found) == pytest.approx(reference.bound(p.Y, p.gamma, p.mu, sigma2, found.winners))
    assert found.facts[2] == pytest.approx(reference.quantization_error(p.Y, p.gamma, p.mu))
    assert found.facts[3] == pytest.approx(p.gamma.sum())
    assert found.facts[4] == np.count_nonzero(found.winners[:, 0] != p.K[:, 0])
    assert found.facts[5] == 80 * 10


@pytest.mark.parametrize("truncation", [3, FEW + 2])
@pytest.mark.parametrize(("n_candidates", "offset"), [(10, 0.0), (10, 1000.0), (270, 0.0)])
def test_float32_is_exact_up_to_rounding(n_candidates: int, offset: float, truncation: int) -> None:
    p = problem(1, truncation, n_candidates, np.float32, n=40, n_clusters=n_candidates)
    p.Y += np.float32(offset)
    p.mu += np.float32(offset)
    found = search(p, 0.5)
    distances = reference.squared_distances(p.Y.astype(np.float64), p.mu.astype(np.float64))
    true = np.sort(distances, axis=1)[:, :truncation]
    np.testing.assert_allclose(
        np.take_along_axis(distances, found.winners.astype(np.int64), axis=1), true, rtol=1e-4, atol=1e-6
    )
    assert_sums(p, 0.5, found, 1e-4)


@pytest.mark.parametrize("points_per_task", [1 << 30, 3])
@pytest.mark.parametrize("D", [128, 200])
def test_wide_rows_are_searched_alike(D: int, points_per_task: int) -> None:
    p = problem(8, 2, n_candidates=100, n=12, n_clusters=100, D=D)
    found = search(p, 20.0, points_per_task=points_per_task)
    np.testing.assert_array_equal(found.winners, best_known(p))
    assert_sums(p, 20.0, found, 1e-6)


def test_near_ties_that_the_keys_cannot_tell_apart_come_out_in_order() -> None:
    p = problem(0, 2, n_candidates=40, dtype=np.float32, n=4, n_clusters=40, D=1)
    p.mu[:] = 10
    p.mu[:2, 0] = [1 + 2.0**-19, -1]
    p.Y[:] = 0
    p.K[:] = [0, -1]
    np.testing.assert_array_equal(search(p, 0.5).winners, [[1, 0]] * 4)


def test_winners_not_known_yet_are_found() -> None:
    p = problem(2, 4, n_candidates=10)
    known = search(p, 0.5)
    p.K[:, 1:] = -1
    np.testing.assert_array_equal(search(p, 0.5).winners, known.winners)


def test_the_nearest_takes_all_where_the_precision_is_negative() -> None:
    p = problem(3, 3, n_candidates=10)
    found = search(p, None)
    nearest = reference.squared_distances(p.Y, p.mu).argmin(axis=1)
    np.testing.assert_allclose(found.masses, np.bincount(nearest, p.gamma, 10), rtol=1e-12)
    assert found.facts[1] == pytest.approx(reference.quantization_error(p.Y, p.gamma, p.mu))
    np.testing.assert_array_equal(found.winners, best_known(p))


# ------------------------------------------------------------------------------------------- short candidate lists


@given(st.integers(0, 10_000), st.integers(1, 4), st.sampled_from([0.01, 0.3, 5.0]))
def test_the_bound_cannot_fall(seed: int, truncation: int, sigma2: float) -> None:
    p = problem(seed, truncation, n_candidates=4, n=25)
    old = reference.bound(p.Y, p.gamma, p.mu, sigma2, p.K)
    found = search(p, sigma2)
    assert bound_of(p, sigma2, found) >= old - 1e-9 * abs(old)
    assert bound_of(p, sigma2, found) == pytest.approx(reference.bound(p.Y, p.gamma, p.mu, sigma2, found.winners))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("truncation", "n_candidates"), [(3, 4), (3, 6), (FEW, FEW), (FEW + 1, 7)])
def test_old_winners_outside_the_list_give_way_only_to_nearer_candidates(
    truncation: int, n_candidates: int, seed: int
) -> None:
    p = problem(seed, truncation, n_candidates)
    found = search(p, 0.5)
    np.testing.assert_array_equal(found.winners, best_known(p))
    assert_sums(p, 0.5, found, 1e-6)


def test_distances_to_winners_outside_the_list_are_counted() -> None:
    p = problem(4, 3, n_candidates=4)
    outside = sum(len(np.setdiff1d(k, p.candidates[k[0]])) for k in p.K)
    assert search(p, 0.5).facts[5] == 80 * 4 + outside


# --------------------------------------------------------------------------------------------------------- filling


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_candidates", range(1, 10))
def test_any_number_of_candidates_can_be_searched(n_candidates: int, dtype: type) -> None:
    p = problem(n_candidates, min(n_candidates, 3), n_candidates, dtype)
    found = search(p, 0.6)
    np.testing.assert_array_equal(found.winners, best_known(p))
    assert_sums(p, 0.6, found, 1e-6 if dtype is np.float64 else 1e-4)
    outside = sum(len(np.setdiff1d(k, p.candidates[k[0]])) for k in p.K)
    assert found.facts[5] == 80 * n_candidates + outside


@pytest.mark.parametrize("truncation", [3, FEW, FEW + 1, 7])
@pytest.mark.parametrize("n_clusters", [7, 9])
def test_all_candidates_win_before_one_that_is_none(n_clusters: int, truncation: int) -> None:
    p = problem(9, truncation, n_clusters, n_clusters=n_clusters)
    p.K[:, 1:] = -1
    found = search(p, 0.6)
    np.testing.assert_array_equal(found.winners, best_known(p))


@pytest.mark.parametrize(("dtype", "far"), [(np.float32, 1e18), (np.float32, 5e18), (np.float64, 1e30)])
@pytest.mark.parametrize("truncation", [3, FEW + 1])
def test_even_clusters_at_the_end_of_the_range_win_before_a_candidate_that_is_none(
    truncation: int, dtype: type, far: float
) -> None:
    p = problem(10, truncation, truncation, dtype, n=8, n_clusters=truncation)
    p.K[:] = [0, *[-1] * (truncation - 1)]
    p.mu[-2:] = [[far, 0, 0], [0, 2 * far, 0]]
    np.testing.assert_array_equal(search(p, 0.6).winners, best_known(p))


@pytest.mark.parametrize("far", [1e18, 5e18, 8e18])
@pytest.mark.parametrize("truncation", [3, FEW])
def test_in_steps_even_clusters_at_the_end_of_the_range_win_before_a_candidate_that_is_none(
    truncation: int, far: float
) -> None:
    p = problem(10, truncation, truncation, np.float32, n=POINTS, n_clusters=truncation, D=65)
    p.K[:] = [0, *[-1] * (truncation - 1)]
    p.mu[-2:] = 0
    p.mu[-2, 0], p.mu[-1, 1] = far, 2 * far
    found, as_floats = search(p, 30.0, in_steps=True), search(p, 30.0)
    np.testing.assert_array_equal(found.winners, as_floats.winners)
    assert all(set(k) == set(range(truncation)) for k in found.winners.tolist())


@given(
    st.sampled_from([1, ROUND - 1, ROUND, ROUND + 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 3]),
    st.integers(1, FEW + 2),
    st.integers(0, 1000),
)
def test_blocks_of_any_size_are_searched_exactly(n: int, truncation: int, seed: int) -> None:
    p = problem(seed, truncation, n_candidates=7, n=n, n_clusters=8, D=2)
    p.K[:, 0] = seed % 8  # all in one cell
    p.K[:, 1:] = -1
    found = search(p, 0.6)
    np.testing.assert_array_equal(found.winners, best_known(p))
    assert_sums(p, 0.6, found, 1e-6)
    assert found.facts[5] == n * 7


@pytest.mark.parametrize("truncation", [3, FEW + 1])
@pytest.mark.parametrize("D", [3, 130])
def test_what_fills_up_a_block_changes_no_point(D: int, truncation: int) -> None:
    p = problem(11, truncation, n_candidates=7, n=BLOCK + 21, n_clusters=8, D=D)
    p.K[:, 0] = np.repeat([0, 1], [BLOCK + 10, 11])
    p.K[:, 1:] = -1
    together = search(p, 0.1 * D)
    for points_per_task in (1, ROUND - 1, ROUND + 1, BLOCK):
        apart = search(p, 0.1 * D, points_per_task=points_per_task)
        np.testing.assert_array_equal(apart.winners, together.winners)
        np.testing.assert_allclose(apart.masses, together.masses, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(apart.shifts, together.shifts, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(apart.facts, together.facts, rtol=1e-12)


# -------------------------------------------------------------------------------------------------- short integers


def in_one_cell(seed: int, n: int, truncation: int, n_candidates: int = 20, D: int = 65) -> Problem:
    """Wide rows, all of one cluster, whose other winners are any."""
    p = problem(seed, truncation, n_candidates, np.float32, n=n, n_clusters=24, D=D)
    for k in p.K:
        k[k == 0], k[0] = k[0], 0
    return p


def costs_of(p: Problem, winners: np.ndarray) -> np.ndarray:
    distances = reference.squared_distances(p.Y.astype(np.float64), p.mu.astype(np.float64))
    return np.take_along_axis(distances, winners.astype(np.int64), axis=1)


@given(st.integers(0, 10_000), st.integers(1, FEW), st.sampled_from([POINTS, BLOCK + 9, 2 * BLOCK + 1]))
def test_in_steps_the_best_are_found_to_rounding(seed: int, truncation: int, n: int) -> None:
    p = in_one_cell(seed, n, truncation)
    found, best = search(p, 30.0, in_steps=True), costs_of(p, best_known(p))
    np.testing.assert_allclose(costs_of(p, found.winners), best, rtol=1e-3)
    assert_sums(p, 30.0, found, 1e-4)
    assert found.facts[2] == pytest.approx(float(p.gamma @ costs_of(p, found.winners)[:, 0]), rel=1e-5)
    outside = sum(len(np.setdiff1d(k, p.candidates[0])) for k in p.K)
    assert found.facts[5] >= n * 20 + outside
    bound = reference.bound(p.Y.astype(np.float64), p.gamma, p.mu.astype(np.float64), 30.0, found.winners)
    assert bound_of(p, 30.0, found) == pytest.approx(bound, rel=1e-6)


@given(st.integers(0, 10_000), st.integers(1, FEW))
def test_no_old_winner_gives_way_to_what_is_rounded(seed: int, truncation: int) -> None:
    """Means so near to each other that steps cannot tell which is nearer."""
    p = in_one_cell(seed, POINTS, truncation)
    rng = np.random.default_rng(seed)
    p.mu[1:] = p.mu[1] + (3e-5 * rng.normal(size=p.mu[1:].shape)).astype(np.float32)
    p.Y[:] = p.mu[0] + rng.normal(size=p.Y.shape).astype(np.float32)
    found = search(p, 30.0, in_steps=True)
    before, after = np.sort(costs_of(p, p.K), axis=1), costs_of(p, found.winners)
    assert (after <= before * (1 + 5e-7)).all()  # as floats have it, which costs of old winners come from
    assert all(len(set(k)) == truncation for k in found.winners.tolist())


def test_winners_not_known_yet_are_found_in_steps() -> None:
    p = in_one_cell(12, BLOCK, 4)
    p.K[:, 1:] = -1
    np.testing.assert_allclose(
        costs_of(p, search(p, 30.0, in_steps=True).winners), costs_of(p, best_known(p)), rtol=1e-3
    )


def test_short_tasks_are_not_searched_in_steps() -> None:
    p = in_one_cell(13, 2 * POINTS - 1, 3)
    apart = search(p, 30.0, points_per_task=POINTS - 1, in_steps=True)
    as_floats = search(p, 30.0, points_per_task=POINTS - 1)
    np.testing.assert_array_equal(apart.facts, as_floats.facts)
    np.testing.assert_array_equal(apart.shifts, as_floats.shifts)
    together = search(p, 30.0, in_steps=True)
    assert together.facts[2] != as_floats.facts[2]  # costs are added up in another order: it was searched in steps
    assert together.facts[2] == pytest.approx(as_floats.facts[2], rel=1e-5)


def test_long_and_short_tasks_follow_each_other() -> None:
    p = problem(14, 3, 20, np.float32, n=400, n_clusters=24, D=65)
    p.K[:, 0] = np.repeat([0, 1, 2, 3], [100, 20, 190, 90])
    for k in p.K:
        k[1:] = np.setdiff1d(np.arange(4, 24), k)[:2]
    found = search(p, 30.0, points_per_task=80, in_steps=True)  # two long ones of a cell, a short one after
    np.testing.assert_allclose(costs_of(p, found.winners), costs_of(p, best_known(p)), rtol=1e-3)
    assert_sums(p, 30.0, found, 1e-4)
    for cuts in ((1,), (4,), (2, 5)):
        shared = search(p, 30.0, cuts, points_per_task=80, in_steps=True)
        np.testing.assert_array_equal(shared.shifts, found.shifts)
        np.testing.assert_array_equal(shared.winners, found.winners)


# ---------------------------------------------------------------------------------------------------------- blocks


def test_long_tasks_hand_their_sums_over_in_between() -> None:
    n = BLOCK * (BLOCKS_PER_FLUSH + 1) + 7
    p = problem(5, 2, n_candidates=2, n=n, n_clusters=2, D=1)
    p.K[:] = [0, 1]
    assert_sums(p, 0.5, search(p, 0.5), 1e-6)


@pytest.mark.parametrize("sigma2", [None, 0.5])
def test_sums_do_not_depend_on_who_runs_which_task(sigma2: float | None) -> None:
    p = problem(6, 3, n_candidates=4, dtype=np.float32)
    alone = search(p, sigma2, points_per_task=5)
    for cuts in ((3,), (1, 9, 14)):
        shared = search(p, sigma2, cuts, points_per_task=5)
        np.testing.assert_array_equal(shared.shifts, alone.shifts)
        np.testing.assert_array_equal(shared.masses, alone.masses)
        np.testing.assert_array_equal(shared.winners, alone.winners)
        np.testing.assert_array_equal(shared.facts, alone.facts)


@pytest.mark.parametrize("n_candidates", [4, 10])
def test_sums_are_exact_multiples_of_a_quantum(n_candidates: int) -> None:
    p = problem(7, 3, n_candidates, np.float32)
    found = search(p, 0.5)
    rounding = Extent.of(p.Y, p.gamma, Workers(1)).rounding(Natural.shared(p.mu))
    for sums, magic in ((found.shifts, rounding.shifts[rounding.rows]), (found.masses, rounding.masses)):
        quantum = magic / (1.5 * 2.0**52)
        assert (sums / quantum % 1 == 0).all()
