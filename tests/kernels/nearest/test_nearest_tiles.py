from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcgmm.kernels.nearest.nearest_tiles import HEIGHT, VECTORS, nearest_of_few, padded
from vcgmm.kernels.parts.vectors import lanes

pytestmark = pytest.mark.interpreted


def find(centres: np.ndarray, points: np.ndarray, filling: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Squared distances less the points' squared norms, and nearest centres."""
    k, D = centres.shape
    laid, squares = np.full((padded(k), D), filling, centres.dtype), np.full(padded(k), np.inf, centres.dtype)
    laid[:k], squares[:k] = centres, (centres**2).sum(axis=1)
    best, ids = np.full(len(points), np.nan, centres.dtype), np.full(len(points), -1, np.int32)
    nearest_of_few(laid, squares, np.ascontiguousarray(points.T), best, ids)
    return best, ids


@pytest.mark.parametrize(("n", "rows"), [(1, HEIGHT), (HEIGHT, HEIGHT), (HEIGHT + 1, 2 * HEIGHT)])
def test_centres_are_filled_up_to_whole_tiles(n: int, rows: int) -> None:
    assert padded(n) == rows


@given(
    dtype=st.sampled_from([np.float32, np.float64]),
    k=st.integers(1, 3 * HEIGHT),
    tiles=st.integers(1, 3),
    D=st.integers(1, 20),
    filling=st.sampled_from([0.0, 7.0, np.nan, np.inf]),
)
def test_the_nearest_is_that_of_plain_distances(dtype: type, k: int, tiles: int, D: int, filling: float) -> None:
    rng = np.random.default_rng(k)
    n = tiles * VECTORS * lanes(np.dtype(dtype).itemsize)
    centres, points = rng.normal(size=(k, D)).astype(dtype), rng.normal(size=(n, D)).astype(dtype)
    best, ids = find(centres, points, filling)
    true = ((points[:, None].astype(np.float64) - centres) ** 2).sum(axis=2)
    tolerance = 1e-4 if dtype is np.float32 else 1e-11
    np.testing.assert_allclose(true[np.arange(n), ids], true.min(axis=1), rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(best, true.min(axis=1) - (points**2).sum(axis=1), rtol=tolerance, atol=tolerance)


def test_of_equal_centres_the_first_is_taken() -> None:
    n = VECTORS * lanes(4)
    centres = np.repeat(np.array([[3.0], [1.0], [2.0]], np.float32), [2, HEIGHT, 3], axis=0)
    _, ids = find(centres, np.linspace(-4, 1.4, n, dtype=np.float32)[:, None])
    assert (ids == 2).all()
