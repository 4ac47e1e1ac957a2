from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcgmm.algorithm.starts import empty_clusters
from vcgmm.algorithm.starts.empty_clusters import largest_first, put_on_farthest


@pytest.mark.parametrize("at_first", [1, 3, 256])
@given(costs=st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0, np.inf, np.nan]) | st.floats(0, 5), max_size=40))
def test_places_come_in_the_order_of_a_sort(at_first: int, costs: list[float]) -> None:
    array = np.array(costs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(empty_clusters, "AT_FIRST", at_first)
        assert list(largest_first(array)) == np.argsort(-array, kind="stable").tolist()


def test_no_more_is_sorted_than_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    sorted_: list[int] = []
    argsort = np.argsort
    monkeypatch.setattr(
        np, "argsort", lambda values, kind: sorted_.append(len(values)) or argsort(values, kind=kind)
    )
    costs = np.random.default_rng(0).uniform(size=10_000)
    assert next(largest_first(costs)) == costs.argmax()
    assert sum(sorted_) <= 2 * empty_clusters.AT_FIRST


def test_clusters_go_to_the_costliest_points_that_are_left() -> None:
    rows = np.array([[9.0], [9.0], [8.0], [1.0], [7.0]], np.float32)
    costs, labels = np.array([5.0, 5.0, 4.0, 3.0, 2.0]), np.array([0, 0, 1, 0, 0], np.int32)
    sizes, means = np.array([4, 1, 0, 0, 0, 0]), np.zeros((6, 1))
    places = put_on_farthest(np.array([2, 3, 4, 5]), costs, labels, sizes, rows.__getitem__, means)
    assert places == [0, 3, 4]  # 1 equals 0, 2 is the last of its cluster; and then 1 would be the last of its own
    assert means.ravel().tolist() == [0, 0, 9, 1, 7, 0]
    assert labels.tolist() == [2, 0, 1, 3, 4]
    assert sizes[:2].tolist() == [1, 1]
