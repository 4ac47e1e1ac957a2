from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcgmm.algorithm import reference
from vcgmm.kernels.cells.costs import dearest
from vcgmm.kernels.parts.selection import (
    FEW,
    LANES,
    NARROW,
    key_indices,
    key_type,
    pack,
    smallest_keys,
)
from vcgmm.kernels.parts.vectors import VECTORS, lanes
from vcgmm.kernels.search.survey import survey

pytestmark = pytest.mark.interpreted

#: Distances with ties, near ties, zeros, and large and small ones.
VALUES = st.sampled_from([0.0, 1e-30, 1.0, 1.0 + 2.0**-20, 2.0, 1e30])

#: Types of points, and numbers of candidates that lead to 32-bit keys, to 64-bit keys, and to 64-bit keys only
#: because there are so many.
KINDS = [(np.float32, 1, 24), (np.float64, 1, 24), (np.float32, NARROW + 1, NARROW + 9)]


@dataclass
class Block:
    """What the kernels read; candidates are filled up with some that are none."""

    costs: np.ndarray
    indices: np.ndarray

    def cut(self, n: int) -> Block:
        """The first n points alone."""
        return Block(self.costs[:, :n].copy(), self.indices)


def with_distances(distances: np.ndarray) -> Block:
    """A block with exactly these squared distances, (candidates, points)."""
    dtype, (n_candidates, n_points) = distances.dtype, distances.shape
    indices = key_indices(n_candidates, key_type(dtype, n_candidates))
    costs = np.full((len(indices) - 2, n_points), dearest(dtype.itemsize), dtype)
    costs[:n_candidates] = distances
    return Block(costs, indices)


def with_rows(centres: np.ndarray, points: np.ndarray) -> Block:
    squares = (centres**2).sum(axis=1)[:, None] + (points**2).sum(axis=1)
    return with_distances(np.maximum(squares - 2 * (centres @ points.T), 0))


def keys(block: Block, size: int, n: int | None = None, few: bool = False) -> np.ndarray:
    """The `size` smallest keys of the first n points, (size, n)."""
    n = block.costs.shape[1] if n is None else n
    kept = FEW if few else size
    best = np.full((kept + 1) * LANES, -1, block.indices.dtype)  # smaller than any key
    if few:
        surveyed(block, n, best)
    else:
        smallest_keys(size, n, block.costs, block.indices, best)
    return best.reshape(-1, LANES)[:size, :n]


