"""The M-step on the sphere, beside its specification and in coordinates that are shifted and scaled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vcgmm.algorithm import reference
from vcgmm.algorithm.coreset.frame import Frame
from vcgmm.algorithm.models.sphere import Sphere, sphere_m_step, turn, unit_vectors
from vcgmm.algorithm.mstep import Statistics


def not_needed(*_: Any) -> float:
    raise AssertionError("no second pass is needed here")


def unit(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return unit_vectors(rng.normal(size=shape))


def problem(seed: int, spread: float = 0.7) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, Frame]:
    """Unit rows in a few directions, weights, responsibilities, unit means, and a frame of theirs."""
    rng = np.random.default_rng(seed)
    Y = unit_vectors(unit(rng, 4, 5)[rng.integers(4, size=60)] + spread * rng.normal(size=(60, 5)))
    gamma, s = rng.uniform(0.1, 3, size=60), rng.dirichlet(np.ones(4), size=60)
    return Y, gamma, s, unit(rng, 4, 5), Frame(Y.mean(axis=0), 4.0, np.dtype(np.float64))


def sums(Y: np.ndarray, gamma: np.ndarray, s: np.ndarray, mu: np.ndarray, frame: Frame) -> Statistics:
    """What an E-step hands over, in local coordinates."""
    Z, means = frame.enter(Y), frame.enter(mu)
    masses = gamma @ s
    return Statistics(
        means=means,
        variance=1.0,
        shifts=(gamma[:, None] * s).T @ Z - masses[:, None] * means,
        masses=masses,
        scatter=float((gamma[:, None] * s * reference.squared_distances(Z, means)).sum()),
        log_sum=0.0,
        total_weight=float(gamma.sum()),
        n_evaluations=0,
    )


@settings(max_examples=30)
@given(st.integers(0, 10_000))
def test_a_plain_step_is_that_of_the_reference(seed: int) -> None:
    Y, gamma, s, mu, frame = problem(seed)
    means, variance = sphere_m_step(sums(Y, gamma, s, mu, frame), Sphere.of(frame), 0.0, not_needed)
    expected_means, expected_variance = reference.sphere_m_step(Y, gamma, s, mu)
    np.testing.assert_allclose(frame.leave(means), expected_means, atol=1e-12)
    assert variance / frame.scale**2 == pytest.approx(expected_variance, rel=1e-9)


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.floats(0.01, 1.99))
def test_steps_of_any_length_up_to_two_lower_the_scatter(seed: int, step: float) -> None:
    Y, gamma, s, mu, frame = problem(seed)
    statistics, sphere = sums(Y, gamma, s, mu, frame), Sphere.of(frame)
    means, variance = sphere_m_step(statistics, sphere, 0.0, not_needed, step)
    D, W = Y.shape[1], gamma.sum()
    direct = (gamma[:, None] * s * reference.squared_distances(frame.enter(Y), means)).sum()
    assert variance * D * W == pytest.approx(direct, rel=1e-9)
    assert direct <= statistics.scatter * (1 + 1e-12)
    np.testing.assert_allclose(np.linalg.norm(frame.leave(means), axis=1), 1.0, rtol=1e-12)
    _, best = sphere_m_step(statistics, sphere, 0.0, not_needed)
    assert best <= variance * (1 + 1e-12)


def test_steps_go_along_the_great_circle() -> None:
    rng = np.random.default_rng(0)
    here, there = unit(rng, 20, 4), unit(rng, 20, 4)
    angles = np.arccos(np.einsum("cd,cd->c", here, there))
    for step in (0.0, 0.5, 1.0, 1.6, 2.0):
        turned = turn(here, there, step)
        np.testing.assert_allclose(np.linalg.norm(turned, axis=1), 1.0)
        np.testing.assert_allclose(np.einsum("cd,cd->c", turned, there), np.cos((step - 1) * angles), atol=1e-12)
    np.testing.assert_allclose(turn(here, here, 1.7), here, rtol=1e-12)
    np.testing.assert_array_equal(turn(np.eye(4), np.eye(4), 1.7), np.eye(4))  # no way to go


def test_a_cluster_without_weight_or_direction_keeps_its_place() -> None:
    Y, gamma, s, mu, frame = problem(1)
    s[:, 1] = 0.0
    s[:, 2] = 0.0
    Y[:2], s[:2], gamma[:2] = [[1, 0, 0, 0, 0], [-1, 0, 0, 0, 0]], [0, 0, 1, 0], 1.0  # these add up to nothing
    for step in (1.0, 1.8):
        means, _ = sphere_m_step(sums(Y, gamma, s, mu, frame), Sphere.of(frame), 0.0, not_needed, step)
        np.testing.assert_allclose(frame.leave(means)[1:3], mu[1:3], atol=1e-12)


def test_where_rounding_would_be_left_a_second_pass_is_taken() -> None:
    rng = np.random.default_rng(2)
    labels, gamma = rng.integers(4, size=60), rng.uniform(0.1, 3, size=60)
    Y = unit_vectors(unit(rng, 4, 5)[labels] + 1e-9 * rng.normal(size=(60, 5)))
    frame = Frame(Y.mean(axis=0), 4.0, np.dtype(np.float64))
    statistics, asked = sums(Y, gamma, np.eye(4)[labels], unit(rng, 4, 5), frame), []

    def again(_: Statistics, means: np.ndarray) -> float:
        asked.append(means)
        return 7.0

    means, variance = sphere_m_step(statistics, Sphere.of(frame), 0.0, again)
    assert asked[0] is means
    assert variance == 7.0 / (5 * gamma.sum())
    assert sphere_m_step(statistics, Sphere.of(frame), 9.0, again)[1] == 9.0


def test_the_sphere_in_other_coordinates() -> None:
    rng = np.random.default_rng(4)
    frame = Frame(rng.normal(size=3), 0.25, np.dtype(np.float32))
    sphere, rows = Sphere.of(frame), rng.normal(size=(10, 3))
    nearest = frame.leave(sphere.nearest(frame.enter(rows, np.dtype(np.float64))))
    np.testing.assert_allclose(nearest, rows / np.linalg.norm(rows, axis=1, keepdims=True), atol=1e-12)
    # The centre itself has no nearest point: any will do, always the same.
    np.testing.assert_allclose(frame.leave(sphere.nearest(sphere.centre[None])), [[1, 0, 0]], atol=1e-12)
