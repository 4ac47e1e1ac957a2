from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcgmm.algorithm import two_level as module
from vcgmm.algorithm.nearest import nearest
from vcgmm.algorithm.seeding import Start, kmeans_plus_plus
from vcgmm.algorithm.two_level import ALONE, BEFORE_A_FIT, Effort, share_by_error, share_by_potential, two_level
from vcgmm.parallel import Workers


def silent(amount: int) -> None:
    """No progress is told."""


def start_of(
    points: np.ndarray,
    weights: np.ndarray,
    n_clusters: int,
    seed: int = 0,
    n_threads: int = 2,
    *,
    effort: Effort = BEFORE_A_FIT,
    labelled: bool = True,
) -> Start:
    with Workers(n_threads) as workers:
        rng = np.random.default_rng(seed)
        return two_level(points, weights, n_clusters, rng, workers, silent, effort=effort, labelled=labelled)


def blobs(n: int, n_blobs: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(n_blobs, 3))[rng.integers(n_blobs, size=n)] * 20 + rng.normal(size=(n, 3))).astype(
        np.float32
    )


@pytest.mark.parametrize(
    ("n", "n_clusters"), [(300, 1), (300, 7), (300, 32), (300, 33), (2000, 150), (60, 60), (33, 33)]
)
def test_there_are_as_many_centres_as_asked_for(n: int, n_clusters: int) -> None:
    start = start_of(blobs(n, 20), np.ones(n), n_clusters)
    assert start.means.shape == (n_clusters, 3)
    assert len(np.unique(start.means, axis=0)) == n_clusters
    assert np.isfinite(start.means).all()


def test_labels_and_error_belong_to_the_centres() -> None:
    points, weights = blobs(1000, 20), np.random.default_rng(1).uniform(0.5, 2.0, 1000)
    start = start_of(points, weights, 70)
    direct = ((points - start.means[start.labels]) ** 2).sum(axis=1)
    assert start.error == pytest.approx(weights @ direct, rel=1e-4)
    assert start.n_evaluations > 0


