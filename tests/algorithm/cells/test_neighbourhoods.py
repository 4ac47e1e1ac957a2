from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcgmm.algorithm.cells import neighbourhoods as module
from vcgmm.algorithm.cells.natural import Natural
from vcgmm.algorithm.cells.neighbourhoods import POINTS_PER_TASK, Neighbourhoods, cut_into_tasks, sort_by_cluster
from vcgmm.kernels.cells.sorting import begin_labels
from vcgmm.parallel import Workers


def nearest_lists(means: np.ndarray, size: int) -> np.ndarray:
    squares = (means**2).sum(axis=1)
    return np.argsort(squares[:, None] + squares - 2 * means @ means.T, axis=1)[:, :size]


def recall(found: np.ndarray, true: np.ndarray) -> float:
    return float(np.mean([np.isin(a, b).mean() for a, b in zip(true, found, strict=True)]))


def test_sorting_groups_points_by_cluster_in_the_order_they_came() -> None:
    labels = np.random.default_rng(0).integers(0, 9, 200).astype(np.int32)
    order, start = sort_by_cluster(labels, 10)
    for c in range(10):
        np.testing.assert_array_equal(order[start[c] : start[c + 1]], np.flatnonzero(labels == c))


def test_threads_sort_as_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SORTED_APART", 10)
    parts = []
    monkeypatch.setattr(
        module, "begin_labels", lambda counts, start: (parts.append(len(counts)), begin_labels(counts, start))
    )
    labels = np.random.default_rng(0).integers(0, 9, 2001).astype(np.int32)
    alone = sort_by_cluster(labels, 9)
    with Workers(3) as workers:
        together = sort_by_cluster(labels, 9, workers)
    assert parts == [1, 3]
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other)


@given(st.lists(st.one_of(st.integers(0, 3), st.integers(0, 4 * POINTS_PER_TASK)), min_size=1, max_size=12))
def test_tasks_cover_every_point_once_and_lie_in_one_cell(sizes: list[int]) -> None:
    start = np.concatenate([[0], np.cumsum(sizes)])
    task_cell, task_start = cut_into_tasks(start)
    assert len(task_start) == len(task_cell) + 1
    assert task_start[-1] == start[-1]
    assert (np.diff(task_start) >= 1).all()
    assert (np.diff(task_start) <= POINTS_PER_TASK).all()
    if len(task_cell):
        assert task_start[0] == 0
    assert (start[task_cell] <= task_start[:-1]).all()
    assert (task_start[1:] <= start[task_cell + 1]).all()


@pytest.mark.parametrize("n_clusters", [1, 5, 70])
def test_few_clusters_are_all_compared(n_clusters: int, workers: Workers) -> None:
    means = np.random.default_rng(1).normal(size=(n_clusters, 4)).astype(np.float32)
    size = min(12, n_clusters)
    neighbourhoods = Neighbourhoods(n_clusters, min(5, n_clusters), size, 0, 0, workers)
    assert neighbourhoods.update(Natural.shared(means)) == n_clusters * n_clusters
    assert recall(neighbourhoods.nearest, nearest_lists(means, size)) > 0.99
    np.testing.assert_array_equal(neighbourhoods.neighbors[:, 0], np.arange(n_clusters))


def test_neighbourhoods_come_closer_to_the_truth_with_every_update(
    workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "POOL_SIZE", 128)
    monkeypatch.setattr(module, "LINKED_AT_FIRST", 3)
    means = np.random.default_rng(2).normal(size=(900, 6)).astype(np.float32)
    true = nearest_lists(means, 16)
    neighbourhoods = Neighbourhoods(900, 5, 16, 0, 0, workers)
    recalls = []
    for _ in range(3):
        neighbourhoods.update(Natural.shared(means))
        recalls.append(recall(neighbourhoods.nearest, true))
    assert recalls[0] > 0.5
    assert recalls[0] < recalls[1] < recalls[2]
    assert recalls[2] > 0.75
    assert recall(neighbourhoods.neighbors, true[:, :5]) > recalls[2]


def test_lists_hold_nobody_twice_and_begin_with_the_cluster(
    workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "POOL_SIZE", 64)
    rng = np.random.default_rng(3)
    neighbourhoods = Neighbourhoods(300, 4, 20, 3, 0, workers)
    for _ in range(4):
        neighbourhoods.update(Natural.shared(rng.normal(size=(300, 2)).astype(np.float32)))
        for lists in (neighbourhoods.neighbors, neighbourhoods.nearest, neighbourhoods.candidates):
            np.testing.assert_array_equal(lists[:, 0], np.arange(300))
            assert all(len(set(row)) == len(row) for row in lists.tolist())


def test_clusters_are_linked_anew_at_first_and_then_every_fourth_time(workers: Workers) -> None:
    means = np.random.default_rng(4).normal(size=(40, 2)).astype(np.float32)
    neighbourhoods = Neighbourhoods(40, 3, 8, 0, 0, workers)
    linked = [neighbourhoods.update(Natural.shared(means)) > 0 for _ in range(9)]
    assert linked == [True, True, False, False, True, False, False, False, True]


def test_exploration_tries_others_every_time(workers: Workers) -> None:
    means = np.random.default_rng(5).normal(size=(200, 2)).astype(np.float32)
    neighbourhoods = Neighbourhoods(200, 3, 10, 4, 0, workers)
    lists = []
    for _ in range(5):
        neighbourhoods.update(Natural.shared(means))
        lists.append(neighbourhoods.candidates.copy())
    assert all((a != b).any() for a, b in itertools.pairwise(lists))


def test_neighbourhoods_do_not_depend_on_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "POOL_SIZE", 64)
    means = np.random.default_rng(6).normal(size=(500, 3)).astype(np.float32)
    found = []
    for n_threads in (1, 3):
        with Workers(n_threads) as workers:
            neighbourhoods = Neighbourhoods(500, 4, 12, 2, 7, workers)
            neighbourhoods.update(Natural.shared(means))
            neighbourhoods.update(Natural.shared(means))
            found.append(neighbourhoods.candidates)
    np.testing.assert_array_equal(found[0], found[1])
