"""What E-steps of clusters with weights and variances of their own owe to EM, wherever they run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from vcgmm.algorithm.models import reference
from vcgmm.algorithm.models.families import FAMILIES
from vcgmm.algorithm.models.mixture import Mixture
from vcgmm.algorithm.models.mstep import joint_m_step

KINDS = pytest.mark.parametrize("kind", ["isotropic", "spherical", "diag", "tied_diag"])
N, C = 120, 9


def problem(place: Any, kind: str) -> tuple[np.ndarray, np.ndarray, Mixture]:
    """Points, weights and a mixture of a kind, all of them numbers that a GPU has too."""
    rng, D = np.random.default_rng(0), max(5, place.n_features)
    centres = rng.normal(size=(C, D)) * (5 / D) ** 0.5  # as near in many dimensions as in five, and none loses all
    Y = (centres[np.arange(N) % C] + rng.normal(size=(N, D))).astype(np.float32).astype(place.dtype)
    gamma = rng.uniform(0.5, 2.0, N).astype(np.float32).astype(np.float64)
    family = FAMILIES[kind]
    shape = (1 if family.shared else C, family.n_squares(D))
    spread = 0.6 * (5 / D) ** 0.5  # in many dimensions a small difference leaves clusters without points
    variances = np.broadcast_to(rng.uniform(1.4 - spread, 1.4 + spread, shape), (C, shape[1])).copy()
    means = (centres + 0.3 * rng.normal(size=(C, D))).astype(np.float32).astype(np.float64)
    return Y, gamma, Mixture(means, variances, rng.dirichlet(np.full(C, 3.0)))


def joints_of(Y: np.ndarray, mixture: Mixture) -> np.ndarray:
    variances = np.broadcast_to(mixture.variances, mixture.means.shape)
    return reference.log_joint(Y.astype(np.float64), mixture.means, variances, mixture.weights)


def make(place: Any, kind: str, truncation: int, n_candidates: int) -> tuple[Any, Mixture]:
    Y, gamma, mixture = problem(place, kind)
    labels = joints_of(Y, mixture).argmax(1).astype(np.int32)
    return place.joint_search(Y, gamma, labels, kind, (C, truncation, 3, n_candidates)), mixture


def fetched(place: Any, mixture: Mixture) -> Mixture:
    return Mixture(*(place.fetch(part) for part in (mixture.means, mixture.variances, mixture.weights)))


@KINDS
def test_with_all_clusters_as_winners_it_is_exact_em(blocked_place: Any, kind: str) -> None:
    place = blocked_place
    search, mixture = make(place, kind, C, C)
    found = search.joint_e_step(place.send_mixture(mixture))
    Y, gamma, _ = place.data(search)
    joints, everything = joints_of(Y, mixture), np.tile(np.arange(C), (N, 1))
    s = reference.responsibilities(joints, everything)
    assert found.log_sum == pytest.approx(reference.bound(joints, gamma, everything), rel=place.bound)
    np.testing.assert_allclose(place.fetch(found.masses), gamma @ s, rtol=place.sums, atol=place.sums)
    new = joint_m_step(found, place.send_mixture(mixture), FAMILIES[kind], learned=True, floor=np.array([1e-9]))
    mu, v, pi = reference.m_step(Y, gamma, s, kind)
    np.testing.assert_allclose(place.fetch(new.means), mu, atol=place.sums)
    np.testing.assert_allclose(np.broadcast_to(place.fetch(new.variances), v.shape), v, rtol=10 * place.sums)
    np.testing.assert_allclose(place.fetch(new.weights), pi, rtol=10 * place.sums)
    np.testing.assert_allclose(search.sums, gamma @ Y, rtol=1e-5)
    np.testing.assert_allclose(search.squares, gamma @ Y**2, rtol=1e-5)


@KINDS
def test_the_bound_is_that_of_the_winners_and_does_not_fall(blocked_place: Any, kind: str) -> None:
    place = blocked_place
    search, mixture = make(place, kind, 3, 4)
    now, bounds = place.send_mixture(mixture), []
    for step in range(6):
        found = search.joint_e_step(now)
        Y, gamma, winners = place.data(search)
        joints = joints_of(Y, fetched(place, now))
        slack = place.bound * abs(found.log_sum)
        assert found.log_sum == pytest.approx(reference.bound(joints, gamma, winners), abs=slack)
        assert found.log_sum <= float(gamma @ np.logaddexp.reduce(joints, axis=1)) + slack
        bounds.append(found.log_sum)
        now = joint_m_step(found, now, FAMILIES[kind], learned=True, floor=np.array([1e-9]))
        after = reference.bound(joints_of(Y, fetched(place, now)), gamma, winners)
        assert after >= found.log_sum - slack
        if step == 3:
            search.link_anew()
    assert (np.diff(bounds) >= -place.bound * np.abs(bounds[1:])).all()
    assert bounds[-1] > bounds[0]
