from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcgmm.kernels.nearest.nearest_tiles import HEIGHT, VECTORS, nearest_of_few, padded
from vcgmm.kernels.parts.selection import LANES
from vcgmm.kernels.parts.shorts import (
    FAR_ENOUGH,
    FEATURES,
    LARGEST,
    LOOKED_AT,
    NOTHING,
    PRODUCTS,
    SHARE,
    shorten,
    shorten_centres,
    steps_per_unit,
    steps_tell,
)
from vcgmm.kernels.parts.vectors import lanes

pytestmark = pytest.mark.interpreted

DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def squared(rows: np.ndarray) -> np.ndarray:
    norms: np.ndarray = (rows.astype(np.float64) ** 2).sum(axis=1)
    return norms


def shortened(rows: np.ndarray, steps: float) -> np.ndarray:
    """In memory that held something else."""
    pairs = np.full((len(rows) + 1, (rows.shape[1] + 1) // 2), 77, np.float32)
    shorten(len(rows), rows, steps, pairs)
    assert (pairs[len(rows) :] == 77).all()
    return pairs[: len(rows)].view(np.int16)


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
        (NOTHING, FEATURES, PRODUCTS),
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
    pairs, squares = np.full((padded(k), 4), 5, np.float32), np.empty(padded(k), np.int32)
    shorts = pairs.view(np.int16)
    assert shorten_centres(k, centres, steps, pairs, squares)
    np.testing.assert_array_equal(shorts[:k], shortened(centres, steps))
    np.testing.assert_array_equal(squares[:k], (shorts[:k].astype(np.int64) ** 2).sum(axis=1))
    assert not shorts[k:].any()
    assert (squares[k:] == np.iinfo(np.int32).max).all()
    assert not shorten_centres(k, centres, 1.01 * steps, pairs, squares)


def test_centres_without_numbers_are_too_long() -> None:
    pairs, squares = np.empty((HEIGHT, 1), np.float32), np.empty(HEIGHT, np.int32)
    assert not shorten_centres(1, np.full((1, 2), np.nan), 1.0, pairs, squares)


# -------------------------------------------------------------------------------------------------------- products


@given(D=st.integers(1, 70), k=st.integers(1, 2 * HEIGHT + 1), seed=st.integers(0, 99), long=st.booleans())
def test_the_nearest_of_rounded_rows_is_found_exactly(D: int, k: int, seed: int, long: bool) -> None:
    rng = np.random.default_rng(seed)
    rows, centres = rng.normal(size=(LANES, D)), rng.normal(size=(k, D))
    if long:  # as long as they may be, and against each other, where sums are largest
        rows[:k], centres = np.sign(rows[0]), np.repeat(-np.sign(rows[:1]), k, axis=0)
    steps = LARGEST / float(np.sqrt(squared(rows).max()))
    centres *= 2 * LARGEST / (steps * float(np.sqrt(squared(centres).max())) * 1.0001)
    pairs, squares = np.empty((padded(k), (D + 1) // 2), np.float32), np.empty(padded(k), np.int32)
    assert shorten_centres(k, centres, steps, pairs, squares)
    short_rows = shortened(rows, steps)
    columns = np.ascontiguousarray(np.ascontiguousarray(short_rows).view(np.float32).T)  # whatever bits these are
    best, ids = np.empty(LANES, np.int32), np.full(LANES, -1, np.int32)
    nearest_of_few(pairs, squares, columns, best, ids)
    wide, wide_centres = short_rows.astype(np.int64), pairs[:k].view(np.int16).astype(np.int64)
    distances = ((wide[:, None] - wide_centres) ** 2).sum(axis=2)
    np.testing.assert_array_equal(ids, distances.argmin(axis=1))
    np.testing.assert_array_equal(best + (wide**2).sum(axis=1), distances.min(axis=1))


def test_a_block_is_some_tiles() -> None:
    assert LANES % (VECTORS * lanes(4)) == 0


# ------------------------------------------------------------------------------------------------- is that enough?


@DTYPES
@pytest.mark.parametrize("n", [1, LOOKED_AT - 1, LOOKED_AT, 3 * LOOKED_AT + 7])
def test_steps_tell_where_rows_are_far_enough(n: int, dtype: type) -> None:
    rows, centres, ids = np.zeros((n, 2), dtype), np.array([[0.6, 0.8]], dtype), np.zeros(n, np.int32)
    assert steps_tell(n, rows, centres, ids, 1.001 * SHARE * FAR_ENOUGH)
    assert not steps_tell(n, rows, centres, ids, 0.999 * SHARE * FAR_ENOUGH)


@pytest.mark.parametrize("near", [0.2, 0.3])
def test_a_few_rows_that_are_very_far_do_not_speak_for_the_others(near: float) -> None:
    rows = np.full((LOOKED_AT, 1), 1e6)
    rows[: int(near * LOOKED_AT)] = 0.0
    assert steps_tell(LOOKED_AT, rows, np.zeros((1, 1)), np.zeros(LOOKED_AT, np.int32), 1.0) == (near < 0.25)
