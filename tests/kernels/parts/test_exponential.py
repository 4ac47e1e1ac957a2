from __future__ import annotations

import numpy as np
import pytest

from vcgmm.kernels.jit import kernel
from vcgmm.kernels.parts.exponential import exp_below_zero

pytestmark = pytest.mark.interpreted


@kernel
def exponentials(values: np.ndarray, out: np.ndarray) -> None:
    for i in range(len(values)):
        out[i] = exp_below_zero(values[i])


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 4e-7), (np.float64, 1e-15)])
def test_small_arguments_are_good_to_the_last_digits(dtype: type, tolerance: float) -> None:
    values = -np.linspace(0, 1, 10_001).astype(dtype)
    out = np.empty_like(values)
    exponentials(values, out)
    np.testing.assert_allclose(out, np.exp(values.astype(np.float64)), rtol=tolerance)
    assert out[0] == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_arguments_are_as_good_as_their_own_rounding_and_end_in_nothing(dtype: type) -> None:
    values = -np.linspace(0, 87, 10_001).astype(dtype)
    out = np.empty_like(values)
    exponentials(values, out)
    np.testing.assert_allclose(out, np.exp(values.astype(np.float64)), rtol=1e-5)
    far = np.array([-88.0, -1e4, -1e30, -np.inf], dtype)
    out = np.empty_like(far)
    exponentials(far, out)
    assert (out >= 0).all()
    assert (out < 1.2e-38).all()
