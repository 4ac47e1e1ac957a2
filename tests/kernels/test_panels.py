from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcgmm.algorithm.natural import Natural
from vcgmm.kernels.costs import natural_panels
from vcgmm.kernels.panels import LARGEST_PANEL, costs_by_panels, panel_shape
from vcgmm.kernels.vectors import ROWS, lanes

pytestmark = pytest.mark.interpreted


@given(st.integers(1, 5000), st.integers(1, 64))
def test_panels_cover_all_features_and_are_as_few_as_can_be(n_features: int, n_columns: int) -> None:
    n_panels, width = panel_shape(n_features, n_columns)
    assert n_panels * width >= n_features
    assert (n_panels - 1) * width < n_features
    assert n_columns * width <= LARGEST_PANEL
    if n_panels > 1:
        assert n_columns * (-(-n_features // (n_panels - 1))) > LARGEST_PANEL


@pytest.mark.parametrize(("n_panels", "width"), [(1, 7), (2, 4), (3, 3), (7, 1)])
def test_costs_by_panels_are_those_of_the_whole(n_panels: int, width: int) -> None:
    rng = np.random.default_rng(n_panels)
    n = lanes(8)
    source, origin, rows = rng.normal(size=(9, 7)), rng.normal(size=7), np.array([4, 0, 8, 4, 1, 2, 7, 3])
    panels, constants, squares = np.zeros((n_panels, ROWS, width)), np.empty(ROWS), np.empty(ROWS)
    natural = Natural.shared(source)
    natural_panels(source, natural.precisions, natural.offsets, rows, origin, panels, constants, squares)
    local = source[rows] - origin
    np.testing.assert_allclose(squares, (local**2).sum(axis=1))
    np.testing.assert_array_equal(constants, squares)
    others = np.zeros((n + 1, n_panels * width + 2))
    others[:, :7] = rng.normal(size=(n + 1, 7))
    norms = (others**2).sum(axis=1)
    columns, costs = np.full((width, n), np.nan), np.full((ROWS, n), np.nan)
    costs_by_panels(panels, others, constants, norms, columns, costs)
    np.testing.assert_allclose(costs, ((local[:, None] - others[None, :n, :7]) ** 2).sum(axis=2))
