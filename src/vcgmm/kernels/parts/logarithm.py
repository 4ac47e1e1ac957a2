"""The logarithm of positive numbers, in a form that LLVM turns into vector instructions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from ..jit import FAST

#: Bits of the fraction of a float64, and the pattern of sqrt(1/2).
_FRACTION = np.int64(52)
_ROOT = np.int64(np.float64(math.sqrt(0.5)).view(np.int64))
_LOG_2 = math.log(2)


def log_of_positive(x: float) -> float:
    """log(x) for a normal float64 x > 0, good to 1e-14 of max(1, |log x|)."""
    return math.log(x)


@overload(log_of_positive, jit_options={"fastmath": FAST}, strict=False)
def _compiled(x: types.Float) -> Callable[..., Any]:  # noqa: ARG001
    """X = 2^e m with m between sqrt(1/2) and sqrt(2), log m = 2 artanh((m - 1) / (m + 1)) by its series."""

    def wide(x: float) -> float:
        bits = np.float64(x).view(np.int64)
        exponent = (bits - _ROOT) >> _FRACTION
        m = np.int64(bits - (exponent << _FRACTION)).view(np.float64)
        s = (m - 1.0) / (m + 1.0)
        q = s * s
        series = 1 / 17
        for k in (15, 13, 11, 9, 7, 5, 3, 1):
            series = series * q + 1 / k
        return np.float64(exponent) * _LOG_2 + 2.0 * s * series

    return wide
