"""What tensor cores multiply: values rounded so that norms and products speak of the same numbers."""

from __future__ import annotations

import os

import triton
import triton.language as tl

#: The interpreter cuts digits off where it should round to bf16, and multiplies bit patterns instead of values:
#: there such values stay float32, rounded.
INTERPRETED = tl.constexpr(os.environ.get("TRITON_INTERPRET") == "1")


@triton.jit
def rounded(values, MODE: tl.constexpr):
    """Values as the tensor cores will take them.

    Distances by expansion, |y|^2 + |m|^2 - 2 y m, are then exact distances of slightly moved points: rounding the
    product alone would leave errors that do not cancel.

    MODE is "bf16" (8 bits of mantissa), "tf32" (11 bits, to nearest: left alone the hardware would cut them off)
    or "fp32".
    """
    if MODE == "bf16" and not INTERPRETED:
        result = values.to(tl.bfloat16)
    elif MODE == "bf16":
        bits = values.to(tl.int32, bitcast=True)
        result = ((bits + 32768) & -65536).to(tl.float32, bitcast=True)
    elif MODE == "tf32":
        bits = values.to(tl.int32, bitcast=True)
        result = ((bits + 4096) & -8192).to(tl.float32, bitcast=True)
    else:
        result = values
    return result


@triton.jit
def add_products(left, right, total, MODE: tl.constexpr):
    """Total (P, L) plus the products of rounded left (P, D) and right (L, D) rows."""
    if MODE == "fp32":  # three products of halves: nearly all digits, and still on tensor cores
        result = tl.dot(left, tl.trans(right), total, input_precision="tf32x3")
    else:
        result = tl.dot(left, tl.trans(right), total, input_precision="tf32")
    return result
