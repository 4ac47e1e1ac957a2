"""The exponential of numbers that are not positive, in a form that LLVM turns into vector instructions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from ..jit import FAST

#: Binary exponents below this are those of numbers too small for float32's full precision: as good as 0.
LEAST = np.float32(-126)

_LOG2_E = np.float32(1.4426950408889634)
_HALF = np.float32(0.5)

#: 2^f on [-1/2, 1/2] by its Taylor series, good to 2e-7: ln(2)^k / k! for k = 6 ... 0.
_C6, _C5, _C4, _C3, _C2, _C1, _C0 = (np.float32(math.log(2) ** k / math.factorial(k)) for k in range(6, -1, -1))


def exp_below_zero(x: float) -> float:
    """exp(x) for x <= 0, in the type of x; to a few units of the last place of x for float32."""
    return type(x)(math.exp(x))


@overload(exp_below_zero, jit_options={"fastmath": FAST}, strict=False)
def _compiled(x: types.Float) -> Callable[..., Any]:
    if x != types.float32:
        return lambda x: math.exp(x)

    def narrow(x: np.float32) -> Any:
        binary = x * _LOG2_E
        binary = binary if binary > LEAST else LEAST
        whole = np.int32(binary - _HALF)  # towards 0: the nearest integer of a number that is not positive
        f = binary - np.float32(whole)
        power = (((((_C6 * f + _C5) * f + _C4) * f + _C3) * f + _C2) * f + _C1) * f + _C0
        return power * np.int32((whole + np.int32(127)) << np.int32(23)).view(np.float32)

    return narrow