@pytest.mark.parametrize(
    ("points", "n_clusters"),
    [(blobs(1000, 20), 12), (blobs(1000, 20), 70), (np.repeat(blobs(45, 20), 30, axis=0), 45)],
)
def test_a_start_alone_is_as_good_and_has_labels_where_somebody_asks(points: np.ndarray, n_clusters: int) -> None:
    start = start_of(points, np.ones(len(points)), n_clusters)
    alone, other = (
        start_of(points, np.ones(len(points)), n_clusters, effort=ALONE, labelled=labelled)
        for labelled in (False, True)
    )
    with Workers(1) as workers:
        error = float(nearest(points, alone.means, workers)[1].sum())
    assert error <= 1.1 * start.error + 1e-6
    assert len(np.unique(alone.means, axis=0)) == n_clusters
    assert len(alone.labels) == 0
    assert np.isnan(alone.error)
    assert alone.n_evaluations <= other.n_evaluations <= start.n_evaluations
    np.testing.assert_array_equal(other.means, alone.means)
    direct = ((points - other.means[other.labels]) ** 2).sum()
    assert other.error == pytest.approx(direct, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("n_clusters", [7, 40, 61])
def test_rare_points_among_heavy_duplicates_become_centres(n_clusters: int) -> None:
    points = np.zeros((10_000, 2), np.float32)
    points[np.random.default_rng(2).choice(10_000, 60, replace=False)] = np.random.default_rng(3).normal(
        size=(60, 2)
    )
    start = start_of(points, np.ones(10_000), n_clusters)
    assert len(np.unique(start.means.round(6), axis=0)) == n_clusters
    if n_clusters == 61:  # one for each
        assert start.error < 1e-4 * (points**2).sum()


def test_a_few_points_repeated_equally_often_are_all_found() -> None:
    points = np.repeat(np.random.default_rng(4).normal(size=(40, 2)), 50, axis=0).astype(np.float32)
    start = start_of(points, np.ones(2000), 40)
    assert len(np.unique(start.means.round(4), axis=0)) == 40
    assert start.error < 1e-4


def test_three_levels_find_as_many_centres(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LARGEST_CELL", 5)
    start = start_of(blobs(1500, 30), np.ones(1500), 100)
    assert len(np.unique(start.means, axis=0)) == 100


@pytest.mark.parametrize("n_clusters", [16, 100])
def test_the_error_is_lower_than_that_of_d2_seeds(n_clusters: int) -> None:
    points, weights = blobs(4000, 80, seed=5), np.ones(4000)
    with Workers(2) as workers:
        seeds = kmeans_plus_plus(points, weights, n_clusters, np.random.default_rng(0), workers, silent)
        d2_error = float(nearest(points, points[seeds.indices], workers)[1].sum())
    assert start_of(points, weights, n_clusters).error < 0.8 * d2_error


def test_weights_steer_where_clusters_go() -> None:
    rng = np.random.default_rng(6)
    points = np.vstack([rng.normal(-50, 1, (500, 2)), rng.normal(50, 1, (500, 2))]).astype(np.float32)
    heavy_right = start_of(points, np.repeat([1.0, 1000.0], 500), 40)
    heavy_left = start_of(points, np.repeat([1000.0, 1.0], 500), 40)
    assert (heavy_right.means[:, 0] > 0).sum() > (heavy_left.means[:, 0] > 0).sum()


def test_the_start_does_not_depend_on_the_number_of_threads() -> None:
    points, weights = blobs(3000, 50), np.random.default_rng(7).uniform(0.5, 2.0, 3000)
    alone, together = (start_of(points, weights, 90, n_threads=n) for n in (1, 3))
    np.testing.assert_array_equal(alone.means, together.means)
    np.testing.assert_array_equal(alone.labels, together.labels)
    assert alone.error == together.error


# ---------------------------------------------------------------------------------------------------------- shares


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=8),
    st.integers(0, 50),
    st.data(),
)
def test_shares_sum_to_the_number_of_clusters(
    cells: list[tuple[int, int]], seed: int, data: st.DataObject
) -> None:
    lengths = np.array([drawn + spare for drawn, spare in cells])
    available = np.array([drawn for drawn, _ in cells])
    n_cells = np.count_nonzero(available)
    rng = np.random.default_rng(seed)
    potentials = np.concatenate([np.sort(rng.random(k) * rng.choice([0, 1, 100]))[::-1] for k in lengths])
    n_clusters = data.draw(st.integers(n_cells, available.sum() + 3))
    shares = share_by_potential(potentials, np.concatenate([[0], np.cumsum(lengths)]), available, n_clusters)
    assert shares.sum() == min(n_clusters, available.sum())
    assert (shares <= available).all()
    assert (shares[available > 0] >= 1).all()


@given(st.lists(st.integers(0, 5), min_size=1, max_size=8), st.integers(0, 100), st.integers(1, 30))
def test_shares_go_by_worth_and_among_equals_to_the_first(lengths: list[int], seed: int, n_clusters: int) -> None:
    rng = np.random.default_rng(seed)
    start = np.concatenate([[0], np.cumsum(lengths)])
    potentials = rng.integers(0, 4, start[-1]).astype(float)
    available = np.minimum(lengths, rng.integers(0, 6, len(lengths)))
    ranked = []
    for cell, n_seeds in enumerate(available):
        for k in range(n_seeds):
            at = start[cell] + k
            ranked.append((k > 0, -(potentials[at - 1] / k if k else potentials[at]), at, cell))
    expected = [cell for *_, cell in sorted(ranked)[:n_clusters]]
    shares = share_by_potential(potentials, start, available, n_clusters)
    assert shares.tolist() == np.bincount(np.array(expected, int), minlength=len(lengths)).tolist()


def test_shares_equalise_the_error_per_cluster() -> None:
    halving = 2.0 ** -np.arange(10)
    potentials = np.concatenate([1024 * halving, halving])
    shares = share_by_potential(potentials, np.array([0, 10, 20]), np.array([10, 10]), 11)
    assert shares.tolist() == [9, 2] or shares.tolist() == [10, 1]
    assert share_by_potential(potentials, np.array([0, 10, 20]), np.array([10, 10]), 4).tolist() == [3, 1]


def test_a_cell_expects_its_part_of_its_parents_clusters() -> None:
    errors = np.array([16.0, 1.0, 0.0, 1.0, 0.0])
    sizes = np.array([100, 100, 50, 3, 0])
    parents = np.array([0, 0, 0, 1, 1])
    expected = share_by_error(errors, sizes, parents, np.array([18, 9]))
    assert expected.tolist() == [16, 2, 1, 3, 0]
