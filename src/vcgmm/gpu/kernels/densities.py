"""Log densities: sums of exponentials over all clusters, in one pass over products in float64."""

from __future__ import annotations

import triton
import triton.language as tl

from .launching import launched

#: In the place of no mass at all: differences of such values are numbers still.
LOWEST = tl.constexpr(-1e308)


@launched
@triton.jit
def log_sums(
    products,
    n_columns,
    squares,
    row_squares,
    sums,
    BY_DISTANCE: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Sums of exponentials, log sum_c exp(v_c), one program a row.

    Values are the products themselves, or where BY_DISTANCE -p |y - mu_c|^2 = 2 p y mu_c - p |y|^2 - p |mu_c|^2.

    Every thread has a largest value and a sum of its own, taken relative to it.  One exponential a value will do,
    since of the old largest and the new value one is the new largest.

    Parameters
    ----------
    products : (n, C) float64, IN, 2 p y mu_c, or logs of joints, numbers or -inf
    n_columns : int, IN, C
    squares : (C,) float64, IN, p |mu_c|^2, and
    row_squares : (n,) float64, IN, p |y|^2, where BY_DISTANCE
    sums : (n,) float64, OUT
    BY_DISTANCE : constexpr, whether values are made of products and squares
    COLUMNS : constexpr, columns at a time
    """
    row = tl.program_id(0).to(tl.int64)
    place = tl.arange(0, COLUMNS)
    top = tl.full([COLUMNS], LOWEST, tl.float64)
    total = tl.zeros([COLUMNS], tl.float64)
    for first in range(0, n_columns, COLUMNS):
        column = first + place
        inside = column < n_columns
        value = tl.load(products + row * n_columns + column, mask=inside, other=LOWEST)
        if BY_DISTANCE:
            value = value - tl.load(squares + column, mask=inside, other=0.0) - tl.load(row_squares + row)
            value = tl.where(value > 0.0, 0.0, value)  # nothing but rounding, where a point is at a mean
        value = tl.where(value < LOWEST, LOWEST, value)
        more = value - top
        share = tl.exp(-tl.abs(more))
        found = tl.where(more > 0.0, total * share + 1.0, total + share)
        total = tl.where(inside, found, total)
        top = tl.where(inside & (more > 0.0), value, top)
    largest = tl.max(top, 0)
    found = largest + tl.log(tl.sum(total * tl.exp(top - largest), 0))
    tl.store(sums + row, tl.where(largest == LOWEST, float("-inf"), found))
