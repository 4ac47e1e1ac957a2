from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import chisquare

from vcgmm.algorithm import reference
from vcgmm.algorithm.seeding.afkmc2 import (
    CHAINS,
    Seeds,
    afkmc2,
    assign,
    d2_masses,
    draw_one,
    kmeans_plus_plus,
    random_points,
)
from vcgmm.parallel import Workers

INLINE = Workers(1)
Y = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0], [4.0, 4.0], [5.0, 3.0]])
GAMMA = np.array([1.0, 2.0, 1.0, 0.5, 3.0])


def silent(amount: int) -> None:
    """No progress is told."""


def run_afkmc2(points: np.ndarray, weights: np.ndarray, n: int, m: int, seed: int = 0) -> Seeds:
    return afkmc2(points, weights, n, m, np.random.default_rng(seed), INLINE, silent)


def run_kmeans_plus_plus(points: np.ndarray, weights: np.ndarray, n: int, seed: int = 0) -> Seeds:
    return kmeans_plus_plus(points, weights, n, np.random.default_rng(seed), INLINE, silent)


def d2_triples() -> dict[tuple[int, ...], float]:
    """Probability of every first, second and third centre under exact D^2 sampling."""
    triples = {}
    for triple in itertools.permutations(range(len(Y)), 3):
        first, second, third = triple
        after_one = reference.d2_probabilities(Y, GAMMA, Y[[first]])
        after_two = reference.d2_probabilities(Y, GAMMA, Y[[first, second]])
        triples[triple] = GAMMA[first] / GAMMA.sum() * after_one[second] * after_two[third]
    return triples


def p_value(triples: list[tuple[int, ...]]) -> float:
    """How well triples of centres agree with D^2 sampling (chi-square)."""
    expected = d2_triples()
    assert set(triples) <= set(expected)
    observed = [triples.count(triple) for triple in expected]
    return float(chisquare(observed, len(triples) * np.array(list(expected.values()))).pvalue)


def distinct(points: np.ndarray, seeds: Seeds) -> int:
    return len(np.unique(points[seeds.indices], axis=0))


# --------------------------------------------------------------------------------------------------------- AFK-MC²


@pytest.mark.parametrize(("chain_length", "agrees"), [(1, False), (30, True)])
def test_chains_approach_d2_sampling_as_they_grow(chain_length: int, agrees: bool) -> None:
    triples = [tuple(run_afkmc2(Y, GAMMA, 3, chain_length, seed).indices) for seed in range(1500)]
    assert p_value(triples) > 1e-3 if agrees else p_value(triples) < 1e-6


@pytest.mark.parametrize("chain_length", [1, 5])
def test_no_centre_is_repeated_over_several_batches(chain_length: int) -> None:
    n_clusters = 2 * CHAINS + 10
    points = np.random.default_rng(0).normal(size=(n_clusters + 20, 3)).astype(np.float32)
    told: list[int] = []
    seeds = afkmc2(
        points, np.ones(len(points)), n_clusters, chain_length, np.random.default_rng(1), INLINE, told.append
    )
    assert distinct(points, seeds) == n_clusters
    assert sum(told) == n_clusters


def test_repeated_points_are_no_second_centres() -> None:
    points = np.repeat(np.random.default_rng(2).normal(size=(9, 2)), 30, axis=0).astype(np.float32)
    assert distinct(points, run_afkmc2(points, np.ones(270), 9, 2)) == 9


def test_chains_that_meet_only_centres_fall_back_to_d2_sampling() -> None:
    points = np.vstack([np.zeros((500, 2)), np.eye(2) * 1e-3, -np.eye(2) * 1e-3])
    seeds = run_afkmc2(points, np.array([1e9] * 500 + [1e-9] * 4), 5, 1)
    assert distinct(points, seeds) == 5


def test_chains_that_meet_only_centres_go_on_at_little_cost() -> None:
    # One point holds nearly all of the proposal, so that every chain begins, and most end, at the first centre.
    rng = np.random.default_rng(0)
    points = np.vstack([np.zeros((1, 2)), rng.normal(size=(4000, 2))])
    weights = np.r_[1e7, np.ones(4000)]
    seeds = run_afkmc2(points, weights, 30, 2)
    assert distinct(points, seeds) == 30
    assert seeds.n_evaluations < 4001 + 30 * 30 * 40  # far from a pass over all points for each centre


