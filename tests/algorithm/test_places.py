from __future__ import annotations

import numpy as np
import pytest

from vcgmm.algorithm import places
from vcgmm.algorithm.places import count_up, in_order, look_up, narrowed, place_type


@pytest.fixture(autouse=True)
def few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "AT_ONCE", 4)


def test_places_have_64_bits_only_where_32_are_not_enough() -> None:
    largest = np.iinfo(np.int32).max
    assert place_type(largest) == np.int32
    assert place_type(largest + 1) == np.int64
    some = np.array([0, largest - 1])
    assert narrowed(some, largest).dtype == np.int32
    np.testing.assert_array_equal(narrowed(some, largest), some)
    assert narrowed(some, largest + 1) is some


@pytest.mark.parametrize("n", [0, 1, 4, 11])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_values_are_put_in_any_order(n: int, dtype: type) -> None:
    rng = np.random.default_rng(0)
    values, order = rng.normal(size=n), rng.permutation(n).astype(dtype)
    np.testing.assert_array_equal(in_order(values, order), values[order])
    np.testing.assert_array_equal(in_order(order, order), order[order])
    before, rows = order.copy(), rng.permutation(n).astype(dtype)
    look_up(rows, order)
    np.testing.assert_array_equal(order, rows[before])
    count_up(order)
    np.testing.assert_array_equal(order, np.arange(n))
    assert order.dtype == dtype
