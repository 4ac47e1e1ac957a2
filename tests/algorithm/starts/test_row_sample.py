from __future__ import annotations

import numpy as np
import pytest

from vcgmm.algorithm.starts.row_sample import ROWS_AT_ONCE, RowSample
from vcgmm.parallel import Workers


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [30, ROWS_AT_ONCE, 2 * ROWS_AT_ONCE + 7])
def test_products_with_a_sample_are_those_of_its_rows_and_the_same_bits_for_any_number_of_threads(
    n: int, dtype: type
) -> None:
    rng = np.random.default_rng(6)
    rows, shares = rng.normal(2.0, 1.0, (n, 40)).astype(dtype), rng.dirichlet(np.ones(n))
    matrix, signs = rng.normal(size=(40, 5)).astype(dtype), rng.choice(np.array([-1, 1], dtype), n)
    R = np.sqrt(n * shares)[:, None] * (rows - shares @ rows)
    found = []
    for n_threads in (1, 2, 5):
        with Workers(n_threads) as workers:
            sample = RowSample(rows.copy(), shares, workers)
            found.append((sample.scatter_times(matrix), sample.scatter_within(matrix), sample.sums(signs, 7)))
            assert sample.total == pytest.approx((R**2).sum(), rel=1e-4)
            np.testing.assert_allclose(sample.scatter(), R.T @ R, rtol=1e-3, atol=1e-3 * n)
    times, within, sums = found[0]
    exact = [R.T @ R @ matrix, matrix.T @ R.T @ R @ matrix, np.stack([signs[i::7] @ R[i::7] for i in range(7)])]
    for one, wanted in zip((times, within, sums), exact, strict=True):
        assert one.dtype == dtype
        np.testing.assert_allclose(
            one, wanted, atol=1e-5 * abs(wanted).max() * (1 if dtype == np.float32 else 1e-8)
        )
    for others in found[1:]:
        for one, other in zip(found[0], others, strict=True):
            np.testing.assert_array_equal(one, other)


def test_tails_are_those_of_what_is_left_out() -> None:
    rng = np.random.default_rng(9)
    either = 5.0 * rng.integers(0, 2, 4000)
    rows = np.stack([rng.normal(size=4000), either, rng.random(4000) < 0.01], axis=1)
    sample = RowSample(rows, np.full(4000, 1 / 4000), Workers(1))
    axes = np.eye(3)
    assert sample.tails_beyond(axes[:, 1:]) == pytest.approx(3.0, rel=0.15)
    assert sample.tails_beyond(axes[:, [0, 2]]) == pytest.approx(1.0, rel=0.02)
    assert sample.tails_beyond(axes[:, :2]) > 50.0
    assert sample.tails_beyond(axes) == 0.0


def test_a_row_of_twice_the_weight_counts_as_two() -> None:
    rng = np.random.default_rng(11)
    rows, times, axes = rng.exponential(size=(500, 6)), rng.integers(1, 5, 500), np.eye(6)[:, :2]
    one = RowSample(rows.copy(), times / times.sum(), Workers(1)).tails_beyond(axes)
    many = np.repeat(rows, times, axis=0)
    other = RowSample(many, np.full(len(many), 1 / len(many)), Workers(1)).tails_beyond(axes)
    assert one == pytest.approx(other, rel=1e-9)
    assert one > 5.0


def test_what_rounding_leaves_has_no_tails() -> None:
    rng = np.random.default_rng(12)
    directions = np.linalg.qr(rng.normal(size=(80, 5)))[0].astype(np.float32)
    rows = (rng.standard_cauchy((400, 5)) @ directions.T).astype(np.float32)
    assert RowSample(rows, np.full(400, 1 / 400), Workers(1)).tails_beyond(directions) == 0.0
