"""The Markov chains of AFK-MC^2 are those of the reference, wherever they run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from vcgmm.algorithm import reference

pytestmark = pytest.mark.interpreted


def chains(
    place: Any,
    points: np.ndarray,
    gamma: np.ndarray,
    centres: list[int],
    proposals: np.ndarray,
    uniforms: np.ndarray,
) -> np.ndarray:
    """What a batch of chains chooses, after these centres."""
    q = reference.afkmc2_proposal(points, gamma, centres[0])
    distances = reference.squared_distances(points, points[centres]).min(axis=1)
    chosen = place.chains(points, gamma / q, distances, proposals, uniforms)
    return np.where(chosen >= 0, proposals.ravel()[chosen], -1)


def points_and_weights(seed: int, n: int, n_features: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, n_features)).astype(np.float32).astype(np.float64), rng.uniform(0.5, 3.0, n)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("n", "n_features", "n_chains", "length"), [(20, 2, 7, 5), (400, 19, 40, 30), (50, 3, 1, 9)]
)
def test_a_batch_of_chains_runs_as_one_chain_after_the_other(
    chain_place: Any, seed: int, n: int, n_features: int, n_chains: int, length: int
) -> None:
    points, gamma = points_and_weights(seed, n, n_features)
    rng = np.random.default_rng(seed)
    centres = [3, 11]
    q = reference.afkmc2_proposal(points, gamma, centres[0])
    proposals = rng.choice(n, (n_chains, length), p=q)
    uniforms = rng.random((n_chains, length))
    chosen = chains(chain_place, points, gamma, centres, proposals, uniforms)
    for chain in range(n_chains):
        expected = reference.afkmc2_chain(points, gamma, q, points[centres], proposals[chain], uniforms[chain])
        assert chosen[chain] == expected
        centres.append(expected)


def test_a_chain_that_meets_only_centres_chooses_nothing(chain_place: Any) -> None:
    points, _ = points_and_weights(5, 6)
    proposals = np.array([[0, 1, 0], [1, 1, 0], [0, 4, 1], [4, 4, 4]])
    chosen = chains(chain_place, points, np.ones(6), [0, 1], proposals, np.full((4, 3), 0.99))
    assert chosen.tolist() == [-1, -1, 4, -1]


def test_a_chain_leaves_a_centre_whatever_the_random_number(chain_place: Any) -> None:
    points, _ = points_and_weights(6, 6)
    chosen = chains(chain_place, points, np.ones(6), [0], np.array([[0, 5]]), np.ones((1, 2)))
    assert chosen.tolist() == [5]
