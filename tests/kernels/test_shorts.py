from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcgmm.kernels.nearest_tiles import HEIGHT, VECTORS, nearest_of_few, padded
from vcgmm.kernels.selection import LANES
from vcgmm.kernels.shorts import (
    FAR_ENOUGH,
    FEATURES,
    LARGEST,
    LOOKED_AT,
    PRODUCTS,
    n_pairs,
    shorten,
    shorten_centres,
    steps_per_unit,
    steps_tell,
)

pytestmark = pytest.mark.interpreted

DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def squared(rows: np.ndarray) -> np.ndarray:
    norms: np.ndarray = (rows.astype(np.float64) ** 2).sum(axis=1)
    return norms


def shortened(rows: np.ndarray, steps: float) -> np.ndarray:
    """In memory that held something else."""
    shorts = np.full((len(rows) + 1, 2 * n_pairs(rows.shape[1])), 77, np.int16)
    shorten(len(rows), rows, steps, shorts)
    assert (shorts[len(rows) :] == 77).all()
    return shorts[: len(rows)]


# ----------------------------------------------------------------------------------------------------------- steps


@DTYPES
def test_the_longest_row_is_of_the_largest_norm(dtype: type) -> None:
    rows = np.random.default_rng(0).normal(size=(50, FEATURES)).astype(dtype)
    steps = steps_per_unit(40, squared(rows).astype(dtype), FEATURES, PRODUCTS)
    assert np.linalg.norm(rows[:40], axis=1).max() * steps == pytest.approx(LARGEST, rel=1e-6)


@pytest.mark.parametrize(
    ("square", "n_features", "n_products"),
    [
        (1.0, FEATURES - 1, PRODUCTS),
        (1.0, FEATURES, PRODUCTS - 1),
        (0.0, FEATURES, PRODUCTS),
        (np.inf, FEATURES, PRODUCTS),
        (1e-300, FEATURES, PRODUCTS),
    ],
)
def test_there_are_no_steps_where_they_would_be_no_use(square: float, n_features: int, n_products: int) -> None:
    assert steps_per_unit(1, np.array([square]), n_features, n_products) == 0.0


@DTYPES
@given(D=st.integers(1, 40), n=st.integers(1, 9), seed=st.integers(0, 99))
def test_rows_are_rounded_to_the_nearest_step(dtype: type, D: int, n: int, seed: int) -> None:
    rows = np.random.default_rng(seed).normal(size=(n, D)).astype(dtype)
    steps = LARGEST / float(np.sqrt(squared(rows).max()))
    shorts = shortened(rows, steps)
    assert np.abs(shorts[:, :D] - steps * rows.astype(np.float64)).max() <= 0.5 + 0.01  # 16,000 in float32
    assert not shorts[:, D:].any()


@DTYPES
def test_centres_have_norms_of_what_they_are_rounded_to(dtype: type) -> None:
    k, D = HEIGHT + 1, 7
    centres = np.random.default_rng(1).normal(size=(k, D)).astype(dtype)
    steps = 2 * LARGEST / float(np.sqrt(squared(centres).max()) * 1.001)
    shorts, squares = np.full((padded(k), 8), 5, np.int16), np.empty(padded(k), np.int32)
    assert shorten_centres(k, centres, squared(centres).astype(dtype), steps, shorts, squares)
    np.testing.assert_array_equal(shorts[:k], shortened(centres, steps))
    np.testing.assert_array_equal(squares[:k], (shorts[:k].astype(np.int64) ** 2).sum(axis=1))
    assert not shorts[k:].any()
    assert (squares[k:] == np.iinfo(np.int32).max).all()
    assert not shorten_centres(k, centres, squared(centres).astype(dtype), 1.01 * steps, shorts, squares)


def test_centres_without_numbers_are_too_long() -> None:
    shorts, squares = np.empty((HEIGHT, 2), np.int16), np.empty(HEIGHT, np.int32)
    assert not shorten_centres(1, np.full((1, 2), np.nan), np.array([np.nan]), 1.0, shorts, squares)


# -------------------------------------------------------------------------------------------------------- products


@given(D=st.integers(1, 70), k=st.integers(1, 2 * HEIGHT + 1), seed=st.integers(0, 99), long=st.booleans())
def test_the_nearest_of_rounded_rows_is_found_exactly(D: int, k: int, seed: int, long: bool) -> None:
    rng = np.random.default_rng(seed)
    rows, centres = rng.normal(size=(LANES, D)), rng.normal(size=(k, D))
    if long:  # as long as they may be, and against each other, where sums are largest
        rows[:k], centres = np.sign(rows[0]), np.repeat(-np.sign(rows[:1]), k, axis=0)
    steps = LARGEST / float(np.sqrt(squared(rows).max()))
    centres *= 2 * LARGEST / (steps * float(np.sqrt(squared(centres).max())) * 1.0001)
    shorts, squares = np.empty((padded(k), 2 * n_pairs(D)), np.int16), np.empty(padded(k), np.int32)
    assert shorten_centres(k, centres, squared(centres), steps, shorts, squares)
    short_rows = shortened(rows, steps)
    columns = np.ascontiguousarray(np.ascontiguousarray(short_rows).view(np.int32).T)
    best, ids = np.empty(LANES, np.int32), np.full(LANES, -1, np.int32)
    nearest_of_few(shorts.view(np.int32), squares, columns, best, ids)
    wide, wide_centres = short_rows.astype(np.int64), shorts[:k].astype(np.int64)
    distances = ((wide[:, None] - wide_centres) ** 2).sum(axis=2)
    np.testing.assert_array_equal(ids, distances.argmin(axis=1))
    np.testing.assert_array_equal(best + (wide**2).sum(axis=1), distances.min(axis=1))


def test_a_block_is_some_tiles() -> None:
    assert LANES % (VECTORS * n_pairs(2)) == 0


# ------------------------------------------------------------------------------------------------- is that enough?


@DTYPES
@pytest.mark.parametrize("n", [1, LOOKED_AT - 1, LOOKED_AT, 3 * LOOKED_AT + 7])
def test_steps_tell_where_rows_are_far_enough_in_the_mean(n: int, dtype: type) -> None:
    rows, ids = np.zeros((n, 2), dtype), np.arange(n).astype(np.int32) % 2
    centres = np.array([[1.0, 0.0], [0.0, 3.0]], dtype)
    apart = np.linalg.norm(centres[ids[:: max(1, n // LOOKED_AT)]], axis=1).mean()
    assert steps_tell(n, rows, centres, ids, 1.001 * FAR_ENOUGH / apart)
    assert not steps_tell(n, rows, centres, ids, 0.999 * FAR_ENOUGH / apart)
