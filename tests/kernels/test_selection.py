from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcgmm.kernels.selection import NARROW, key_indices, key_types, smallest_keys

pytestmark = pytest.mark.interpreted


def select(distances: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Keys and candidates of the `size` smallest distances of every column, as the kernel finds them."""
    n_candidates, n_points = distances.shape
    key_float, key_int = key_types(distances.dtype, n_candidates)
    indices = key_indices(n_candidates, key_int)
    row = np.empty(n_points, key_float)
    best = np.empty((size, n_points), key_int)
    smallest_keys(distances, indices, row, row.view(key_int), best)
    return best, best & indices[-2]


def packed(distances: np.ndarray) -> np.ndarray:
    """Every distance with its candidate's index in the low bits."""
    key_float, key_int = key_types(distances.dtype, len(distances))
    mask = key_indices(len(distances), key_int)[-2]
    bits = distances.astype(key_float).view(key_int)
    return (bits & ~mask) | np.arange(len(distances), dtype=key_int)[:, None]


def counting(size: int, n_points: int) -> np.ndarray:
    """0, 1, 2 … down every column."""
    return np.repeat(np.arange(size)[:, None], n_points, axis=1)


def test_keys_are_narrow_where_the_index_leaves_enough_of_the_distance() -> None:
    assert key_types(np.dtype(np.float32), NARROW) == (np.float32, np.int32)
    assert key_types(np.dtype(np.float32), NARROW + 1) == (np.float64, np.int64)
    assert key_types(np.dtype(np.float64), 2) == (np.float64, np.int64)


@pytest.mark.parametrize(("n", "mask"), [(1, 1), (2, 1), (3, 3), (128, 127), (129, 255)])
def test_the_mask_covers_every_index(n: int, mask: int) -> None:
    assert key_indices(n, np.int32).tolist() == [*range(n), mask, 2**31 - 1]


@pytest.mark.parametrize(
    ("dtype", "n_candidates", "size"),
    [(np.float32, 1, 1), (np.float32, 9, 4), (np.float32, 256, 5), (np.float32, 260, 3), (np.float64, 40, 40)],
)
def test_distances_well_apart_come_out_as_argpartition_has_them(dtype: type, n_candidates: int, size: int) -> None:
    rng = np.random.default_rng(n_candidates)
    distances = rng.permuted(np.tile(np.arange(n_candidates, dtype=dtype), (6, 1)), axis=1).T.copy()
    _, found = select(distances, size)
    expected = np.argpartition(distances, size - 1, axis=0)[:size]
    np.testing.assert_array_equal(np.sort(found, axis=0), np.sort(expected, axis=0))
    np.testing.assert_array_equal(np.take_along_axis(distances, found, axis=0), counting(size, 6))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(data=st.data())
def test_the_smallest_keys_come_out_in_order(dtype: type, data: st.DataObject) -> None:
    n_candidates = data.draw(st.integers(1, 20))
    size = data.draw(st.integers(1, n_candidates))
    few = st.lists(
        st.sampled_from([0.0, 1e-30, 1.0, 1.0 + 2.0**-20, 2.0, 1e30]), min_size=n_candidates, max_size=n_candidates
    )
    distances = np.array(data.draw(st.lists(few, min_size=1, max_size=5)), dtype=dtype).T.copy()
    best, _ = select(distances, size)
    np.testing.assert_array_equal(best, np.sort(packed(distances), axis=0)[:size])


def test_ties_go_to_the_lower_index() -> None:
    _, found = select(np.full((7, 3), 2.5, np.float32), 7)
    np.testing.assert_array_equal(found, counting(7, 3))


def test_no_candidate_is_found_twice() -> None:
    distances = np.random.default_rng(0).random((30, 8)).astype(np.float32) ** 8
    _, found = select(distances, 30)
    np.testing.assert_array_equal(np.sort(found, axis=0), counting(30, 8))
