from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcgmm.algorithm.cells import cut_into_tasks, sort_by_cluster
from vcgmm.kernels.descent import BLOCK, descend

pytestmark = pytest.mark.interpreted


def step_down(
    points: np.ndarray, at: np.ndarray, parents: np.ndarray, lists: np.ndarray, centres: np.ndarray
) -> np.ndarray:
    order, start = sort_by_cluster(at, len(parents))
    task_cell, task_start = cut_into_tasks(start)
    labels = np.full(len(points), -1, np.int32)
    descend(0, len(task_cell), task_cell, task_start, points, order, parents, lists, centres, labels)
    return labels


@given(st.integers(0, 10_000), st.sampled_from([np.float32, np.float64]), st.sampled_from([1, 5, BLOCK + 3]))
def test_every_point_finds_the_nearest_of_its_parents_list(seed: int, dtype: type, n: int) -> None:
    rng = np.random.default_rng(seed)
    points, centres = (rng.normal(size=(size, 3)).astype(dtype) for size in (n, 11))
    parents = rng.normal(size=(4, 3)).astype(dtype)
    lists = np.array([rng.permutation(11)[:6] for _ in range(4)], np.int32)
    at = rng.integers(0, 4, n).astype(np.int32)
    found = step_down(points, at, parents, lists, centres)
    distances = ((points[:, None].astype(float) - centres) ** 2).sum(axis=2)
    listed = np.take_along_axis(distances, lists[at].astype(np.int64), axis=1)
    assert (lists[at] == found[:, None]).any(axis=1).all()
    chosen = distances[np.arange(n), found]
    np.testing.assert_allclose(chosen, listed.min(axis=1), rtol=1e-4, atol=1e-5)
