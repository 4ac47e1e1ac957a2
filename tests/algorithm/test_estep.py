from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcgmm.algorithm.estep import Quanta
from vcgmm.parallel import Workers


def quanta_of(shift_magic: np.ndarray) -> np.ndarray:
    return shift_magic / (1.5 * 2.0**52)


@given(st.integers(0, 10_000), st.sampled_from([0.0, 3.0, 1e6]))
def test_no_sum_can_outgrow_its_constant(seed: int, offset: float) -> None:
    rng = np.random.default_rng(seed)
    points, weights = rng.standard_cauchy((40, 2)), rng.uniform(0.1, 5.0, 40)
    means = rng.normal(size=(6, 2)) + offset * (np.arange(6) == 0)[:, None]
    shift_magic, row, mass_magic = Quanta(points, weights, Workers(1)).magic_numbers(means)
    largest = np.abs(weights[:, None, None] * (points[:, None] - means)).sum(axis=0)  # of any responsibilities
    assert (largest <= 2.0**50 * quanta_of(shift_magic)[row]).all()
    assert weights.sum() <= 2.0**50 * float(quanta_of(np.array(mass_magic)))


def test_a_cluster_far_out_costs_the_others_no_digits() -> None:
    rng = np.random.default_rng(0)
    points, means = rng.normal(size=(50, 3)), rng.normal(size=(4, 3))
    quanta = Quanta(points, np.ones(50), Workers(1))
    near_magic, near_row, _ = quanta.magic_numbers(means)
    means[2, 1] = 1e9
    magic, row, _ = quanta.magic_numbers(means)
    others = [0, 1, 3]
    np.testing.assert_array_equal(magic[row[others]], near_magic[near_row[others]])
    assert magic[row[2], 1] > 1e6 * near_magic[near_row[2], 1]


def test_many_points_are_added_up_in_parts() -> None:
    points = np.ones((1 << 18, 2), np.float32)
    assert Quanta(points, np.full(1 << 18, 0.5), Workers(2)).absolute == pytest.approx([1 << 17] * 2)
