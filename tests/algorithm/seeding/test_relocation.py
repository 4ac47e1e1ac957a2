"""Clusters moved to where more are needed: what is lost and gained adds up, and the error falls."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from vcgmm import VCGMM, quantization_error
from vcgmm.algorithm import reference
from vcgmm.algorithm.cells.neighbourhoods import sort_by_cluster
from vcgmm.algorithm.models.shared import SharedModel
from vcgmm.algorithm.search.blocked import BlockedSearch
from vcgmm.algorithm.seeding.relocation import (
    Relocated,
    Relocating,
    choose_moves,
    errors_and_losses,
    relocate,
    split_in_two,
)
from vcgmm.algorithm.starts import settling
from vcgmm.algorithm.starts.settling import settle
from vcgmm.parallel import Workers


def exact_winners(points: np.ndarray, means: np.ndarray, size: int = 3) -> np.ndarray:
    size = min(size, len(means))
    distances = ((points[:, None].astype(np.float64) - means) ** 2).sum(axis=2)
    return np.argsort(distances, axis=1, kind="stable")[:, :size].astype(np.int32)


def relocated(
    points: np.ndarray, weights: np.ndarray, winners: np.ndarray, means: np.ndarray, workers: Workers
) -> tuple[Relocated, np.ndarray]:
    """What has been moved, and the points' pairs of clusters in the end."""
    found = errors_and_losses(points, weights, winners, means, workers)
    pairs = winners[:, :2].copy()
    return relocate(points, weights, pairs, *found, means, np.random.default_rng(0), workers, NO_ROOM), pairs


def moved(
    points: np.ndarray, weights: np.ndarray, means: np.ndarray, n_threads: int = 2
) -> tuple[Relocated, np.ndarray]:
    """What has been moved, and the labels of the points."""
    winners = exact_winners(points, means)
    with Workers(n_threads) as workers:
        result, pairs = relocated(points, weights, winners, means, workers)
    assert (pairs[:, 1:] == -1).all()
    return result, pairs[:, 0]


def blobs(n: int, centres: np.ndarray, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (centres[np.arange(n) % len(centres)] + 0.1 * rng.normal(size=(n, centres.shape[1]))).astype(np.float32)


NO_ROOM = np.empty(0, np.int32)

CORNERS = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0], [10.0, 10.0]])


# ------------------------------------------------------------------------------------------------ losses and gains


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_losses_are_what_the_error_grows_by_without_a_cluster(dtype: type) -> None:
    rng = np.random.default_rng(1)
    points, weights = rng.normal(size=(200, 3)).astype(dtype), rng.uniform(0.5, 2.0, 200)
    means = rng.normal(size=(9, 3))
    with Workers(2) as workers:
        errors, losses = errors_and_losses(points, weights, exact_winners(points, means), means, workers)
    assert losses == pytest.approx(reference.removal_losses(points, weights, means), rel=1e-4)
    assert errors.sum() == pytest.approx(reference.quantization_error(points, weights, means), rel=1e-5)


def test_halves_are_the_two_means_of_their_cluster() -> None:
    rng = np.random.default_rng(2)
    points = np.concatenate([blobs(80, CORNERS[:2]), 50 + rng.normal(size=(30, 2)), np.full((5, 2), 90.0)])
    points, weights = points.astype(np.float32), rng.uniform(0.5, 2.0, 115)
    labels = np.repeat(np.array([2, 0, 1], np.int32), [80, 30, 5])
    order, start = sort_by_cluster(labels, 3)
    with Workers(2) as workers:
        halves = split_in_two(points, weights, order, start, np.array([1, 2, 0]), rng, workers, NO_ROOM)
    assert halves.cells.tolist() == [0, 2]  # the points of cluster 1 are all the same
    assert np.sort(halves.centres[1, :, 0]) == pytest.approx([0.0, 10.0], abs=0.1)
    assert (halves.nearer[labels == 1] == -1).all()
    for place, cell in enumerate(halves.cells):
        inside = labels == cell
        direct = reference.squared_distances(points[inside], halves.centres[place])
        assert (halves.nearer[inside] == 2 * place + (direct[:, 1] < direct[:, 0])).all()
        assert halves.errors[place] == pytest.approx(weights[inside] @ direct.min(axis=1), rel=1e-3)


