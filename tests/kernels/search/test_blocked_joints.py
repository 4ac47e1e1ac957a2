from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcgmm.algorithm.cells.extent import Extent
from vcgmm.algorithm.cells.natural import Natural
from vcgmm.algorithm.cells.neighbourhoods import sort_by_cluster
from vcgmm.algorithm.cells.sums import Sums
from vcgmm.algorithm.models import reference
from vcgmm.algorithm.models.mixture import Mixture
from vcgmm.kernels.cells.links import link_groups
from vcgmm.kernels.parts.selection import FEW, key_indices, key_type
from vcgmm.kernels.search.blocked import search_tasks
from vcgmm.parallel import Workers

pytestmark = pytest.mark.interpreted


@dataclass
class Problem:
    Y: np.ndarray
    gamma: np.ndarray
    mixture: Mixture
    K: np.ndarray  # old winners; the first says which cluster's candidates a point searches
    candidates: np.ndarray

    def joints(self) -> np.ndarray:
        """Log joints of all pairs, from the parameters as the kernel has them."""
        natural = self.mixture.natural(self.Y.dtype)
        means, v = natural.means.astype(np.float64), 0.5 / natural.precisions.astype(np.float64)
        v = np.broadcast_to(v, means.shape)
        return reference.log_joint(self.Y.astype(np.float64), means, v, self.mixture.weights)


def problem(
    seed: int,
    truncation: int,
    n_candidates: int,
    *,
    by_feature: bool,
    dtype: type = np.float64,
    n: int = 60,
    C: int = 10,
    D: int = 3,
) -> Problem:
    """Random points and clusters of very different widths and weights; candidates are itself and random others."""
    rng = np.random.default_rng(seed)
    others = np.array([rng.permutation(np.delete(np.arange(C), c)) for c in range(C)])
    variances = 10.0 ** rng.uniform(-2, 1, size=(C, D if by_feature else 1))
    mixture = Mixture(rng.normal(size=(C, D)), variances, rng.dirichlet(np.ones(C)))
    return Problem(
        Y=rng.normal(size=(n, D)).astype(dtype),
        gamma=rng.uniform(0.5, 3.0, n),
        mixture=mixture,
        K=np.array([rng.permutation(C)[:truncation] for _ in range(n)], np.int32),
        candidates=np.hstack([np.arange(C)[:, None], others[:, : n_candidates - 1]]).astype(np.int32),
    )


@dataclass
class Found:
    winners: np.ndarray
    shifts: np.ndarray
    scatters: np.ndarray
    masses: np.ndarray
    facts: np.ndarray  # summed over tasks: log sum, cost, cost of the first, weight, moved, evaluations
    bound: float


def search(p: Problem, cuts: tuple[int, ...] = (), farthest: float | None = None) -> Found:
    """One pass over all points: `cuts` part the tasks into calls with sums of their own, as threads would."""
    natural = p.mixture.natural(p.Y.dtype)
    n_clusters = len(natural.means)
    order, start = sort_by_cluster(p.K[:, 0], n_clusters)
    task_cell = np.flatnonzero(np.diff(start)).astype(np.int32)
    task_start = np.append(start[task_cell], len(p.Y))
    n_candidates = p.candidates.shape[1]
    indices = key_indices(n_candidates, key_type(p.Y.dtype, n_candidates))
    extent = replace(Extent.of(p.Y, p.gamma, Workers(1)), squares=p.gamma @ p.Y.astype(np.float64) ** 2)
    rounding = extent.rounding(natural)
    winners, facts = p.K.copy(), np.zeros((len(task_cell), 6))
    limits = [0, *cuts, len(task_cell)]
    shifts = np.zeros((len(limits), *natural.means.shape))
    scatters = np.zeros((len(limits), n_clusters, 2, natural.precisions.shape[1]))
    masses = np.zeros((len(limits), n_clusters))
    for i, (first, last) in enumerate(itertools.pairwise(limits)):
        search_tasks(
            first, last, task_cell, task_start, p.Y, p.gamma, order, p.candidates, natural.means,
            natural.precisions, natural.offsets, winners, 1.0, indices, None,
            natural.farthest if farthest is None else farthest, rounding.shifts, rounding.scatters, rounding.rows,
            rounding.masses, shifts[i], scatters[i], masses[i], facts,
        )  # fmt: skip
    totals = facts.sum(axis=0)
    bound = float(totals[0] - p.gamma.sum() * natural.constant)
    return Found(winners, shifts.sum(axis=0), scatters.sum(axis=0).sum(axis=1), masses.sum(axis=0), totals, bound)


