from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcgmm.kernels.parts.exact_sums import rounding_constant
from vcgmm.kernels.parts.square_sums import FINER, add_moment_squares, add_point_squares, add_square

pytestmark = pytest.mark.interpreted

ROW = np.zeros(3, np.int32)


def test_what_rounding_leaves_is_added_up_too() -> None:
    """A thousand squares below half a quantum: the first part alone would say that there are none."""
    magic = float(rounding_constant(np.array(2.0**50)))  # a quantum of 1
    totals = np.zeros((1, 2, 1))
    for _ in range(1000):
        add_square(totals, 0, 0, 0.3, magic)
    assert totals[0, 0, 0] == 0.0
    assert totals.sum() == pytest.approx(300.0, abs=1000 * 2 * FINER)


@given(st.integers(0, 1 << 20), st.booleans())
def test_squares_are_taken_about_the_clusters_own_mean(seed: int, by_feature: bool) -> None:
    rng = np.random.default_rng(seed)
    n, D = 9, 4
    V = D if by_feature else 1
    means, points, weights = rng.normal(size=(3, D)), rng.normal(size=(n, D)), rng.uniform(0.1, 2.0, n)
    expected = weights @ (points - means[1]) ** 2
    expected = expected if by_feature else expected.sum(keepdims=True)
    magic = rounding_constant(np.full((1, V), 1e3))
    one_by_one = np.zeros((3, 2, V))
    for i in range(n):
        add_point_squares(one_by_one, 1, points, i, means, weights[i], magic, ROW)
    np.testing.assert_allclose(one_by_one[1].sum(axis=0), expected, rtol=1e-12)
    # … and from sums about the mean of the cell.
    local = points - means[2]
    squares = weights @ local**2
    sums = np.concatenate([weights @ local, squares if by_feature else squares.sum(keepdims=True)])[None]
    together = np.zeros((3, 2, V))
    add_moment_squares(together, 1, sums, 0, weights.sum(), means, 2, magic, ROW)
    np.testing.assert_allclose(together[1].sum(axis=0), expected, rtol=1e-10)
    assert not together[[0, 2]].any()