# ------------------------------------------------------------------------------------------------------ the choice


def chosen(losses: list[float], cells: list[int], gains: list[float], takers: dict[int, list[int]]) -> tuple:
    """Clusters taken away and places of those that are split, with the takers of some of the clusters."""
    lists = [takers.get(c, []) for c in range(len(losses))]
    start = np.cumsum([0, *map(len, lists)])
    listed = np.array([c for one in lists for c in one], np.int32)
    found = choose_moves(np.array(losses), np.array(cells), np.array(gains), start, listed)
    return tuple(one.tolist() for one in found)


def test_the_cheapest_goes_to_the_most_useful_split_as_long_as_it_gains() -> None:
    losses, cells = [5.0, 1.0, 50.0, 2.0, 3.0, 60.0], [2, 5, 0]
    assert chosen(losses, cells, [4.0, 9.0, 2.5], {}) == ([1, 3], [1, 0])
    assert chosen(losses, cells, [0.5, 1.0, 0.0], {}) == ([], [])
    assert chosen([np.inf] * 6, cells, [1e300] * 3, {}) == ([], [])


def test_a_cluster_is_never_taken_from_itself() -> None:
    assert chosen([1.0, 9.0], [0], [5.0], {}) == ([], [])


def test_whoever_takes_over_points_is_part_of_no_other_move() -> None:
    # Cluster 1 takes over the points of 0: it stays, and cannot be split either.
    removed, split = chosen([1.0, 2.0, 3.0, 90.0, 90.0], [3, 1, 4], [50.0, 40.0, 30.0], {0: [1], 1: [0], 2: [4]})
    assert (removed, split) == ([0], [0])  # the points of 2 would go to 4, which is the next to be split


@given(st.integers(0, 10_000))
def test_no_cluster_is_part_of_two_moves(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 30))
    losses = rng.exponential(size=n)
    cells = rng.permutation(n)[: int(rng.integers(1, n + 1))]
    gains = rng.exponential(size=len(cells)) * rng.choice([0.5, 2.0])
    takers = {c: np.setdiff1d(rng.choice(n, int(rng.integers(0, 4))), c).tolist() for c in range(n)}
    removed, split = chosen(losses.tolist(), cells.tolist(), gains.tolist(), takers)
    taking = {t for c in removed for t in takers[c]}
    assert len({*removed, *cells[split].tolist()}) == 2 * len(removed)
    assert not taking & {*removed, *cells[split].tolist()}
    assert all(gains[place] > losses[c] for c, place in zip(removed, split, strict=True))


# ------------------------------------------------------------------------------------------------------- the moves


def test_a_cluster_too_many_goes_where_one_is_missing() -> None:
    points = blobs(400, CORNERS)
    means = np.array([[-0.05, 0.0], [0.05, 0.0], [10.0, 0.0], [5.0, 10.0]])  # two in one corner, one for two
    result, _ = moved(points, np.ones(400), means)
    assert result.n_moved == 1
    assert sorted(map(tuple, result.means.round().tolist())) == sorted(map(tuple, CORNERS.tolist()))
    assert result.error < 0.01 * reference.quantization_error(points, np.ones(400), means)


def test_clusters_without_points_are_the_first_to_go() -> None:
    points = blobs(400, CORNERS)
    means = np.concatenate([CORNERS[:2], [[5.0, 10.0], [900.0, 900.0]]])
    result, _ = moved(points, np.ones(400), means)
    assert result.n_moved == 1
    assert result.means[:2] == pytest.approx(CORNERS[:2])
    assert sorted(map(tuple, result.means.round().tolist())) == sorted(map(tuple, CORNERS.tolist()))


def test_clusters_that_are_where_they_should_be_stay_there() -> None:
    points = blobs(400, CORNERS)
    result, _ = moved(points, np.ones(400), CORNERS)
    assert (result.n_moved, result.gained) == (0, 0.0)
    assert (result.means == CORNERS).all()
    assert result.error == pytest.approx(reference.quantization_error(points, np.ones(400), CORNERS), rel=1e-4)


