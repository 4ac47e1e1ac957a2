from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcgmm.algorithm.models import reference
from vcgmm.algorithm.models.collapse import drop_collapsed, sow_again
from vcgmm.algorithm.models.exact import Joints
from vcgmm.algorithm.models.families import FAMILIES
from vcgmm.algorithm.models.mixture import DROPPED_COST, Mixture
from vcgmm.algorithm.models.mstep import JointStatistics, joint_m_step

C, D = 4, 3


def statistics_of(Y: np.ndarray, gamma: np.ndarray, s: np.ndarray, mu: np.ndarray, kind: str) -> JointStatistics:
    """Sums about means (C, D), as an E-step hands them over."""
    differences = Y[:, None] - mu
    weighted = gamma[:, None] * s
    squares = np.einsum("nc,ncd->cd", weighted, differences**2)
    return JointStatistics(
        means=mu,
        shifts=np.einsum("nc,ncd->cd", weighted, differences),
        scatters=squares if FAMILIES[kind].by_feature else squares.sum(axis=1, keepdims=True),
        masses=weighted.sum(axis=0),
        log_sum=0.0,
        cell_bounds=np.zeros(len(mu)),
        cell_masses=np.zeros(len(mu)),
        n_evaluations=0,
        noise=1e-15,
    )


def mixture_of(rng: np.random.Generator, kind: str) -> Mixture:
    variances = rng.uniform(0.5, 2.0, size=(C, FAMILIES[kind].n_squares(D)))
    if FAMILIES[kind].shared:
        variances[:] = variances[0]
    return Mixture(rng.normal(size=(C, D)), variances, rng.dirichlet(np.full(C, 5.0)))