def test_more_centres_than_points_repeat_some() -> None:
    points = np.array([[0.0], [0.0], [1.0]])
    seeds = run_afkmc2(points, np.ones(3), 3, 2)
    assert distinct(points, seeds) == 2
    same = run_afkmc2(np.zeros((4, 1)), np.ones(4), 3, 2)
    assert len(same.indices) == 3


def test_seeds_do_not_depend_on_the_number_of_threads() -> None:
    points = np.random.default_rng(3).normal(size=(2000, 4)).astype(np.float32)
    weights = np.random.default_rng(4).uniform(0.5, 2.0, 2000)
    chosen = []
    for n_threads in (1, 3):
        with Workers(n_threads) as workers:
            chosen.append(afkmc2(points, weights, 150, 4, np.random.default_rng(5), workers, silent).indices)
            chosen.append(kmeans_plus_plus(points, weights, 20, np.random.default_rng(5), workers, silent).indices)
    np.testing.assert_array_equal(chosen[0], chosen[2])
    np.testing.assert_array_equal(chosen[1], chosen[3])


# ------------------------------------------------------------------------------------------------------- k-means++


def test_kmeans_plus_plus_is_d2_sampling() -> None:
    triples = [tuple(run_kmeans_plus_plus(Y, GAMMA, 3, seed).indices) for seed in range(2000)]
    assert p_value(triples) > 1e-3


def test_kmeans_plus_plus_repeats_no_point_while_others_remain() -> None:
    points = np.repeat(np.random.default_rng(6).normal(size=(9, 2)), 30, axis=0).astype(np.float32)
    seeds = run_kmeans_plus_plus(points, np.ones(270), 12)
    assert distinct(points, seeds) == 9
    assert len(np.unique(points[seeds.indices[:9]], axis=0)) == 9
    assert seeds.n_evaluations == 12 * 270


# --------------------------------------------------------------------------------------------------- random points


def test_random_points_are_drawn_by_weight() -> None:
    firsts = [random_points(Y, GAMMA, 2, np.random.default_rng(seed)).indices[0] for seed in range(2000)]
    assert chisquare(np.bincount(firsts, minlength=5), 2000 * GAMMA / GAMMA.sum()).pvalue > 1e-3


def test_random_points_are_different_first() -> None:
    points = np.repeat(np.arange(6.0), 10)[:, None]
    for seed in range(5):
        seeds = random_points(points, np.ones(60), 8, np.random.default_rng(seed))
        assert distinct(points, Seeds(seeds.indices[:6], 0)) == 6
        assert len(set(seeds.indices)) == 8


# ----------------------------------------------------------------------------------------------------- small parts


def test_masses_are_weighted_squared_distances_and_zero_at_the_centres() -> None:
    masses = d2_masses(Y, GAMMA, Y[[1, 3]], INLINE)
    np.testing.assert_allclose(masses, GAMMA * reference.squared_distances(Y, Y[[1, 3]]).min(axis=1))
    assert masses[1] == masses[3] == 0.0


def test_a_draw_never_meets_a_point_without_mass() -> None:
    masses = np.array([0.0, 1.0, 0.0, 3.0, 0.0])
    assert draw_one(masses, 0.0) == 1
    assert draw_one(masses, 0.2499) == 1
    assert draw_one(masses, 0.25) == 3
    assert draw_one(masses, np.nextafter(1.0, 0.0)) == 3
    assert draw_one(masses, 1.0) == 3


def test_a_start_from_given_means_knows_every_nearest_cluster() -> None:
    means = Y[[0, 3]] + 0.1
    start = assign(Y, GAMMA, means, INLINE)
    np.testing.assert_array_equal(start.labels, reference.squared_distances(Y, means).argmin(axis=1))
    assert start.error == pytest.approx(reference.quantization_error(Y, GAMMA, means))
    assert start.n_evaluations == 10