def assert_as_reference(p: Problem, found: Found, rtol: float) -> None:
    """Winners, bound and sums are those of the reference."""
    joints = p.joints()
    spaces = [np.union1d(p.candidates[k[0]], k[k >= 0]) for k in p.K]
    best = [reference.winners_of(row, space, p.K.shape[1]) for row, space in zip(joints, spaces, strict=True)]
    np.testing.assert_allclose(
        np.take_along_axis(joints, found.winners.astype(np.int64), axis=1),
        np.take_along_axis(joints, np.array(best), axis=1),
        rtol=rtol,
        atol=100 * rtol,
    )
    assert found.bound == pytest.approx(reference.bound(joints, p.gamma, found.winners), rel=rtol)
    s = p.gamma[:, None] * reference.responsibilities(joints, found.winners)
    mu = p.mixture.natural(p.Y.dtype).means.astype(np.float64)
    differences = p.Y.astype(np.float64)[:, None] - mu
    squares = np.einsum("nc,ncd->cd", s, differences**2)
    if found.scatters.shape[1] != squares.shape[1] or squares.shape[1] == 1:
        squares = squares.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found.masses, s.sum(axis=0), rtol=rtol, atol=100 * rtol)
    np.testing.assert_allclose(found.shifts, np.einsum("nc,ncd->cd", s, differences), rtol=rtol, atol=100 * rtol)
    np.testing.assert_allclose(found.scatters, squares, rtol=rtol, atol=100 * rtol)
    assert found.facts[3] == pytest.approx(p.gamma.sum())
    assert found.facts[4] == np.count_nonzero(found.winners[:, 0] != p.K[:, 0])


@pytest.mark.parametrize("by_feature", [False, True])
@pytest.mark.parametrize("truncation", [1, 4, FEW, FEW + 1, 10])
def test_a_search_is_that_of_the_reference(truncation: int, by_feature: bool) -> None:
    p = problem(truncation, truncation, n_candidates=10, by_feature=by_feature)
    found = search(p)
    assert_as_reference(p, found, 1e-7)
    assert found.facts[5] == 60 * 10


@given(seed=st.integers(0, 1 << 20), D=st.sampled_from([1, 2, 5]), by_feature=st.booleans())
def test_old_winners_outside_the_list_are_kept_unless_others_cost_less(
    seed: int, D: int, by_feature: bool
) -> None:
    p = problem(seed, 3, n_candidates=4, by_feature=by_feature, D=D, n=40)
    found = search(p)
    assert_as_reference(p, found, 1e-7)
    old = reference.bound(p.joints(), p.gamma, p.K)
    assert found.bound >= old - 1e-9 * abs(old)  # Proposition 1


@pytest.mark.parametrize("by_feature", [False, True])
@pytest.mark.parametrize("offset", [0.0, 300.0])
def test_float32_is_exact_up_to_rounding(offset: float, by_feature: bool) -> None:
    p = problem(3, 4, n_candidates=10, by_feature=by_feature, dtype=np.float32)
    p.Y += np.float32(offset)
    p.mixture = Mixture(p.mixture.means + offset, p.mixture.variances, p.mixture.weights)
    assert_as_reference(p, search(p), 2e-3 if offset else 2e-4)


@pytest.mark.parametrize("by_feature", [False, True])
def test_far_and_narrow_clusters_are_taken_directly_with_the_same_result(by_feature: bool) -> None:
    p = problem(5, 3, n_candidates=10, by_feature=by_feature)
    direct = search(p, farthest=0.0)
    assert_as_reference(p, direct, 1e-7)
    # Only a cell's own cluster lies at no distance from its mean; each of the others is computed once, new or old.
    taken = [
        (set(new) | set(old)) - {old[0]} for new, old in zip(direct.winners.tolist(), p.K.tolist(), strict=True)
    ]
    assert direct.facts[5] == 60 * 10 + sum(map(len, taken))
    np.testing.assert_array_equal(direct.winners, search(p).winners)


