"""Products over many features, panel by panel.

OpenBLAS multiplies small matrices as they lie, at full speed, and copies larger ones into buffers first, which at
the sizes of a block of points and its candidates takes as long as the product itself.  So features are cut into
panels, few enough that each product is a small one, and the products are added up.
"""

from __future__ import annotations

import numpy as np

from .jit import part
from .transpose import transpose

#: Largest number of multiplications in one product, a little below OpenBLAS' own limit of a million.
LARGEST_PRODUCT = 983_040


@part
def panel_shape(n_features: int, n_rows: int, n_columns: int) -> tuple[int, int]:
    """Number of panels, and features in each, for products of (n_rows, D) and (D, n_columns)."""
    widest = max(1, LARGEST_PRODUCT // (n_rows * n_columns))
    n_panels = (n_features + widest - 1) // widest
    return n_panels, (n_features + n_panels - 1) // n_panels


@part
def multiply_panels(
    panels: np.ndarray,
    rows: np.ndarray,
    columns: np.ndarray,
    products: np.ndarray,
    scratch: np.ndarray,
) -> None:
    """Fill products[i, j] = <panels[:, i], rows[j]>.

    Rows are transposed a panel at a time, while it is in cache.

    Parameters
    ----------
    panels : (P, m, K) float, IN
    rows : (>= n, >= P K) float, IN, whatever lies in those that are no points
    columns : (K, n) float, scratch
    products : (m, n) float, OUT
    scratch : of the shape of `products`, not used for one panel
    """
    width = panels.shape[2]
    for p in range(panels.shape[0]):
        transpose(columns.shape[1], rows, p * width, columns)
        if p == 0:
            np.dot(panels[0], columns, products)
        else:
            np.dot(panels[p], columns, scratch)
            for i in range(products.shape[0]):
                for j in range(products.shape[1]):
                    products[i, j] += scratch[i, j]
