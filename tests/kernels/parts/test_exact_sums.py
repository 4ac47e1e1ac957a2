from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcgmm.kernels.parts.exact_sums import add_moments, add_point, rounding_constant

pytestmark = pytest.mark.interpreted

terms = st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=1, max_size=40)
ALL_ROW_0 = np.zeros(5, np.int32)


def magic_of(values: list[float]) -> np.ndarray:
    return rounding_constant(np.array([[math.fsum(abs(value) for value in values)]]))


def rounded_sum(values: list[float], magic: np.ndarray) -> float:
    """The sum of one-dimensional points of weight 1, around a mean of 0."""
    points = np.array(values, np.float64).reshape(-1, 1)
    totals, masses, means = np.zeros((1, 1)), np.zeros(1), np.zeros((1, 1))
    for i in range(len(points)):
        add_point(totals, masses, 0, points, i, means, 1.0, magic, ALL_ROW_0, 1e20)
    return float(totals[0, 0])


# ------------------------------------------------------------------------------------------------------ one by one


@given(terms, st.randoms(use_true_random=False))
def test_any_order_gives_the_same_bits(values: list[float], random) -> None:
    magic = magic_of(values)
    shuffled = random.sample(values, len(values))
    assert rounded_sum(shuffled, magic) == rounded_sum(values, magic)


@given(terms, st.integers(0, 40), st.integers(0, 40))
def test_any_partition_gives_the_same_bits(values: list[float], cut: int, other_cut: int) -> None:
    magic = magic_of(values)
    low, high = sorted((cut, other_cut))
    parts = [rounded_sum(part, magic) for part in (values[:low], values[low:high], values[high:])]
    assert parts[2] + parts[0] + parts[1] == rounded_sum(values, magic)


@given(terms)
def test_rounding_costs_no_more_than_float64_would(values: list[float]) -> None:
    largest = math.fsum(abs(value) for value in values)
    error = abs(rounded_sum(values, magic_of(values)) - math.fsum(values))
    assert error <= len(values) * 2.0**-50 * max(largest, 1e-250)


@given(st.floats(-1e3, 1e3))
def test_what_is_rounded_is_a_multiple_of_the_quantum(value: float) -> None:
    quantum = 2.0 ** (10 - 50)  # 1000 lies below 2^10
    rounded = rounded_sum([value], rounding_constant(np.array([[1e3]])))
    assert (rounded / quantum).is_integer()
    assert abs(rounded - value) <= quantum / 2


def test_a_sum_that_can_only_be_zero_has_a_finite_constant() -> None:
    magic = rounding_constant(np.zeros((1, 1)))
    assert np.isfinite(magic).all()
    assert rounded_sum([0.0], magic) == 0.0


def test_a_point_adds_its_weight_and_its_displacement_from_the_mean() -> None:
    rng = np.random.default_rng(0)
    points, means = rng.normal(size=(3, 4)).astype(np.float32), rng.normal(size=(5, 4)).astype(np.float32)
    totals, masses = np.zeros((5, 4)), np.zeros(5)
    magic, mass_magic = rounding_constant(np.full((1, 4), 20.0)), float(rounding_constant(np.array(20.0)))
    add_point(totals, masses, 2, points, 1, means, 0.7, magic, ALL_ROW_0, mass_magic)
    expected = 0.7 * (points[1].astype(np.float64) - means[2].astype(np.float64))
    np.testing.assert_allclose(totals[2], expected, rtol=0, atol=1e-13)
    assert masses[2] == pytest.approx(0.7, rel=1e-13)
    assert not totals[[0, 1, 3, 4]].any()
    assert not masses[[0, 1, 3, 4]].any()


# ------------------------------------------------------------------------------------------------------ local sums


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_local_sums_become_displacements_from_the_mean(dtype: type) -> None:
    rng = np.random.default_rng(1)
    sums, means = rng.normal(size=(3, 4)).astype(dtype), rng.normal(size=(5, 4)).astype(dtype)
    expected = sums[1].astype(np.float64) - 2.5 * (means[2].astype(np.float64) - means[4])
    totals, masses = np.zeros((5, 4)), np.zeros(5)
    magic, mass_magic = rounding_constant(np.full((1, 4), 20.0)), float(rounding_constant(np.array(20.0)))
    sum_masses = np.array([0.0, 2.5, 0.0])
    add_moments(totals, masses, np.array([3, 2, 0]), sums, sum_masses, means, 4, magic, ALL_ROW_0, mass_magic)
    np.testing.assert_allclose(totals[2], expected, rtol=0, atol=1e-13)
    assert masses.tolist() == [0.0, 0.0, 2.5, 0.0, 0.0]
    assert not totals[[0, 1, 3, 4]].any()
    assert not sums[1].any()
    assert sums[[0, 2]].all()
    assert not sum_masses.any()


def test_local_sums_do_not_depend_on_the_order_they_come_in() -> None:
    rng = np.random.default_rng(2)
    sums, means = rng.normal(size=(2, 20, 3)).astype(np.float32)
    weights = rng.random(20)
    magic, mass_magic = rounding_constant(np.full((1, 3), 1e3)), float(rounding_constant(np.array(1e3)))
    results = []
    for order in (range(20), reversed(range(20))):
        totals, masses, local = np.zeros((1, 3)), np.zeros(1), sums.copy()
        for slot in order:
            one = np.zeros(20)
            one[slot] = weights[slot]
            add_moments(
                totals, masses, np.zeros(20, np.int32), local, one, means, slot, magic, ALL_ROW_0, mass_magic
            )
        results.append((totals, masses))
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1], results[1][1])


def test_a_cluster_may_have_a_constant_of_its_own() -> None:
    sums, means = np.full((1, 1), 1 / 3), np.zeros((2, 1))
    magic, row = rounding_constant(np.array([[1.0], [2.0**60]])), np.array([0, 1], np.int32)
    totals, masses = np.zeros((2, 1)), np.zeros(2)
    for cluster in (0, 1):
        add_moments(totals, masses, np.array([cluster]), sums.copy(), np.ones(1), means, 1, magic, row, 96.0)
    assert totals[0, 0] == pytest.approx(1 / 3, rel=1e-14)
    assert totals[1, 0] == 0.0
