from __future__ import annotations

import numpy as np
import pytest

from vcgmm.kernels.seeding.totals import add_by_label

pytestmark = pytest.mark.interpreted


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", [1, 3])
def test_sums_and_masses_are_those_of_the_points_with_a_label(dtype: type, width: int) -> None:
    rng = np.random.default_rng(0)
    labels, weights = rng.integers(-1, 5, (100, width)).astype(np.int32), rng.uniform(0.5, 2.0, 100)
    values = rng.normal(size=100).astype(dtype)
    sums, masses = np.ones((2, 6))  # what is there already stays
    add_by_label(labels, weights, values, sums, masses)
    for label in range(6):
        own = labels[:, 0] == label
        assert sums[label] == pytest.approx(1 + weights[own] @ values[own].astype(np.float64))
        assert masses[label] == pytest.approx(1 + weights[own].sum())
