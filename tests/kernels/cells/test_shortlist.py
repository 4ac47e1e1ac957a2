from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcgmm.kernels.cells.shortlist import (
    CLASSES,
    choose_nearest,
    longest_choice,
    sort_in_full,
    sort_roughly,
    threshold_of,
)

pytestmark = pytest.mark.interpreted


@given(
    st.lists(st.sampled_from([0.0, 1e-40, 0.5, 1.0, 1.5, 3e38, np.inf]), min_size=1, max_size=20),
    st.data(),
)
def test_the_threshold_parts_the_smallest_from_the_rest(values: list[float], data: st.DataObject) -> None:
    count = data.draw(st.integers(1, len(values)))
    most = count + data.draw(st.integers(0, 3))
    guess = data.draw(st.sampled_from([0, 1, 1065353216, 1065353217, 2**31 - 1]))  # of 1.0, and beyond all
    bits = np.array([*values, 0.25], np.float32).view(np.int32)  # the last one is beyond `size`
    threshold = threshold_of(bits, len(values), count, most, guess)
    below = np.count_nonzero(bits[:-1] < threshold)
    up_to = np.count_nonzero(bits[:-1] <= threshold)
    assert below < count <= up_to or count <= below <= most


@given(st.lists(st.floats(0, 2.0**127, width=32), min_size=1, max_size=40))
def test_a_rough_order_is_one_up_to_ties_in_a_class(values: list[float]) -> None:
    bits = np.array(values, np.float32).view(np.int32)
    places = np.random.default_rng(0).permutation(len(values))
    taken, sizes = np.empty(len(values), np.int64), np.empty(CLASSES + 1, np.int64)
    sort_roughly(len(values), taken, bits, sizes, places)
    np.testing.assert_array_equal(np.sort(taken), np.arange(len(values)))
    found = bits[taken].astype(np.int64)
    shift = max(0, int(found.max() - found.min()).bit_length() - int(CLASSES - 1).bit_length())
    classes = (found - found.min()) >> shift
    assert (np.diff(classes) >= 0).all()
    np.testing.assert_array_equal(sizes[:-1], np.cumsum(np.bincount(classes, minlength=CLASSES)))


@given(st.lists(st.integers(0, 9), max_size=12), st.data())
def test_a_part_is_sorted_in_full(values: list[int], data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(values)))
    last = data.draw(st.integers(first, len(values)))
    bits, taken = np.array(values, np.int32), np.arange(len(values))
    sort_in_full(first, last, taken, bits)
    expected = np.arange(len(values))
    expected[first:last] = first + np.argsort(bits[first:last], kind="stable")
    np.testing.assert_array_equal(taken, expected)


@given(st.lists(st.floats(0.125, 1e6, width=32), min_size=5, max_size=30, unique=True), st.data())
def test_the_nearest_of_a_pool_are_listed_and_the_first_few_in_order(
    values: list[float], data: st.DataObject
) -> None:
    size, n_nearest = len(values), data.draw(st.integers(1, len(values)))
    n_neighbors, itself = data.draw(st.integers(1, n_nearest)), data.draw(st.integers(0, len(values) - 1))
    pool = np.random.default_rng(0).permutation(size).astype(np.int32)
    costs = np.array(values, np.float32)
    neighbors, nearest = np.full((size, n_neighbors), -1, np.int32), np.full((size, n_nearest), -1, np.int32)
    cluster, bits = int(pool[itself]), costs.view(np.int32)
    taken, scratch = np.empty((2, longest_choice(n_nearest) + 1), np.int64)
    sizes = np.empty(CLASSES + 1, np.int64)
    guess = data.draw(st.sampled_from([0, int(bits[0]), int(bits.max())]))
    choose_nearest(cluster, itself, size, pool, costs, bits, guess, taken, scratch, sizes, neighbors, nearest)
    costs[itself] = 0
    order = pool[np.argsort(costs, kind="stable")]  # it leads
    np.testing.assert_array_equal(neighbors[cluster], order[:n_neighbors])
    assert set(nearest[cluster]) == set(order[:n_nearest])
    assert nearest[cluster, 0] == cluster
