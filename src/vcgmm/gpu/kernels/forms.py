"""What is compared: squared distances, or costs of clusters with weights and variances of their own.

The cost of a cluster c for a point y is sum_d p_cd (y_d - mu_cd)^2 + q_c, with p = 1 / (2 v): -log p(c, y) up to a
constant.  FORM says what precisions p there are, beside the means:

    "distance"  none: squared distances, no offsets q
    "cluster"   (C,), one for each cluster
    "feature"   (D,), one for each feature, as their square roots: distances of points that are stretched
    "own"       (C, D), one for each cluster and feature: two products, with y^2 and with y

In the last, products take all digits whatever MODE says: y^2 and y would be rounded apart, and do not cancel.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .rounding import add_products, rounded

#: No cost is larger: infinite ones could not be told from those that have been struck out.
LARGEST = tl.constexpr(3e38)


@triton.jit
def precisions_of(precisions, centre, feature, n_features, there, wide, FORM: tl.constexpr):
    """Precisions of centres (L,) in some features (F,): (L, F), or (1, F) where all share them; else nothing."""
    if FORM == "own":
        result = tl.load(precisions + centre[:, None] * n_features + feature[None, :], mask=there, other=0.0)
    elif FORM == "feature":
        result = tl.load(precisions + feature, mask=wide, other=0.0)[None, :]
    else:
        result = 1.0
    return result


@triton.jit
def as_multiplied(values, p, MODE: tl.constexpr, FORM: tl.constexpr):
    """Coordinates (P, F) or (L, F) float32 of points or of centres as they go into products."""
    if FORM == "own":
        result = values
    elif FORM == "feature":
        result = rounded(values * p, MODE)
    else:
        result = rounded(values, MODE)
    return result


@triton.jit
def products_of(y, m, p, products, row_squares, centre_squares, MODE: tl.constexpr, FORM: tl.constexpr):
    """Add some features to the products (P, L) and to the squares of points (P,) and of centres (L,)."""
    if FORM == "own":
        products = add_products(y * y, p, products, "fp32")
        products = add_products(y, -2.0 * (p * m), products, "fp32")
        centre_squares += tl.sum(p * m * m, axis=1)
    else:
        products = add_products(y, m, products, MODE)
        wide_y, wide_m = y.to(tl.float32), m.to(tl.float32)
        row_squares += tl.sum(wide_y * wide_y, axis=1)
        centre_squares += tl.sum(wide_m * wide_m, axis=1)
    return products, row_squares, centre_squares


@triton.jit
def costs_of(products, row_squares, centre_squares, precisions, offsets, centre, listed, FORM: tl.constexpr):
    """Squared distances or costs (P, L) from the sums over all features."""
    if FORM == "own":
        result = tl.maximum(products + centre_squares[None, :], 0.0)
    else:
        result = tl.maximum(row_squares[:, None] + centre_squares[None, :] - 2.0 * products, 0.0)
    if FORM == "cluster":
        result *= tl.load(precisions + centre, mask=listed, other=0.0)[None, :]
    if FORM != "distance":
        result = tl.minimum(result + tl.load(offsets + centre, mask=listed, other=0.0)[None, :], LARGEST)
    return result


@triton.jit
def pair_costs(
    points,
    stride,
    n_features,
    scale,
    row,
    centre,
    inside,
    centres,
    centre_stride,
    precisions,
    offsets,
    PAIRS: tl.constexpr,
    FEATURES: tl.constexpr,
    FORM: tl.constexpr,
):
    """Squared distances or costs of pairs of a row (PAIRS,) and a centre (PAIRS,), where `inside`, float32.

    Difference by difference: there is nothing to cancel.
    """
    total = tl.zeros((PAIRS,), tl.float32)
    for begin in range(0, n_features, FEATURES):
        feature = begin + tl.arange(0, FEATURES)
        wide = feature < n_features
        mask = inside[:, None] & wide[None, :]
        y = tl.load(points + row[:, None] * stride + feature[None, :], mask=mask, other=0).to(tl.float32)
        m = tl.load(centres + centre[:, None] * centre_stride + feature[None, :], mask=mask, other=0.0)
        p = precisions_of(precisions, centre, feature, n_features, mask, wide, FORM)
        difference = tl.where(mask, y * scale - m, 0.0)
        if FORM == "feature":
            difference *= p
        squares = difference * difference
        if FORM == "own":
            squares *= p
        total += tl.sum(squares, axis=1)
    if FORM == "cluster":
        total *= tl.load(precisions + centre, mask=inside, other=0.0)
    if FORM != "distance":
        total = tl.minimum(total + tl.load(offsets + centre, mask=inside, other=0.0), LARGEST)
    return total
