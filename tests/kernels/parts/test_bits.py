from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from vcgmm.kernels.parts.bits import WORD, bits_below, lowest_bit

pytestmark = pytest.mark.interpreted


@njit
def below(values: np.ndarray, first: int, limit: int) -> int:
    return bits_below(values, first, limit)


@njit
def lowest(bits: int) -> int:
    return lowest_bit(bits)


@given(st.lists(st.integers(0, 9), min_size=WORD + 3, max_size=WORD + 3), st.integers(0, 3), st.integers(0, 10))
def test_a_bit_for_each_that_is_less(values: list[int], first: int, limit: int) -> None:
    found = int(below(np.array(values, np.int32), first, limit)) % (1 << WORD)  # as if it had no sign
    assert [found >> k & 1 for k in range(WORD)] == [int(value < limit) for value in values[first : first + WORD]]


def test_patterns_of_the_largest_floats_are_compared_as_such() -> None:
    values = np.full(WORD, np.inf, np.float32)
    values[5] = np.finfo(np.float32).max
    assert below(values.view(np.int32), 0, int(np.float32(np.inf).view(np.int32))) == 1 << 5
    assert below(values.view(np.int32), 0, 2**31 - 1) == -1  # all of them


@given(st.integers(-(2**63), 2**63 - 1).filter(bool))
def test_the_lowest_bit(bits: int) -> None:
    place = lowest(np.int64(bits))
    assert bits >> place & 1
    assert bits % (1 << place) == 0
