from __future__ import annotations

import numpy as np
import pytest

from vcgmm.kernels.mstep.steps import row_products, take_step

pytestmark = pytest.mark.interpreted


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("step", [1.0, 1.7])
def test_a_step_is_rounded_as_numpy_rounds_it(step: float, dtype: type) -> None:
    rng = np.random.default_rng(0)
    shifts, masses = rng.normal(size=(9, 13)), rng.uniform(0.1, 3.0, 9)
    means = rng.normal(size=(9, 13)).astype(dtype)
    shifts[4], masses[4] = 0.0, 0.0
    out = np.full((9, 13), np.nan)
    take_step(2, 7, shifts, masses, means, step, out)
    expected = shifts / np.where(masses > 0, masses, 1.0)[:, None] * step + means
    np.testing.assert_array_equal(out[2:7], expected[2:7])
    np.testing.assert_array_equal(out[4], means[4])
    assert np.isnan(out[[0, 1, 7, 8]]).all()


def test_products_of_rows() -> None:
    rng = np.random.default_rng(1)
    left, right = rng.normal(size=(6, 11)), rng.normal(size=(6, 11))
    out = np.zeros((6, 2))
    row_products(1, 5, left, right, out)
    expected = np.stack([(left * left).sum(axis=1), (left * right).sum(axis=1)], axis=1)
    np.testing.assert_allclose(out[1:5], expected[1:5], rtol=1e-13)
    assert not out[[0, 5]].any()
