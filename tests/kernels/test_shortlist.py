from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcgmm.kernels.shortlist import CLASSES, choose_nearest, sort_roughly, threshold_of

pytestmark = pytest.mark.interpreted


@given(st.lists(st.sampled_from([0.0, 1e-40, 0.5, 1.0, 1.5, 3e38]), min_size=1, max_size=20), st.data())
def test_the_threshold_parts_the_smallest_from_the_rest(values: list[float], data: st.DataObject) -> None:
    count = data.draw(st.integers(1, len(values)))
    bits = np.array([*values, 0.25], np.float32).view(np.int32)  # the last one is beyond `size`
    threshold = threshold_of(bits, len(values), count)
    below = np.count_nonzero(bits[:-1] < threshold)
    up_to = np.count_nonzero(bits[:-1] <= threshold)
    assert below < count <= up_to or below == count


@given(st.integers(0, 3), st.lists(st.floats(0, 2.0**127, width=32), min_size=1, max_size=40))
def test_a_rough_order_is_one_up_to_ties_in_a_class(first: int, values: list[float]) -> None:
    bits = np.array(values, np.float32).view(np.int32)
    taken = np.random.default_rng(0).permutation(len(values))
    before = taken.copy()
    sort_roughly(first, taken, bits, np.empty(CLASSES + 1, np.int64), np.empty(len(values), np.int64))
    np.testing.assert_array_equal(taken[:first], before[:first])
    np.testing.assert_array_equal(np.sort(taken), np.arange(len(values)))
    rest = bits[taken[first:]].astype(np.int64)
    if len(rest):
        shift = max(0, int(rest.max() - rest.min()).bit_length() - int(CLASSES - 1).bit_length())
        assert (np.diff((rest - rest.min()) >> shift) >= 0).all()


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
    taken, scratch = np.empty(n_nearest, np.int64), np.empty(n_nearest + 1, np.int64)
    sizes = np.empty(CLASSES + 1, np.int64)
    choose_nearest(cluster, itself, size, pool, costs, bits, taken, scratch, sizes, neighbors, nearest)
    order = pool[np.argsort(costs, kind="stable")]  # its own cost is 0 now: it leads
    np.testing.assert_array_equal(neighbors[cluster], order[:n_neighbors])
    assert set(nearest[cluster]) == set(order[:n_nearest])
    assert nearest[cluster, 0] == cluster