def surveyed(block: Block, n: int, best: np.ndarray) -> None:
    """Products that are exactly half of each cost: point j is the j-th unit vector."""
    dtype, (m, n_points) = block.costs.dtype, block.costs.shape
    filled = -(-n // lanes(dtype.itemsize)) * lanes(dtype.itemsize)
    statistics = np.eye(max(filled, LANES), n_points, dtype=dtype)
    costs = np.full((m, LANES), np.nan, dtype)
    survey(
        filled, statistics, block.costs / -2, np.zeros(m, dtype), np.zeros(LANES, dtype), block.indices,
        np.full(VECTORS * lanes(dtype.itemsize) * n_points, np.nan, dtype), costs, best,
    )  # fmt: skip
    np.testing.assert_array_equal(costs[:, :n], block.costs[:, :n])


def found(block: Block, size: int, few: bool = False) -> np.ndarray:
    """Candidates with the smallest distances, (size, points)."""
    return keys(block, size, few=few) & ~block.indices[-2]


def packed(distances: np.ndarray) -> np.ndarray:
    """Every distance with its candidate's index in the low bits."""
    integer = key_type(distances.dtype, len(distances))
    indices = key_indices(len(distances), integer)
    bits = distances.astype(np.float32 if integer is np.int32 else np.float64).view(integer)
    return (bits & indices[-2]) | indices[: len(distances), None]


def counting(size: int, n_points: int) -> np.ndarray:
    """0, 1, 2 … down every column."""
    return np.repeat(np.arange(size)[:, None], n_points, axis=1)


# ------------------------------------------------------------------------------------------------------------ keys


def test_keys_are_narrow_where_the_index_leaves_enough_of_the_distance() -> None:
    assert key_type(np.dtype(np.float32), NARROW) is np.int32
    assert key_type(np.dtype(np.float32), NARROW + 1) is np.int64
    assert key_type(np.dtype(np.float64), 2) is np.int64


@pytest.mark.parametrize("integer", [np.int32, np.int64])
@pytest.mark.parametrize(
    ("n", "n_indices", "mask"),
    [
        (1, 8, 7),
        (7, 8, 7),
        (8, 8, 7),
        (9, 16, 15),
        (127, 128, 127),
        (128, 128, 127),
        (129, 136, 255),
        (256, 256, 255),
    ],
)
def test_the_mask_covers_every_index_and_those_that_fill_up(
    n: int, n_indices: int, mask: int, integer: type
) -> None:
    indices = key_indices(n, integer)
    assert indices.dtype == integer
    assert indices.tolist() == [*range(n_indices), ~mask, np.iinfo(integer).max]


@numba.njit
def compiled_pack(value: float, keep: int, index: int) -> int:
    return pack(value, keep, index)


@pytest.mark.parametrize(("dtype", "n_candidates"), [(np.float32, NARROW), (np.float32, 1000), (np.float64, 100)])
@given(data=st.data())
def test_keys_order_as_distances_and_hold_the_index(dtype: type, n_candidates: int, data: st.DataObject) -> None:
    width = 8 * np.dtype(dtype).itemsize
    floats = st.floats(0.0, float(np.finfo(dtype).max), width=width)
    small, large = sorted(dtype(data.draw(floats)) for _ in range(2))
    i, j = (data.draw(st.integers(0, n_candidates - 1)) for _ in range(2))
    indices = key_indices(n_candidates, key_type(np.dtype(dtype), n_candidates))
    keep = indices[-2]
    low, high = pack(small, keep, indices[i]), pack(large, keep, indices[j])
    assert type(low) is indices.dtype.type
    assert low & ~keep == i
    assert 0 <= low <= indices[-1]
    assert low & keep <= high & keep
    assert pack(small, keep, indices[min(i, j)]) <= pack(small, keep, indices[max(i, j)])
    assert compiled_pack(small, keep, indices[i]) == low
    kept = np.array(low & keep).view(np.float32 if indices.dtype == np.int32 else np.float64)
    assert kept <= small
    if small > 1e-30:
        assert kept >= small * (1 - 2.0**-15)


# ------------------------------------------------------------------------------------------------ smallest of all


@pytest.mark.parametrize(
    ("dtype", "n_candidates", "size"),
    [(np.float32, 1, 1), (np.float32, 9, 4), (np.float32, 256, 5), (np.float32, 260, 3), (np.float64, 40, 40)],
)
def test_distances_well_apart_come_out_as_argpartition_has_them(dtype: type, n_candidates: int, size: int) -> None:
    rng = np.random.default_rng(n_candidates)
    distances = rng.permuted(np.tile(np.arange(n_candidates, dtype=dtype), (6, 1)), axis=1).T.copy()
    expected = np.argpartition(distances, size - 1, axis=0)[:size]
    for few in (False, True) if size <= FEW else (False,):
        candidates = found(with_distances(distances), size, few)
        np.testing.assert_array_equal(np.sort(candidates, axis=0), np.sort(expected, axis=0))
        np.testing.assert_array_equal(np.take_along_axis(distances, candidates, axis=0), counting(size, 6))


@pytest.mark.parametrize(("dtype", "fewest", "most"), KINDS)
@given(data=st.data())
def test_the_smallest_keys_come_out_in_order(dtype: type, fewest: int, most: int, data: st.DataObject) -> None:
    n_candidates = data.draw(st.integers(fewest, most))
    size = data.draw(st.integers(1, min(n_candidates, 20)))
    values = st.lists(VALUES, min_size=n_candidates, max_size=n_candidates)
    distances = np.array(data.draw(st.lists(values, min_size=1, max_size=3)), dtype=dtype).T.copy()
    np.testing.assert_array_equal(keys(with_distances(distances), size), np.sort(packed(distances), axis=0)[:size])


@pytest.mark.parametrize(("dtype", "fewest", "most"), KINDS)
@given(data=st.data())
def test_five_in_registers_are_the_five_smallest(dtype: type, fewest: int, most: int, data: st.DataObject) -> None:
    n_candidates = data.draw(st.integers(fewest, most))
    n_points = data.draw(st.integers(1, LANES if most <= NARROW else 4))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    values = data.draw(st.lists(VALUES, min_size=1, max_size=6))
    distances = rng.choice(values, size=(n_candidates, n_points)).astype(dtype)
    block = with_distances(distances)
    np.testing.assert_array_equal(keys(block, FEW, few=True), keys(block, FEW))
    real = min(FEW, n_candidates)
    np.testing.assert_array_equal(keys(block, FEW, few=True)[:real], np.sort(packed(distances), axis=0)[:real])


@pytest.mark.parametrize(("dtype", "fewest", "most"), KINDS)
@given(data=st.data())
def test_five_in_registers_round_their_distances_alike(
    dtype: type, fewest: int, most: int, data: st.DataObject
) -> None:
    n_candidates = data.draw(st.integers(fewest, most))
    n_points = data.draw(st.integers(1, LANES if most <= NARROW else 4))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    offset = data.draw(st.sampled_from([0.0, 1.0, 1000.0]))
    centres, points = (offset + rng.normal(size=(n, 3)).astype(dtype) for n in (n_candidates, n_points))
    block = with_rows(centres.astype(dtype), points.astype(dtype))
    np.testing.assert_array_equal(keys(block, FEW, few=True), keys(block, FEW))


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize(("dtype", "n_candidates"), [(np.float32, 61), (np.float32, 258), (np.float64, 30)])
def test_rows_find_their_nearest_up_to_the_rounding_of_keys(dtype: type, n_candidates: int, few: bool) -> None:
    rng = np.random.default_rng(4)
    centres, points = (rng.normal(size=(n, 3)).astype(dtype) for n in (n_candidates, 7))
    candidates = found(with_rows(centres, points), FEW, few)
    distances = reference.squared_distances(centres, points)
    chosen = np.take_along_axis(distances, candidates.astype(np.int64), axis=0)
    np.testing.assert_allclose(chosen, np.sort(distances, axis=0)[:FEW], rtol=2.0**-15, atol=1e-5)


@pytest.mark.parametrize(("size", "few"), [(7, False), (5, True)])
def test_ties_go_to_the_lower_index(size: int, few: bool) -> None:
    block = with_distances(np.full((7, 3), 2.5, np.float32))
    np.testing.assert_array_equal(found(block, size, few), counting(size, 3))


@pytest.mark.parametrize(("n_candidates", "size", "few"), [(30, 30, False), (5, 5, True)])
def test_no_candidate_is_found_twice(n_candidates: int, size: int, few: bool) -> None:
    distances = np.random.default_rng(0).random((n_candidates, 8)).astype(np.float32) ** 8
    candidates = found(with_distances(distances), size, few)
    np.testing.assert_array_equal(np.sort(candidates, axis=0), counting(size, 8))


# --------------------------------------------------------------------------------------------------------- filling


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_candidates", range(1, 10))
def test_a_candidate_that_is_none_comes_after_all_others(n_candidates: int, dtype: type, few: bool) -> None:
    distances = np.random.default_rng(n_candidates).uniform(0.0, 1e36, (n_candidates, 5)).astype(dtype)
    size = min(n_candidates, FEW)
    candidates = found(with_distances(distances), size, few)
    np.testing.assert_array_equal(candidates, np.argsort(distances, axis=0)[:size])


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("n", [1, 31, 32, 63])
def test_points_that_fill_up_a_block_change_no_others(n: int, few: bool) -> None:
    rng = np.random.default_rng(5)
    block = with_rows(rng.normal(size=(11, 2)).astype(np.float32), rng.normal(size=(LANES, 2)).astype(np.float32))
    alone = keys(block.cut(n), FEW, few=few)
    np.testing.assert_array_equal(keys(block, FEW, few=few)[:, :n], alone)
    np.testing.assert_array_equal(keys(block, FEW, n, few), alone)


def test_where_candidates_are_too_few_the_largest_key_stays() -> None:
    block = with_distances(np.zeros((4, 2), np.float64))
    block.costs = block.costs[:4]
    np.testing.assert_array_equal(keys(block, FEW)[4], [np.iinfo(np.int64).max] * 2)
