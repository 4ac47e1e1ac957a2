from __future__ import annotations

import numpy as np
import pytest

from vcgmm.algorithm.seeding import narrowing
from vcgmm.algorithm.seeding.narrowing import narrow, taken_from, widen


@pytest.mark.parametrize("truncation", [1, 2, 3, 5])
@pytest.mark.parametrize("n", [1, 7, 8, 30])
def test_two_winners_are_pushed_together_and_one_comes_back(
    n: int, truncation: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(narrowing, "AT_ONCE", 4)
    winners = np.random.default_rng(0).integers(99, size=(n, truncation)).astype(np.int32)
    before = winners.copy()
    pairs, room = narrow(winners)
    np.testing.assert_array_equal(pairs, before[:, :2])
    assert np.shares_memory(pairs, winners)
    assert len(room) == n * max(truncation - 2, 0)
    room[:] = -7
    np.testing.assert_array_equal(pairs, before[:, :2])
    pairs[0, 0] = 50
    widen(pairs, winners)
    assert winners[:, 0].tolist() == [50, *before[1:, 0]]
    assert (winners[:, 1:] == -1).all()


@pytest.mark.parametrize(("dtype", "least"), [(np.float32, 2), (np.float64, 3)])
def test_arrays_are_taken_from_a_room_that_is_large_enough(dtype: type, least: int) -> None:
    for size in (0, 10 * least - 1, 10 * least, 10 * least + 1):
        room = np.zeros(size, np.int32)
        floats, integers = taken_from(room, 10, np.dtype(dtype))
        assert (floats.shape, floats.dtype, integers.shape, integers.dtype) == ((10,), dtype, (10,), np.int32)
        floats[:], integers[:] = 1, 2
        assert (floats == 1).all()
        for array in (floats, integers):
            assert np.shares_memory(array, room) == (size >= 10 * least)
