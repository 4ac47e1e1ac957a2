from __future__ import annotations

import math

import numpy as np
import pytest

from vcgmm.kernels.coreset.moments import (
    absolute_sum,
    block_deviations,
    block_moments,
    merge_moments,
    scatter,
    squared_deviations,
    weighted_sum,
)

pytestmark = pytest.mark.interpreted


@pytest.fixture
def rows() -> np.ndarray:
    return (1e6 + np.random.default_rng(0).normal(size=(50, 3))).astype(np.float32)


def test_a_weighted_sum_is_taken_in_float64(rows: np.ndarray) -> None:
    weights = np.random.default_rng(1).random(50)
    total = np.ones(3)
    weighted_sum(rows, weights, total)
    expected = [
        1.0 + math.fsum(float(w) * float(y) for w, y in zip(weights, rows[:, d], strict=True)) for d in range(3)
    ]
    np.testing.assert_allclose(total, expected, rtol=1e-14)


def test_no_weights_mean_ones(rows: np.ndarray) -> None:
    total, with_ones = np.zeros((2, 3))
    weighted_sum(rows, np.empty(0), total)
    weighted_sum(rows, np.ones(50), with_ones)
    np.testing.assert_array_equal(total, with_ones)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("first", "last"), [(0, 50), (7, 31), (9, 9)])
def test_a_sum_of_absolute_values_is_taken_in_float64(first: int, last: int, dtype: type) -> None:
    rng = np.random.default_rng(1)
    points, weights = (1e6 * rng.normal(size=(50, 3))).astype(dtype), rng.random(50)
    total = np.full(3, np.nan)  # it is not added to
    absolute_sum(first, last, points, weights, total)
    mine = range(first, last)
    expected = [math.fsum(float(weights[n]) * abs(float(points[n, d])) for n in mine) for d in range(3)]
    np.testing.assert_allclose(total, expected, rtol=1e-14)


def test_deviations_lose_nothing_to_an_offset(rows: np.ndarray) -> None:
    centre = rows.astype(np.float64).mean(axis=0)
    out = np.empty(50)
    squared_deviations(rows, centre, out)
    np.testing.assert_allclose(out, ((rows.astype(np.float64) - centre) ** 2).sum(axis=1), rtol=1e-14)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_scatter_is_the_weighted_sum_of_deviations(rows: np.ndarray, weighted: bool) -> None:
    weights = np.random.default_rng(2).random(50) if weighted else np.empty(0)
    centre = rows.astype(np.float64).mean(axis=0)
    out = np.empty(50)
    squared_deviations(rows, centre, out)
    expected = math.fsum(out * weights) if weighted else math.fsum(out)
    assert scatter(rows, weights, centre) == pytest.approx(expected, rel=1e-13)


def test_moments_of_blocks_merge_into_those_of_all() -> None:
    rng = np.random.default_rng(3)
    blocks = [offset + rng.normal(size=(n, 2)) for n, offset in ((5, 0.0), (1, 1e4), (7, -50.0), (3, 1e-3))]
    weights = [rng.random(5), np.zeros(1), rng.random(7), rng.random(3)]
    sums = np.array([w @ block for w, block in zip(weights, blocks, strict=True)])
    masses = np.array([w.sum() for w in weights])
    means = sums / np.where(masses, masses, 1.0)[:, None]
    scatters = np.array(
        [w @ ((block - mean) ** 2).sum(axis=1) for w, block, mean in zip(weights, blocks, means, strict=True)]
    )
    total = np.zeros(2)
    mass, spread = merge_moments(sums[:1], masses[:1], scatters[:1], total, 0.0, 0.0)
    mass, spread = merge_moments(sums[1:], masses[1:], scatters[1:], total, mass, spread)
    every, weight = np.concatenate(blocks), np.concatenate(weights)
    mean = np.average(every, axis=0, weights=weight)
    assert mass == pytest.approx(weight.sum())
    np.testing.assert_allclose(total / mass, mean, rtol=1e-12)
    assert spread == pytest.approx(weight @ ((every - mean) ** 2).sum(axis=1), rel=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_blocks_are_summed_as_they_would_be_alone(weighted: bool) -> None:
    rng = np.random.default_rng(4)
    rows, step = rng.normal(size=(23, 3)).astype(np.float32), 6
    weights = rng.random(23) if weighted else np.empty(0)
    if weighted:
        weights[12:18] = 0
    starts = range(0, 23, step)
    masses = np.array([weights[i : i + step].sum() if weighted else min(step, 23 - i) for i in starts], float)
    sums, scatters = np.full((4, 3), np.nan), np.full(4, np.nan)
    block_moments(rows, step, weights, masses, sums, scatters)
    for k, i in enumerate(starts):
        block, mass = rows[i : i + step], weights[i : i + step]
        total, spread = np.empty((1, 3)), np.empty(1)
        block_moments(block, step, mass, masses[k : k + 1], total, spread)
        np.testing.assert_array_equal(sums[k], total[0])
        assert scatters[k] == spread[0]
        expected = np.zeros(3)
        weighted_sum(block, mass, expected)
        np.testing.assert_allclose(total[0], expected, rtol=1e-12, atol=1e-12)
        about = scatter(block, mass, expected / masses[k]) if masses[k] else 0.0
        assert spread[0] == pytest.approx(about, rel=1e-12)
    out, alone = np.empty(23), np.empty(23)
    block_deviations(rows, step, np.ones(3), out)
    for i in starts:
        block_deviations(rows[i : i + step], step, np.ones(3), alone[i : i + step])
    np.testing.assert_array_equal(out, alone)
    squared_deviations(rows, np.ones(3), alone)
    np.testing.assert_allclose(out, alone, rtol=1e-12)
