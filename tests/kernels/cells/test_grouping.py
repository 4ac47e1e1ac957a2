from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcgmm.kernels.cells.grouping import halve, random_cuts

pytestmark = pytest.mark.interpreted


def cut(means: np.ndarray, depth: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The order of the clusters and where each leaf starts."""
    order = np.arange(len(means), dtype=np.int32)
    uniforms = np.random.default_rng(seed).random(1 << depth)
    for level in range(depth):
        for first in range(0, 1 << level, 3):  # nodes of a level are cut in any number of calls
            random_cuts(first, min(first + 3, 1 << level), level, means, uniforms, order)
    return order, len(means) * np.arange((1 << depth) + 1) // (1 << depth)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=30), st.data())
def test_halving_puts_the_smaller_keys_first(values: list[int], data: st.DataObject) -> None:
    n = data.draw(st.integers(1, len(values)))
    middle = data.draw(st.integers(0, n - 1))
    keys = np.array(values, np.float32)
    order = np.arange(n, dtype=np.int32)
    halve(keys, order, middle)
    assert keys[:middle].max(initial=-1) <= keys[middle:n].min()
    assert sorted(order) == list(range(n))
    np.testing.assert_array_equal(keys[:n], np.array(values, np.float32)[order])
    assert keys[n:].tolist() == values[n:]


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