def data(seed: int) -> tuple[np.random.Generator, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng, rng.normal(size=(50, D)) * [1.0, 10.0, 0.1], rng.uniform(0.5, 2.0, 50)


@given(seed=st.integers(0, 1 << 20), kind=st.sampled_from(list(FAMILIES)))
def test_an_m_step_is_that_of_the_reference(seed: int, kind: str) -> None:
    rng, Y, gamma = data(seed)
    before = mixture_of(rng, kind)
    s = rng.dirichlet(np.ones(C), size=len(Y))
    new = joint_m_step(statistics_of(Y, gamma, s, before.means, kind), before, FAMILIES[kind], True, np.zeros(1))
    mu, v, pi = reference.m_step(Y, gamma, s, kind)
    np.testing.assert_allclose(new.means, mu, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(np.broadcast_to(new.variances, (C, D)), v, rtol=1e-9)
    np.testing.assert_allclose(new.weights, pi, rtol=1e-12)


@given(
    seed=st.integers(0, 1 << 20),
    kind=st.sampled_from(list(FAMILIES)),
    relaxation=st.floats(0.05, 1.95),
    learned=st.booleans(),
)
def test_every_step_that_is_shorter_than_two_raises_the_bound(
    seed: int, kind: str, relaxation: float, learned: bool
) -> None:
    rng, Y, gamma = data(seed)
    before = mixture_of(rng, kind)
    if not learned:
        before = Mixture(before.means, before.variances, np.full(C, 1 / C))
    K = np.tile(np.arange(C), (len(Y), 1))

    def bound(mixture: Mixture) -> float:
        v = np.broadcast_to(mixture.variances, (C, D))
        return reference.bound(reference.log_joint(Y, mixture.means, v, mixture.weights), gamma, K)

    v = np.broadcast_to(before.variances, (C, D))
    s = reference.responsibilities(reference.log_joint(Y, before.means, v, before.weights), K)
    statistics = statistics_of(Y, gamma, s, before.means, kind)
    new = joint_m_step(statistics, before, FAMILIES[kind], learned, np.full(1, 1e-12), relaxation)
    assert bound(new) >= bound(before) - 1e-9 * abs(bound(before))


def test_variances_never_fall_below_the_floor_nor_below_rounding() -> None:
    # All points of a cluster are equal, and it moved a long way to them: what is left of the squares is rounding.
    before = Mixture(np.zeros((1, 1)), np.ones((1, 1)), np.ones(1))
    sums = statistics_of(np.full((10, 1), 0.1), np.ones(10), np.ones((10, 1)), before.means, "diag")
    sums = JointStatistics(**{**vars(sums), "scatters": sums.scatters * (1 - 1e-6), "noise": 1e-5})
    new = joint_m_step(sums, before, FAMILIES["diag"], True, np.array([1e-12]))
    assert new.variances[0, 0] == pytest.approx(1e-5 * 0.01, rel=1e-3)
    new = joint_m_step(sums, before, FAMILIES["diag"], True, np.array([0.25]))
    assert new.variances[0, 0] == 0.25


def test_a_cluster_without_weight_keeps_its_place_and_width() -> None:
    rng, Y, gamma = data(0)
    before = mixture_of(rng, "diag")
    s = np.zeros((len(Y), C))
    s[:, 1:] = 1 / (C - 1)
    new = joint_m_step(
        statistics_of(Y, gamma, s, before.means, "diag"), before, FAMILIES["diag"], True, np.zeros(1)
    )
    np.testing.assert_array_equal(new.means[0], before.means[0])
    np.testing.assert_array_equal(new.variances[0], before.variances[0])
    assert new.weights[0] == 0.0
    assert new.weights.sum() == pytest.approx(1.0)


# ------------------------------------------------------------------------------------------------------- collapse


def drop(masses: Any, variances: Any, **options: Any) -> Mixture:
    mixture = Mixture(np.zeros((3, 1)), np.array(variances, float)[:, None], np.full(3, 1 / 3))
    settings = {"family": FAMILIES["spherical"], "learned": True, "floor": np.array([1e-6]), "point_weight": 1.0}
    return drop_collapsed(mixture, np.array(masses, float), **{**settings, **options})


def test_clusters_whose_weight_or_variance_collapsed_are_dropped() -> None:
    assert drop([5, 5, 5], [1, 1, 1]).active.all()
    lost = drop([5, 1e-4, 10], [1, 1, 1])
    np.testing.assert_allclose(lost.weights, [1 / 3, 0, 2 / 3])
    np.testing.assert_allclose(drop([5, 1e-4, 10], [1, 1, 1], learned=False).weights, [0.5, 0, 0.5])
    # On a single point; but many equal points are a cluster.
    assert drop([5, 1, 10], [1, 1e-6, 1]).active.tolist() == [True, False, True]
    assert drop([5, 50, 10], [1, 1e-6, 1]).active.all()
    assert drop([5, 1, 10], [1, 1e-6, 1e-6], family=FAMILIES["isotropic"]).active.all()
    # One is always left.
    assert drop([0, 1e-9, 0], [1, 1, 1]).active.tolist() == [False, True, False]


def test_dropped_clusters_are_sown_where_the_bound_is_worst() -> None:
    mixture = Mixture(
        np.array([[0.0], [10.0], [20.0], [5.0]]), np.full((4, 1), 0.01), np.array([0.2, 0.3, 0.5, 0])
    )
    sums = statistics_of(np.zeros((1, 1)), np.ones(1), np.zeros((1, 4)), mixture.means, "spherical")
    facts = {"cell_masses": np.array([10.0, 20.0, 2.0, 0.0]), "cell_bounds": np.array([-10.0, -200.0, -900.0, 0])}
    sums = JointStatistics(**{**vars(sums), **facts})
    sown, places = sow_again(mixture, sums, np.array([3]), True, 1.0, np.random.default_rng(0))
    assert places.tolist() == [3]
    # The third is worse by weight, but holds too few points to be split.
    assert abs(sown.means[3, 0] - 10.0) < 1.0
    np.testing.assert_allclose(sown.weights, [0.2, 0.15, 0.5, 0.15])
    assert sown.variances[3, 0] == 0.01
    equal, _ = sow_again(mixture, sums, np.array([3]), False, 1.0, np.random.default_rng(0))
    np.testing.assert_allclose(equal.weights, np.full(4, 0.25))


def test_no_more_clusters_are_sown_than_can_be_split() -> None:
    mixture = Mixture(np.arange(4.0)[:, None], np.ones((4, 1)), np.array([1.0, 0, 0, 0]))
    sums = statistics_of(np.zeros((1, 1)), np.ones(1), np.zeros((1, 4)), mixture.means, "spherical")
    facts = {"cell_masses": np.array([10.0, 0, 0, 0]), "cell_bounds": np.array([-10.0, 0, 0, 0])}
    sums = JointStatistics(**{**vars(sums), **facts})
    sown, places = sow_again(mixture, sums, np.array([1, 2, 3]), True, 1.0, np.random.default_rng(0))
    assert places.tolist() == [1]
    assert sown.active.tolist() == [True, True, False, False]


def test_of_many_spikes_half_are_dropped_at_once_the_lightest_first() -> None:
    masses = np.array([1.0, 0.9, 1.2, 0.8, 1.1, 1.0])
    mixture = Mixture(np.zeros((6, 1)), np.full((6, 1), 1e-6), np.full(6, 1 / 6))
    left = drop_collapsed(mixture, masses, FAMILIES["spherical"], True, np.array([1e-6]), 1.0)
    assert left.active.tolist() == [False, False, True, False, True, True]


# ------------------------------------------------------------------------------------------------ exact evaluation


@given(seed=st.integers(0, 1 << 20), kind=st.sampled_from(list(FAMILIES)))
def test_exact_searches_are_those_of_the_reference(seed: int, kind: str) -> None:
    rng, Y, _ = data(seed)
    mixture = mixture_of(rng, kind)
    joints = reference.log_joint(Y, mixture.means, np.broadcast_to(mixture.variances, (C, D)), mixture.weights)
    exact = Joints(mixture)
    np.testing.assert_array_equal(exact.labels(Y), joints.argmax(axis=1))
    ids, logs = exact.largest(Y, 2)
    np.testing.assert_allclose(logs, -np.sort(-joints, axis=1)[:, :2], rtol=1e-9)
    np.testing.assert_allclose(np.take_along_axis(joints, ids.astype(np.int64), axis=1), logs, rtol=1e-9)
    np.testing.assert_allclose(exact.log_density(Y), np.logaddexp.reduce(joints, axis=1), rtol=1e-9)


@pytest.mark.parametrize("by_feature", [False, True])
def test_narrow_clusters_far_from_the_origin_keep_their_digits(by_feature: bool) -> None:
    rng = np.random.default_rng(0)
    means, width = rng.uniform(-10, 10, size=(4, 3)), 1e-7
    Y = np.repeat(means, 20, axis=0) + width * rng.normal(size=(80, 3))
    mixture = Mixture(means, np.full((4, 3 if by_feature else 1), width**2), np.full(4, 0.25))
    expected = reference.log_joint(Y, means, np.full((4, 3), width**2), mixture.weights)
    np.testing.assert_allclose(Joints(mixture).log_density(Y), np.logaddexp.reduce(expected, axis=1), atol=1e-6)


def test_dropped_clusters_cost_much_and_are_never_found() -> None:
    rng, Y, _ = data(1)
    mixture = mixture_of(rng, "diag")
    left = Mixture(mixture.means, mixture.variances, np.array([0.5, 0.0, 0.2, 0.3]))
    offsets, _ = left.offsets()
    assert offsets[1] == DROPPED_COST
    assert np.isfinite(left.natural(np.dtype(np.float32)).offsets).all()
    assert not (Joints(left).labels(Y) == 1).any()
