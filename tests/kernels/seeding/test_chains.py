from __future__ import annotations

import numpy as np
import pytest

from vcgmm.algorithm import reference
from vcgmm.kernels.seeding.chains import lower_distances

pytestmark = pytest.mark.interpreted


def test_distances_are_only_lowered() -> None:
    points = np.random.default_rng(0).normal(size=(10, 3)).astype(np.float32)
    distances = np.full(10, 2.0, np.float32)
    lower_distances(2, 9, points, 4, distances)
    expected = np.minimum(2.0, reference.squared_distances(points, points[4:5])[:, 0])
    np.testing.assert_allclose(distances[2:9], expected[2:9], rtol=1e-5)
    assert distances[4] == 0.0
    assert (distances[[0, 1, 9]] == 2.0).all()
