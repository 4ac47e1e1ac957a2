"""Costs by products over many features, panel by panel.

The points of a block are turned into columns, which are read again for every few candidates: features are cut into
panels, few enough that a panel of columns stays in the nearest cache.
"""

from __future__ import annotations

import numpy as np

from .jit import part
from .tiles import add_products
from .transpose import transpose

#: Numbers in a panel of columns, at most.
LARGEST_PANEL = 8_192


@part
def panel_shape(n_features: int, n_columns: int) -> tuple[int, int]:
    """Number of panels, and features in each, for products with columns (D, n_columns)."""
    widest = max(1, LARGEST_PANEL // n_columns)
    n_panels = (n_features + widest - 1) // widest
    return n_panels, (n_features + n_panels - 1) // n_panels


@part
def costs_by_panels(
    panels: np.ndarray,
    rows: np.ndarray,
    constants: np.ndarray,
    norms: np.ndarray,
    columns: np.ndarray,
    costs: np.ndarray,
) -> None:
    """Fill costs[i, j] = max(constants[i] + norms[j] - 2 <panels[:, i], rows[j]>, 0).

    Rows are transposed a panel at a time, while it is in cache.

    Parameters
    ----------
    panels : (P, m, K) float, IN, m as in `add_products`
    rows : (>= n, >= P K) float, IN, whatever lies in those that are no points
    constants, norms : (m,) and (>= n,) float, IN
    columns : (K, n) float, scratch, n as in `add_products`
    costs : (m, n) float, OUT
    """
    width, last = panels.shape[2], panels.shape[0] - 1
    for p in range(panels.shape[0]):
        transpose(columns.shape[1], rows, p * width, columns)
        add_products(panels[p], columns, constants, norms, costs, p > 0, p == last)
