from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcgmm.kernels.grouping import halve, random_cuts

pytestmark = pytest.mark.interpreted


def cut(means: np.ndarray, depth: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The order of the clusters and where each leaf starts."""
    order = np.arange(len(means), dtype=np.int32)
    random_cuts(means, np.random.default_rng(seed).random(1 << depth), depth, order)
    return order, len(means) * np.arange((1 << depth) + 1) // (1 << depth)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=30), st.data())
def test_halving_puts_the_smaller_keys_first(values: list[int], data: st.DataObject) -> None:
    low = data.draw(st.integers(0, len(values) - 1))
    high = data.draw(st.integers(low + 1, len(values)))
    middle = data.draw(st.integers(low, high - 1))
    keys = np.array(values, np.float32)
    order = np.arange(len(values), dtype=np.int32)
    halve(keys, order, low, middle, high)
    assert keys[low:middle].max(initial=-1) <= keys[middle:high].min()
    assert sorted(order[low:high]) == list(range(low, high))
    np.testing.assert_array_equal(keys, np.array(values, np.float32)[order])
    outside = np.r_[0:low, high : len(values)]
    np.testing.assert_array_equal(order[outside], outside)


@pytest.mark.parametrize("n_clusters", [16, 37])
def test_cuts_only_reorder_the_clusters(n_clusters: int) -> None:
    order, start = cut(np.random.default_rng(1).normal(size=(n_clusters, 3)).astype(np.float32), depth=3)
    np.testing.assert_array_equal(np.sort(order), np.arange(n_clusters))
    assert np.ptp(np.diff(start)) <= 1


def test_leaves_on_a_line_are_intervals() -> None:
    rng = np.random.default_rng(2)
    line = rng.permutation(40).astype(np.float32)[:, None]
    order, start = cut(line, depth=3)
    leaves = [line[order[a:b], 0] for a, b in itertools.pairwise(start)]
    assert all(np.ptp(leaf) == len(leaf) - 1 for leaf in leaves)


def test_equal_means_can_be_cut_too() -> None:
    order, _ = cut(np.ones((20, 2), np.float32), depth=2)
    np.testing.assert_array_equal(np.sort(order), np.arange(20))


def test_other_random_numbers_cut_elsewhere() -> None:
    means = np.random.default_rng(3).normal(size=(64, 2)).astype(np.float32)
    leaves = [
        {frozenset(order[a : a + 16]) for a in range(0, 64, 16)}
        for order, _ in (cut(means, 2, 4), cut(means, 2, 5))
    ]
    assert leaves[0] != leaves[1]
