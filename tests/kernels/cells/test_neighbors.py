from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcgmm.algorithm import reference
from vcgmm.algorithm.cells.natural import Natural
from vcgmm.kernels.cells.links import fill_pool, link_groups
from vcgmm.kernels.cells.neighbors import join_neighbourhoods, turn_round

pytestmark = pytest.mark.interpreted


def link(
    means: np.ndarray,
    n_neighbors: int,
    n_nearest: int,
    n_groups: int = 1,
    pool_size: int | None = None,
    near_groups: np.ndarray | None = None,
    known: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Neighbours and nearest of all clusters, by default from one pool of all."""
    n_clusters = len(means)
    order = np.arange(n_clusters, dtype=np.int32)
    start = n_clusters * np.arange(n_groups + 1) // n_groups
    if near_groups is None:
        near_groups = np.tile(np.arange(n_groups, dtype=np.int32), (n_groups, 1))
    if known is None:
        known = np.empty((n_clusters, 0), np.int32)
    neighbors = np.empty((n_clusters, n_neighbors), np.int32)
    nearest = np.empty((n_clusters, n_nearest), np.int32)
    counts = np.full(n_groups, -1)
    pool = pool_size or n_clusters
    natural = Natural.shared(means)
    link_groups(
        0, n_groups, start, order, near_groups, known, pool, means, natural.variances, natural.precisions,
        natural.offsets, neighbors, nearest, counts,
    )  # fmt: skip
    assert (counts > 0).all()
    assert counts.sum() <= n_clusters * pool
    return neighbors, nearest


def distances_to(means: np.ndarray, lists: np.ndarray) -> np.ndarray:
    return np.take_along_axis(reference.squared_distances(means, means), lists.astype(np.int64), axis=1)


def assert_lists(lists: np.ndarray) -> None:
    """Itself first, nobody twice."""
    np.testing.assert_array_equal(lists[:, 0], np.arange(len(lists)))
    assert all(len(set(row)) == len(row) for row in lists.tolist())


# ------------------------------------------------------------------------------------------------------------ pool


def test_a_pool_holds_members_then_what_they_knew_then_near_groups() -> None:
    order = np.array([5, 2, 0, 1, 3, 4], np.int32)
    start = np.array([0, 2, 4, 6])
    known = np.full((6, 2), -1, np.int32)
    known[5] = [2, 4]  # 2 is a member already
    near_groups = np.array([[0, 1], [1, 2], [2, 0]], np.int32)
    seen, pool = np.full(6, -1, np.int32), np.full(6, -1, np.int32)
    size = fill_pool(0, start, order, near_groups, known, seen, pool)
    assert pool[:size].tolist() == [5, 2, 4, 0, 1]
    short = np.full(3, -1, np.int32)
    assert fill_pool(1, start, order, near_groups, known, seen, short) == 3
    assert short.tolist() == [0, 1, 3]


# ----------------------------------------------------------------------------------------------------------- links


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n_neighbors", "n_nearest", "n_groups"), [(5, 12, 3), (1, 1, 1), (4, 4, 2), (3, 25, 2)])
def test_a_pool_of_all_clusters_gives_the_true_nearest(
    dtype: type, n_neighbors: int, n_nearest: int, n_groups: int
) -> None:
    means = np.random.default_rng(0).normal(size=(25, 3)).astype(dtype)
    neighbors, nearest = link(means, n_neighbors, n_nearest, n_groups)
    true = np.sort(reference.squared_distances(means, means), axis=1)
    assert_lists(neighbors)
    assert_lists(nearest)
    np.testing.assert_allclose(distances_to(means, neighbors), true[:, :n_neighbors], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(
        np.sort(distances_to(means, nearest), axis=1), true[:, :n_nearest], rtol=1e-4, atol=1e-6
    )


def test_a_cluster_leads_its_list_also_among_equal_means() -> None:
    neighbors, nearest = link(np.ones((8, 2), np.float32), 3, 5)
    assert_lists(neighbors)
    assert_lists(nearest)


@given(st.lists(st.integers(0, 3), min_size=6, max_size=14), st.integers(1, 6), st.integers(0, 5))
def test_ties_take_nobody_twice(places: list[int], n_nearest: int, fewer: int) -> None:
    means = np.array(places, np.float32)[:, None]
    neighbors, nearest = link(means, max(1, n_nearest - fewer), n_nearest)
    assert_lists(neighbors)
    assert_lists(nearest)
    true = np.sort((means - means.T) ** 2, axis=1)
    np.testing.assert_array_equal(distances_to(means, neighbors), true[:, : neighbors.shape[1]])
    np.testing.assert_array_equal(np.sort(distances_to(means, nearest), axis=1), true[:, :n_nearest])


def test_means_far_from_the_origin_are_told_apart() -> None:
    means = (1000 + np.random.default_rng(1).normal(size=(20, 2))).astype(np.float32)
    neighbors, _ = link(means, 4, 8)
    true = np.sort(reference.squared_distances(means.astype(np.float64), means.astype(np.float64)), axis=1)
    np.testing.assert_allclose(distances_to(means.astype(np.float64), neighbors), true[:, :4], rtol=1e-3)


def test_what_was_known_gives_way_only_to_something_nearer() -> None:
    rng = np.random.default_rng(2)
    means = rng.normal(size=(48, 2)).astype(np.float32)
    n_nearest, n_groups = 4, 6
    known = np.hstack(
        [np.arange(48, dtype=np.int32)[:, None], rng.integers(0, 48, (48, n_nearest - 1)).astype(np.int32)]
    )
    known[:, 1:] += (known[:, 1:] == known[:, :1]).astype(np.int32)  # not itself again
    known %= 48
    near_groups = np.arange(n_groups, dtype=np.int32)[:, None].repeat(2, axis=1)
    near_groups[:, 1] = (near_groups[:, 0] + 1) % n_groups
    _, nearest = link(means, 2, n_nearest, n_groups, 44, near_groups, known)
    assert_lists(nearest)
    before = [sorted(set(row)) for row in known.tolist()]
    all_distances = reference.squared_distances(means, means)
    for c, row in enumerate(before):
        new, old = np.sort(all_distances[c, nearest[c]]), np.sort(all_distances[c, row])
        assert (new[: len(old)] <= old * (1 + 1e-4) + 1e-6).all()


def test_lists_are_roughly_in_order() -> None:
    means = np.random.default_rng(6).normal(size=(200, 5)).astype(np.float32)
    _, nearest = link(means, 3, 60)
    ranks = np.argsort(np.argsort(distances_to(means.astype(np.float64), nearest), axis=1), axis=1)
    assert np.abs(ranks - np.arange(60)).mean() < 1.0


# ------------------------------------------------------------------------------------------------------- followers


def test_followers_have_the_cluster_on_their_own_lists_and_the_highest_go_first() -> None:
    nearest = np.array([[0, 1], [1, 0], [2, 0], [3, 0], [4, 3]], np.int32)
    followers, counts = follow(nearest, 2)
    assert counts.tolist() == [2, 1, 0, 1, 0]
    assert followers[0, :2].tolist() == [1, 2]
    assert (followers[1, 0], followers[3, 0]) == (0, 4)
    high = np.full((20, 40), 19, np.int32)  # 19 comes last on most lists, and behind a band of others
    high[:, 0] = np.arange(20)
    high[:, 1:-1] = (np.arange(20)[:, None] + 1 + np.arange(38) % 18) % 19
    high[7, 1] = 19
    followers, _ = follow(high, 1)
    assert followers[19, :1].tolist() == [7]


def test_a_cluster_far_from_all_is_a_candidate_of_those_nearest_to_it() -> None:
    rng = np.random.default_rng(7)
    means = np.vstack([[[50.0, 0.0, 0.0]], rng.normal(size=(40, 3))]).astype(np.float32)
    closest = np.argsort(np.linalg.norm(means - means[0], axis=1))[1:7]
    alone = np.empty((41, 0), np.int32)
    _, nearest, without = join(means, 2, 12, alone)
    _, _, candidates = join(means, 2, 12, alone, room=6)
    assert not (nearest[1:] == 0).any()
    assert not (without[1:] == 0).any()
    assert all(0 in candidates[c] for c in closest)


# ------------------------------------------------------------------------------------------------------ candidates


def follow(nearest: np.ndarray, room: int) -> tuple[np.ndarray, np.ndarray]:
    """Followers of all clusters."""
    followers, counts = np.full((len(nearest), room + 1), -1, np.int32), np.full(len(nearest), -1, np.int32)
    turn_round(nearest, followers, counts)
    return followers, counts


def join(
    means: np.ndarray, n_neighbors: int, n_candidates: int, explored: np.ndarray, room: int = 0
) -> tuple[np.ndarray, ...]:
    neighbors, nearest = link(means, n_neighbors, n_candidates)
    width = min(len(means), n_candidates + explored.shape[1])
    candidates = np.full((len(means), width), -1, np.int32)
    followers, counts = follow(nearest, room)
    join_neighbourhoods(0, len(means), neighbors, nearest, followers, counts, explored, candidates)
    return neighbors, nearest, candidates


@pytest.fixture
def means() -> np.ndarray:
    return np.random.default_rng(3).normal(size=(30, 3)).astype(np.float32)


NOBODY = np.empty((30, 0), np.int32)


@pytest.mark.parametrize("n_candidates", [1, 4, 17, 30])
def test_candidates_begin_with_the_cluster_and_repeat_nobody(means: np.ndarray, n_candidates: int) -> None:
    explored = np.random.default_rng(4).integers(0, 30, (30, 3)).astype(np.int32)
    for some in (NOBODY, explored):
        for room in (0, n_candidates // 2, n_candidates):
            _, _, candidates = join(means, min(4, n_candidates), n_candidates, some, room)
            assert_lists(candidates)
            assert candidates.min() >= 0


def test_candidates_hold_the_neighbours_of_neighbours_where_there_is_room(means: np.ndarray) -> None:
    neighbors, _, candidates = join(means, 4, 16, NOBODY)
    for c in range(30):
        assert set(reference.search_space(neighbors[c], neighbors, NOBODY[0])) <= set(candidates[c])


def test_the_rest_are_the_nearest(means: np.ndarray) -> None:
    neighbors, nearest, candidates = join(means, 2, 10, NOBODY)
    for c in range(30):
        union = set(neighbors[neighbors[c]].ravel())
        assert set(candidates[c]) - union <= set(nearest[c])


def test_explored_clusters_are_candidates(means: np.ndarray) -> None:
    explored = np.random.default_rng(5).integers(0, 30, (30, 3)).astype(np.int32)
    _, _, candidates = join(means, 3, 8, explored)
    assert all(set(explored[c]) <= set(candidates[c]) for c in range(30))


def test_exploration_displaces_none_of_the_nearest_and_meets_others(means: np.ndarray) -> None:
    itself = np.arange(30, dtype=np.int32)[:, None].repeat(4, axis=1)
    _, nearest, candidates = join(means, 1, 8, itself)
    assert_lists(candidates)
    assert candidates.shape[1] == 12
    assert all(set(nearest[c]) <= set(candidates[c]) for c in range(30))


def test_more_exploration_than_there_are_clusters_means_all_of_them(means: np.ndarray) -> None:
    explored = np.random.default_rng(6).integers(0, 30, (30, 29)).astype(np.int32)
    _, _, candidates = join(means, 2, 4, explored)
    np.testing.assert_array_equal(np.sort(candidates, axis=1), np.tile(np.arange(30), (30, 1)))


def test_new_lists_may_be_written_over_those_that_were_known() -> None:
    rng = np.random.default_rng(7)
    means = rng.normal(size=(60, 3)).astype(np.float32)
    order, start = rng.permutation(60).astype(np.int32), 60 * np.arange(5) // 4
    near_groups = np.arange(4, dtype=np.int32)[:, None]
    known = rng.integers(-1, 60, (60, 12)).astype(np.int32)
    lists = []
    for nearest in (np.empty_like(known), known):
        neighbors, counts = np.empty((60, 4), np.int32), np.empty(4, np.int64)
        link_groups(
            0, 4, start, order, near_groups, known, 40, means, None, None, None, neighbors, nearest, counts
        )  # fmt: skip
        lists.append((neighbors, nearest))
    for apart, over in zip(*lists, strict=True):
        np.testing.assert_array_equal(over, apart)