def test_points_that_are_all_the_same_cannot_be_split() -> None:
    points = np.repeat(np.arange(6.0, dtype=np.float32)[:, None], 20, axis=0)
    means = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]])
    assert moved(points, np.ones(120), means)[0].n_moved == 0


@given(st.integers(0, 10_000), st.sampled_from([np.float32, np.float64]))
def test_the_error_falls_by_what_is_gained(seed: int, dtype: type) -> None:
    rng = np.random.default_rng(seed)
    n, n_clusters, n_features = int(rng.integers(20, 150)), int(rng.integers(2, 20)), int(rng.integers(1, 5))
    centres = rng.normal(size=(int(rng.integers(1, 15)), n_features)) * rng.choice([0.1, 5.0])
    points = (centres[rng.integers(len(centres), size=n)] + rng.normal(size=(n, n_features)) * 0.3).astype(dtype)
    weights = rng.uniform(0.1, 3.0, n)
    means = points[rng.choice(n, n_clusters, replace=False)].astype(np.float64)
    result, labels = moved(points, weights, means)
    before = reference.quantization_error(points, weights, means)
    direct = weights @ ((points - result.means[labels]) ** 2).sum(axis=1)
    about = pytest.approx(result.error, rel=1e-3, abs=1e-4 * before)
    assert direct == about  # labels, means and error belong together
    assert before - result.gained == about
    assert reference.quantization_error(points, weights, result.means) <= direct + 1e-9 * before
    assert result.gained >= 0.0
    assert (result.gained > 0.0) == (result.n_moved > 0)
    assert labels.min() >= 0
    assert labels.max() < n_clusters
    changed = (result.means != means).any(axis=1)
    assert np.count_nonzero(changed) <= 2 * result.n_moved


