from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcgmm.algorithm.cells.natural import Natural
from vcgmm.algorithm.models import reference
from vcgmm.algorithm.models.mixture import Mixture
from vcgmm.kernels.cells.costs import (
    COST_ERROR,
    costs_of_pairs,
    dearest,
    farthest_square,
    natural_rows,
    statistics_rows,
)

pytestmark = pytest.mark.interpreted


def natural_of(rng: np.random.Generator, kind: str, C: int, D: int) -> tuple[Natural, np.ndarray]:
    """Clusters, and the function of points that their costs are: (n, D) -> (n, C)."""
    means = rng.normal(size=(C, D))
    if kind == "shared":
        return Natural.shared(means), lambda Y: ((Y[:, None] - means) ** 2).sum(axis=2)
    variances = rng.uniform(0.1, 3.0, size=(C, D if kind == "diag" else 1))
    mixture = Mixture(means, variances, rng.dirichlet(np.ones(C)))
    natural = mixture.natural(np.dtype(np.float64))

    def costs(Y: np.ndarray) -> np.ndarray:
        spread = np.broadcast_to(variances, (C, D))
        return -reference.log_joint(Y, means, spread, mixture.weights) - natural.constant

    return natural, costs


@given(
    seed=st.integers(0, 1 << 20),
    kind=st.sampled_from(["shared", "spherical", "diag"]),
    D=st.integers(1, 6),
)
def test_a_product_of_coefficients_and_statistics_gives_the_costs(seed: int, kind: str, D: int) -> None:
    rng = np.random.default_rng(seed)
    C, n = 8, 9
    natural, expected = natural_of(rng, kind, C, D)
    points, origin = rng.normal(size=(n, D)), rng.normal(size=D)
    n_statistics = D + natural.n_squares
    rows, constants, squares = np.empty((C, n_statistics)), np.empty(C), np.empty(C)
    natural_rows(
        natural.means, natural.precisions, natural.offsets, np.arange(C), origin, rows, constants, squares
    )
    statistics, norms = np.empty((n, n_statistics)), np.empty(n)
    statistics_rows(points, np.arange(n), 0, n, origin, natural.n_squares, statistics, norms)
    costs = constants + norms[:, None] - 2 * (statistics @ rows.T)
    np.testing.assert_allclose(costs, expected(points), atol=1e-9)
    own = 1.0 if natural.precisions is None else np.broadcast_to(natural.precisions, (C, D))
    np.testing.assert_allclose(squares, (own * (natural.means - origin) ** 2).sum(axis=1), atol=1e-12)

    pairs = rng.integers(n, size=20), rng.integers(C, size=20)
    out = np.full(21, -1.0)
    costs_of_pairs(20, *pairs, points, natural.means, natural.precisions, natural.offsets, out)
    np.testing.assert_allclose(out[:20], expected(points)[pairs], rtol=1e-9, atol=1e-9)
    assert out[20] == -1.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_cluster_beyond_all_bounds_still_has_a_cost(dtype: type) -> None:
    means = np.array([[0.0], [np.finfo(dtype).max / 8]], dtype)
    rows, constants, squares = np.empty((2, 1), dtype), np.empty(2, dtype), np.empty(2, dtype)
    with np.errstate(over="ignore"):  # plain Python would warn
        natural_rows(means, None, None, np.arange(2), means[0], rows, constants, squares)
    assert squares[1] == np.inf
    assert constants.tolist() == [0.0, dtype(dearest(np.dtype(dtype).itemsize))]


def test_up_to_the_farthest_square_rounding_stays_below_the_error_allowed() -> None:
    for dtype in (np.float32, np.float64):
        assert farthest_square(np.dtype(dtype)) * np.finfo(dtype).eps == pytest.approx(COST_ERROR)
