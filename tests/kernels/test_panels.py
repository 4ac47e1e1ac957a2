from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcgmm.algorithm.natural import Natural
from vcgmm.kernels.costs import natural_panels
from vcgmm.kernels.panels import LARGEST_PRODUCT, multiply_panels, panel_shape

pytestmark = pytest.mark.interpreted


@given(st.integers(1, 5000), st.integers(1, 3000), st.integers(1, 64))
def test_panels_cover_all_features_and_are_as_few_as_can_be(n_features: int, n_rows: int, n_columns: int) -> None:
    n_panels, width = panel_shape(n_features, n_rows, n_columns)
    assert n_panels * width >= n_features
    assert (n_panels - 1) * width < n_features
    assert width == 1 or n_rows * n_columns * width <= LARGEST_PRODUCT
    if n_panels > 1:
        assert n_rows * n_columns * (-(-n_features // (n_panels - 1))) > LARGEST_PRODUCT or width == 1


@pytest.mark.parametrize(("n_panels", "width"), [(1, 7), (2, 4), (3, 3), (7, 1)])
def test_products_of_panels_are_those_of_the_whole(n_panels: int, width: int) -> None:
    rng = np.random.default_rng(n_panels)
    source, origin, rows = rng.normal(size=(9, 7)), rng.normal(size=7), np.array([4, 0, 8, 4])
    panels, constants, squares = np.zeros((n_panels, 4, width)), np.empty(4), np.empty(4)
    natural = Natural.shared(source)
    natural_panels(source, natural.precisions, natural.offsets, rows, origin, panels, constants, squares)
    local = source[rows] - origin
    np.testing.assert_allclose(squares, (local**2).sum(axis=1))
    np.testing.assert_array_equal(constants, squares)
    others = np.zeros((6, n_panels * width + 2))
    others[:, :7] = rng.normal(size=(6, 7))
    columns, products, scratch = np.full((width, 5), np.nan), np.empty((4, 5)), np.empty((4, 5))
    multiply_panels(panels, others, columns, products, scratch)
    np.testing.assert_allclose(products, local @ others[:5, :7].T)
