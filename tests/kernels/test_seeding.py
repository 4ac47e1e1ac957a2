from __future__ import annotations

import numpy as np
import pytest

from vcgmm.algorithm import reference
from vcgmm.kernels.seeding import lower_distances, run_chains

pytestmark = pytest.mark.interpreted


def chains(
    points: np.ndarray, gamma: np.ndarray, centres: list[int], proposals: np.ndarray, uniforms: np.ndarray
) -> np.ndarray:
    """What a batch of chains chooses, after these centres."""
    q = reference.afkmc2_proposal(points, gamma, centres[0])
    distances = reference.squared_distances(points, points[centres]).min(axis=1)[proposals]
    chosen = np.empty(len(proposals), np.int64)
    run_chains(points[proposals.ravel()], (gamma / q)[proposals], distances, uniforms, chosen)
    return np.where(chosen >= 0, proposals.ravel()[chosen], -1)


def test_distances_are_only_lowered() -> None:
    points = np.random.default_rng(0).normal(size=(10, 3)).astype(np.float32)
    distances = np.full(10, 2.0, np.float32)
    lower_distances(2, 9, points, 4, distances)
    expected = np.minimum(2.0, reference.squared_distances(points, points[4:5])[:, 0])
    np.testing.assert_allclose(distances[2:9], expected[2:9], rtol=1e-5)
    assert distances[4] == 0.0
    assert (distances[[0, 1, 9]] == 2.0).all()


@pytest.mark.parametrize("seed", range(4))
def test_a_batch_of_chains_runs_as_one_chain_after_the_other(seed: int) -> None:
    rng = np.random.default_rng(seed)
    points, gamma = rng.normal(size=(20, 2)), rng.uniform(0.5, 3.0, 20)
    centres = [3, 11]
    q = reference.afkmc2_proposal(points, gamma, centres[0])
    proposals = rng.choice(20, (7, 5), p=q)
    uniforms = rng.random((7, 5))
    chosen = chains(points, gamma, centres, proposals, uniforms)
    for chain in range(7):
        expected = reference.afkmc2_chain(points, gamma, q, points[centres], proposals[chain], uniforms[chain])
        assert chosen[chain] == expected
        centres.append(expected)


def test_a_chain_that_meets_only_centres_chooses_nothing() -> None:
    points, gamma = np.random.default_rng(5).normal(size=(6, 2)), np.ones(6)
    proposals = np.array([[0, 1, 0], [1, 1, 0], [0, 4, 1], [4, 4, 4]])
    chosen = chains(points, gamma, [0, 1], proposals, np.full((4, 3), 0.99))
    assert chosen.tolist() == [-1, -1, 4, -1]


def test_a_chain_leaves_a_centre_whatever_the_random_number() -> None:
    points, gamma = np.random.default_rng(6).normal(size=(6, 2)), np.ones(6)
    chosen = chains(points, gamma, [0], np.array([[0, 5]]), np.ones((1, 2)))
    assert chosen.tolist() == [5]