def test_a_narrow_cluster_far_from_the_cell_keeps_its_digits_in_float32() -> None:
    # 2,000 points of standard deviation 1e-3, at a distance of 100 from the mean of the cell in which they are.
    rng = np.random.default_rng(0)
    Y = (100.0 + 1e-3 * rng.normal(size=(2000, 2))).astype(np.float32)
    means = np.array([[0.0, 0.0], [100.0, 100.0]])
    mixture = Mixture(means, np.array([[1e4], [1e-6]]), np.array([0.5, 0.5]))
    p = Problem(Y, np.ones(len(Y)), mixture, np.zeros((len(Y), 2), np.int32), np.array([[0, 1], [1, 0]], np.int32))
    p.K[:, 1] = -1
    found = search(p)
    assert (found.winners[:, 0] == 1).all()
    variance = found.scatters[1, 0] / (2 * found.masses[1])
    assert variance == pytest.approx(((Y.astype(np.float64) - 100.0) ** 2).mean(), rel=1e-5)


@pytest.mark.parametrize("D", [40, 200])
def test_wide_rows_are_searched_alike(D: int) -> None:
    p = problem(8, 2, n_candidates=100, by_feature=True, n=12, C=100, D=D)
    assert_as_reference(p, search(p), 1e-7)


@given(seed=st.integers(0, 1 << 20), by_feature=st.booleans())
def test_sums_do_not_depend_on_how_tasks_are_shared(seed: int, by_feature: bool) -> None:
    p = problem(seed, 3, n_candidates=5, by_feature=by_feature, n=40)
    whole, parts = search(p), search(p, cuts=(2, 5))
    for name in ("winners", "shifts", "scatters", "masses"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(parts, name))


@given(seed=st.integers(0, 1 << 20), by_feature=st.booleans(), sigma2=st.sampled_from([0.1, 0.5, 4.0]))
def test_clusters_of_equal_variance_and_weight_are_the_shared_model(
    seed: int, by_feature: bool, sigma2: float
) -> None:
    p = problem(seed, 3, n_candidates=6, by_feature=by_feature, n=40)
    equal = np.full(10, 0.1)
    p.mixture = Mixture(p.mixture.means, np.full_like(p.mixture.variances, sigma2), equal)
    own = search(p)
    natural = Natural.shared(p.mixture.means)
    sums = Sums(natural, Extent.of(p.Y, p.gamma, Workers(1)).rounding(natural), Workers(1))
    winners = p.K.copy()
    order, start = sort_by_cluster(winners[:, 0], 10)
    sums.search(p.Y, p.gamma, winners, order, start, p.candidates, 0.5 / sigma2)
    shared = sums.totals()
    np.testing.assert_array_equal(winners, own.winners)
    np.testing.assert_allclose(shared.shifts, own.shifts, atol=1e-9)
    np.testing.assert_allclose(shared.masses, own.masses, atol=1e-9)
    assert shared.scatter == pytest.approx(own.scatters.sum())
    normaliser = p.gamma.sum() * (np.log(10) + 1.5 * np.log(2 * np.pi * sigma2))
    assert shared.log_sum - normaliser == pytest.approx(own.bound)
    assert (shared.weight, shared.n_moved, shared.n_evaluations) == tuple(own.facts[3:])


@given(seed=st.integers(0, 1 << 20), by_feature=st.booleans(), D=st.sampled_from([1, 3]))
def test_links_rank_by_the_mean_cost_over_a_clusters_members(seed: int, by_feature: bool, D: int) -> None:
    p = problem(seed, 2, 5, by_feature=by_feature, C=12, D=D)
    natural = p.mixture.natural(np.dtype(np.float64))
    neighbors, nearest = np.empty((12, 4), np.int32), np.empty((12, 6), np.int32)
    link_groups(
        0, 1, np.array([0, 12]), np.arange(12, dtype=np.int32), np.zeros((1, 1), np.int32),
        np.empty((12, 0), np.int32), 12, natural.means, natural.variances, natural.precisions, natural.offsets,
        neighbors, nearest, np.empty(1, np.int64),
    )  # fmt: skip
    costs = reference.mean_costs(natural.means, np.broadcast_to(natural.variances, (12, D)), p.mixture.weights)
    np.fill_diagonal(costs, -np.inf)
    expected = np.sort(costs, axis=1)
    np.testing.assert_array_equal(neighbors[:, 0], np.arange(12))
    np.testing.assert_allclose(
        np.take_along_axis(costs, neighbors.astype(np.int64), axis=1)[:, 1:], expected[:, 1:4], rtol=1e-5
    )
    found = np.sort(np.take_along_axis(costs, nearest.astype(np.int64), axis=1), axis=1)
    np.testing.assert_allclose(found[:, 1:], expected[:, 1:6], rtol=1e-5)
