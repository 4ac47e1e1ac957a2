from __future__ import annotations

import numpy as np
import pytest

from vcgmm.algorithm import reference
from vcgmm.kernels.mstep.scatter import scatter_about

pytestmark = pytest.mark.interpreted


def test_it_is_the_scatter_of_the_responsibilities_about_the_new_means() -> None:
    rng = np.random.default_rng(0)
    Y, gamma = rng.normal(size=(12, 3)), rng.uniform(0.5, 2.0, 12)
    old, new = rng.normal(size=(5, 3)), rng.normal(size=(5, 3))
    K = np.array([rng.permutation(5)[:3] for _ in range(12)], dtype=np.int32)
    out = np.full(12, np.nan)
    scatter_about(2, 12, Y, gamma, K, old, 0.5 / 0.7, new, out)
    s = reference.responsibilities(Y, old, 0.7, K)
    expected = gamma * (s * reference.squared_distances(Y, new)).sum(axis=1)
    assert np.isnan(out[:2]).all()
    np.testing.assert_allclose(out[2:], expected[2:], rtol=1e-12)
