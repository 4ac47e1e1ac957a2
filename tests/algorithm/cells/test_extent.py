from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcgmm.algorithm.cells.extent import Extent
from vcgmm.algorithm.cells.natural import Natural
from vcgmm.algorithm.models.mixture import Mixture
from vcgmm.parallel import Workers


def quanta_of(shift_magic: np.ndarray) -> np.ndarray:
    return shift_magic / (1.5 * 2.0**52)


@given(st.integers(0, 10_000), st.sampled_from([0.0, 3.0, 1e6]))
def test_no_sum_can_outgrow_its_constant(seed: int, offset: float) -> None:
    rng = np.random.default_rng(seed)
    points, weights = rng.standard_cauchy((40, 2)), rng.uniform(0.1, 5.0, 40)
    means = rng.normal(size=(6, 2)) + offset * (np.arange(6) == 0)[:, None]
    rounding = Extent.of(points, weights, Workers(1)).rounding(Natural.shared(means))
    largest = np.abs(weights[:, None, None] * (points[:, None] - means)).sum(axis=0)  # of any responsibilities
    assert (largest <= 2.0**50 * quanta_of(rounding.shifts)[rounding.rows]).all()
    assert weights.sum() <= 2.0**50 * float(quanta_of(np.array(rounding.masses)))


def test_a_cluster_far_out_costs_the_others_no_digits() -> None:
    rng = np.random.default_rng(0)
    points, means = rng.normal(size=(50, 3)), rng.normal(size=(4, 3))
    extent = Extent.of(points, np.ones(50), Workers(1))
    near = extent.rounding(Natural.shared(means))
    means = means.copy()
    means[2, 1] = 1e9
    far = extent.rounding(Natural.shared(means))
    others = [0, 1, 3]
    np.testing.assert_array_equal(far.shifts[far.rows[others]], near.shifts[near.rows[others]])
    assert far.shifts[far.rows[2], 1] > 1e6 * near.shifts[near.rows[2], 1]


def test_many_points_are_added_up_in_parts() -> None:
    points = np.ones((1 << 18, 2), np.float32)
    assert Extent.of(points, np.full(1 << 18, 0.5), Workers(2)).absolute == pytest.approx([1 << 17] * 2)


@given(st.integers(0, 10_000), st.sampled_from([0.0, 3.0, 1e6]), st.booleans())
def test_no_sum_of_squares_can_outgrow_its_constant(seed: int, offset: float, by_feature: bool) -> None:
    rng = np.random.default_rng(seed)
    points, weights = rng.standard_cauchy((40, 2)), rng.uniform(0.1, 5.0, 40)
    means = rng.normal(size=(6, 2)) + offset * (np.arange(6) == 0)[:, None]
    mixture = Mixture(means, np.ones((6, 2 if by_feature else 1)), np.full(6, 1 / 6))
    extent = replace(Extent.of(points, weights, Workers(1)), squares=weights @ points**2)
    rounding = extent.rounding(mixture.natural(np.dtype(np.float64)))
    largest = (weights[:, None, None] * (points[:, None] - means) ** 2).sum(axis=0)
    if not by_feature:
        largest = largest.sum(axis=1, keepdims=True)
    assert (largest <= 2.0**50 * quanta_of(rounding.scatters)[rounding.rows]).all()


def test_squares_without_their_extent_are_an_error_of_the_caller() -> None:
    mixture = Mixture(np.zeros((2, 3)), np.ones((2, 1)), np.full(2, 0.5))
    with pytest.raises(RuntimeError, match="how large"):
        Extent(1.0, np.ones(3)).rounding(mixture.natural(np.dtype(np.float64)))


def test_extents_of_parts_add_up() -> None:
    both = Extent(1.0, np.ones(2), np.ones(2)) + Extent(2.0, np.ones(2), np.full(2, 3.0))
    assert (both.total_weight, both.absolute.tolist(), both.squares.tolist()) == (3.0, [2.0, 2.0], [4.0, 4.0])
    assert (both + Extent(1.0, np.ones(2))).squares is None
