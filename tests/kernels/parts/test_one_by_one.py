from __future__ import annotations

import numpy as np
import pytest

from vcgmm.kernels.jit import kernel
from vcgmm.kernels.parts.one_by_one import fetch

pytestmark = pytest.mark.interpreted


@kernel
def fetch_all(array: np.ndarray, places: np.ndarray, out: np.ndarray) -> None:
    for i in range(len(places)):
        out[i] = fetch(array, places[i])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
@pytest.mark.parametrize("shape", [(21,), (7, 3)])
def test_numbers_are_those_of_the_array(shape: tuple[int, ...], dtype: type) -> None:
    rng = np.random.default_rng(0)
    array, places = rng.normal(size=shape, scale=1e6).astype(dtype), rng.integers(21, size=40)
    out = np.empty(40, dtype)
    fetch_all(array, places, out)
    np.testing.assert_array_equal(out, array.ravel()[places])
