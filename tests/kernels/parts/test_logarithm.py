from __future__ import annotations

import numpy as np
import pytest

from vcgmm.kernels.jit import kernel
from vcgmm.kernels.parts.logarithm import log_of_positive

pytestmark = pytest.mark.interpreted


@kernel
def logarithms(values: np.ndarray, out: np.ndarray) -> None:
    for i in range(len(values)):
        out[i] = log_of_positive(values[i])


def test_logarithms_are_good_to_the_last_digits() -> None:
    rng = np.random.default_rng(0)
    small = np.concatenate(
        [np.linspace(1, 5, 10_001), np.exp(rng.uniform(-700, 700, 5_000)), [2.0**-1022, 0.5, 2.0]]
    )
    out = np.empty_like(small)
    logarithms(small, out)
    np.testing.assert_allclose(out, np.log(small), rtol=1e-14, atol=1e-14)
    assert out[0] == 0.0