@pytest.mark.parametrize("heavy", [100.0, 200.0])
def test_of_two_clusters_alike_the_heavier_one_is_split(heavy: float) -> None:
    centres = np.array([[0.0, 0.0], [100.0, 0.0], [100.0, 10.0], [200.0, 0.0], [200.0, 10.0]])
    points = blobs(500, centres)
    means = np.array([[-0.05, 0.0], [0.05, 0.0], [100.0, 5.0], [200.0, 5.0]])
    weights = np.where(np.abs(points[:, 0] - heavy) < 50, 3.0, 1.0)
    result, _ = moved(points, weights, means)
    assert result.n_moved == 1
    assert np.sort(result.means[np.abs(result.means[:, 0] - heavy) < 50, 1]).round().tolist() == [0.0, 10.0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_number_of_threads_does_not_matter(dtype: type) -> None:
    rng = np.random.default_rng(3)
    points, weights = rng.normal(size=(3000, 4)).astype(dtype) ** 3, rng.uniform(0.5, 2.0, 3000)
    means = points[:60].astype(np.float64)
    (one, labels), (three, others) = (moved(points, weights, means, n_threads) for n_threads in (1, 3))
    assert one.n_moved > 0
    assert (one.means == three.means).all()
    assert (labels == others).all()
    facts = [(r.error, r.gained, r.n_moved, r.n_points, r.n_evaluations) for r in (one, three)]
    assert facts[0] == facts[1]


def test_means_that_were_given_are_not_changed() -> None:
    points = blobs(400, CORNERS)
    means = np.array([[-0.05, 0.0], [0.05, 0.0], [10.0, 0.0], [5.0, 10.0]])
    before = means.copy()
    assert moved(points, np.ones(400), means)[0].n_moved == 1
    assert (means == before).all()


# --------------------------------------------------------------------------------------------------------- a start


def search_of(
    points: np.ndarray, labels: np.ndarray, n_clusters: int, workers: Workers, truncation: int = 3
) -> BlockedSearch:
    size = min(truncation, n_clusters)
    return BlockedSearch(
        points, np.ones(len(points)), labels, n_clusters, size, size, n_clusters, 0, 0, 1.0, 1e-9, workers
    )  # fmt: skip


def test_the_points_of_a_search_go_with_their_clusters() -> None:
    points = blobs(400, CORNERS)
    means = np.array([[-0.05, 0.0], [0.05, 0.0], [10.0, 0.0], [5.0, 10.0]])
    with Workers(2) as workers:
        labels = exact_winners(points, means)[:, 0]
        search = BlockedSearch(points, np.ones(400), labels, 4, 3, 3, 4, 0, 0, 1.0, 1e-9, workers)
        assert isinstance(search, Relocating)
        model = SharedModel(search, 400.0, 1e-9, 1.0, 0.0)
        settled, n_evaluations = settle(model, search, means, np.random.default_rng(0))
        labels = search.labels()
    assert n_evaluations > 0
    assert ((points - settled[labels]) ** 2).sum() == pytest.approx(search.start_error, rel=1e-4)
    assert search.start_error < 1.1 * reference.quantization_error(points, np.ones(400), CORNERS)
    assert (search.winners[:, 1:] == -1).all()


class Told:
    """A search whose rounds gain what was told beforehand."""

    def __init__(self, gains: list[float]) -> None:
        self.gains = gains
        self.rounds = 0

    def relocate(self, means: np.ndarray, _rng: np.random.Generator) -> Relocated:
        self.rounds += 1
        return Relocated(means, 1.0, self.gains[self.rounds - 1], 1, 5, 7)


class Still:
    """A model whose means stay where they are, and what its E-steps hand over."""

    n_evaluations = 3

    def start_at(self, means: np.ndarray) -> np.ndarray:
        return means

    def e_step(self, now: settling.Shared) -> Still:
        self.means = now.means
        return self

    def moved(self, _step: float) -> np.ndarray:
        return self.means


@pytest.mark.parametrize(
    ("gains", "rounds"),
    [([0.0], 1), ([0.001], 1), ([0.2, 0.004], 2), ([0.2, 0.1, 0.0], 3), ([0.2] * 9, settling.ROUNDS)],
)
def test_rounds_go_on_while_they_are_worth_it(gains: list[float], rounds: int) -> None:
    search = Told(gains)
    _, n_evaluations = settle(Still(), search, np.zeros((2, 1)), np.random.default_rng(0))  # type: ignore[arg-type]
    assert search.rounds == rounds
    assert n_evaluations == 10 * rounds


def test_with_one_winner_a_point_nobody_knows_a_rival() -> None:
    points = blobs(400, CORNERS)
    means = np.array([[-0.05, 0.0], [0.05, 0.0], [10.0, 0.0], [5.0, 10.0]])
    with Workers(1) as workers:
        result, _ = relocated(points, np.ones(400), exact_winners(points, means, 1), means, workers)
    assert result.n_moved == 0


# ----------------------------------------------------------------------------------------------------------- a fit


@pytest.mark.parametrize("coreset_size", [None, 8000])
@pytest.mark.parametrize("n_features", [2, 10])
def test_a_fit_finds_all_of_many_separate_clusters(n_features: int, coreset_size: int | None) -> None:
    rng = np.random.default_rng(4)
    centres = rng.uniform(size=(200, n_features)) * 40
    if n_features == 2:  # at random some would overlap
        centres = np.stack(np.meshgrid(np.arange(20), np.arange(10)), axis=-1).reshape(-1, 2) * 3.0
    X = centres[rng.integers(200, size=20_000)] + 0.3 * rng.normal(size=(20_000, n_features))
    errors = []
    for seed in range(3):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = VCGMM(200, coreset_size=coreset_size, random_state=seed).fit(X)
        errors.append(model.quantization_error(X))
    assert np.median(errors) < 1.05 * quantization_error(X, centres)


@pytest.mark.on_cpu  # which is kept from moving any
@pytest.mark.parametrize("init", ["afkmc2", "k-means++", "random"])
def test_seeds_that_are_asked_for_by_name_stay_where_they_were_drawn(
    init: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_arguments: object) -> Relocated:
        raise AssertionError("clusters were moved")

    monkeypatch.setattr("vcgmm.algorithm.search.blocked.relocate", never)
    X = np.random.default_rng(0).normal(size=(500, 2))
    VCGMM(20, init=init, random_state=0).fit(X)
    with pytest.raises(AssertionError, match="moved"):
        VCGMM(20, random_state=0).fit(X)
