from __future__ import annotations

import math

import numpy as np
import pytest

from vcgmm.kernels.coreset.quick_moments import (
    SPARSE,
    add_differences,
    quick_block_deviations,
    quick_block_moments,
    quick_deviations,
    sparse_mean,
)
from vcgmm.kernels.parts.vectors import lanes

pytestmark = pytest.mark.interpreted


def rows_of(n: int, n_features: int, offset: float = 0.0) -> np.ndarray:
    return (offset + np.random.default_rng(0).normal(size=(n, n_features))).astype(np.float32)


def with_room(centre: np.ndarray) -> np.ndarray:
    """A centre and zeros, up to a whole number of vectors."""
    return np.append(centre, np.zeros(-len(centre) % lanes(4), np.float32))


@pytest.mark.parametrize(("n", "n_features"), [(1, 3), (7, 1), (8, 5), (75, 9), (40, 16), (40, 33)])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_differences_to_a_centre_near_by_lose_nothing_to_an_offset(n: int, n_features: int, offset: float) -> None:
    rows = rows_of(n, n_features, offset)
    centre = rows[n // 2] + np.float32(0.5)
    total = np.ones(n_features)
    squares = add_differences(rows, with_room(centre), total)
    exact = rows.astype(np.float64) - centre
    np.testing.assert_allclose(total, 1.0 + exact.sum(axis=0), rtol=1e-6, atol=1e-5)
    assert squares == pytest.approx(math.fsum((exact**2).ravel()), rel=1e-6)


def test_the_mean_of_some_rows() -> None:
    rows, total, centre = rows_of(2 * SPARSE + 1, 3, 5.0), np.empty(3), np.empty(3, np.float32)
    sparse_mean(rows, total, centre)
    np.testing.assert_allclose(centre, rows[::SPARSE].mean(axis=0), rtol=1e-6)


def test_blocks_are_summed_as_they_would_be_alone() -> None:
    rows, step = rows_of(23, 3, 50.0), 6
    sums, scatters = np.full((4, 3), np.nan), np.full(4, np.nan)
    quick_block_moments(rows, step, sums, scatters)
    out = np.empty(23)
    centre = rows.astype(np.float64).mean(axis=0)
    high = centre.astype(np.float32)
    low = (centre - high).astype(np.float32)
    quick_block_deviations(rows, step, high, low, centre, out)
    for k, i in enumerate(range(0, 23, step)):
        block = rows[i : i + step].astype(np.float64)
        total, spread, alone = np.empty((1, 3)), np.empty(1), np.empty(len(block))
        quick_block_moments(rows[i : i + step], step, total, spread)
        np.testing.assert_array_equal(sums[k], total[0])
        assert scatters[k] == spread[0]
        np.testing.assert_allclose(total[0], block.sum(axis=0), rtol=1e-8)
        assert spread[0] == pytest.approx(((block - block.mean(axis=0)) ** 2).sum(), rel=1e-5)
        quick_deviations(rows[i : i + step], high, low, alone)
        np.testing.assert_array_equal(out[i : i + step], alone)
    exact = ((rows.astype(np.float64) - centre) ** 2).sum(axis=1)
    np.testing.assert_allclose(out, exact, rtol=1e-6)


def test_a_scatter_holds_where_the_centre_is_far_from_the_mean() -> None:
    # The one row of 64 that is looked at lies a million standard deviations away.
    rows = rows_of(SPARSE, 2)
    rows[0] = 1e6
    sums, scatters = np.empty((1, 2)), np.empty(1)
    quick_block_moments(rows, SPARSE, sums, scatters)
    exact = rows.astype(np.float64)
    np.testing.assert_allclose(sums[0] / SPARSE, exact.mean(axis=0), atol=1e-6 * exact.std())
    assert scatters[0] == pytest.approx(((exact - exact.mean(axis=0)) ** 2).sum(), rel=1e-5)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 3e38, 1e25])
def test_blocks_that_float32_cannot_hold_say_so(bad: float) -> None:
    rows = rows_of(16, 2)
    rows[11, 1] = bad
    sums, scatters = np.empty((2, 2)), np.empty(2)
    with np.errstate(over="ignore", invalid="ignore"):
        quick_block_moments(rows, 8, sums, scatters)
    assert np.isnan(scatters).tolist() == [False, True]


@pytest.mark.parametrize("scale", [0.0, 1e-25, 1e-17])
def test_so_do_blocks_whose_squares_vanish(scale: float) -> None:
    sums, scatters = np.empty((1, 2)), np.empty(1)
    quick_block_moments(rows_of(16, 2) * np.float32(scale), 16, sums, scatters)
    assert np.isnan(scatters[0])


def test_a_row_whose_square_overflows_is_computed_in_float64() -> None:
    rows, out = rows_of(9, 2), np.empty(9)
    rows[4, 0] = 1e25
    with np.errstate(over="ignore"):
        quick_block_deviations(rows, 9, np.zeros(2, np.float32), np.zeros(2, np.float32), np.zeros(2), out)
    np.testing.assert_allclose(out, (rows.astype(np.float64) ** 2).sum(axis=1), rtol=1e-6)


def test_a_hint_changes_nothing_and_may_point_anywhere() -> None:
    rows, out = np.ones((4, 1), np.float32), np.empty(4)
    quick_deviations(rows, np.zeros(1, np.float32), np.zeros(1, np.float32), out)  # all hints are beyond the end
    assert out.tolist() == [1.0, 1.0, 1.0, 1.0]
