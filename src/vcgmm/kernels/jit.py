"""How every kernel is compiled: cached on disk, without the GIL, one specialisation per dtype.

Kernels never start threads.  `vcgmm.parallel` runs them on Python threads, which the released GIL lets work at
the same time, so there is no threading layer to choose and two fits may run in one process.

A literal number as an argument is a type of its own to numba, and has the callee compiled once more: between
kernels 0 is passed as int(np.int64(0)).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., object])

#: Lets LLVM vectorise sums; NaN and infinity keep their meaning.
FAST = {"contract", "reassoc", "nsz", "arcp"}


def kernel(function: Function) -> Function:
    """Compile a kernel whose float sums may be reordered by the compiler (always in the same way)."""
    return cast("Function", numba.njit(nogil=True, cache=True, fastmath=FAST, error_model="numpy")(function))


def strict_kernel(function: Function) -> Function:
    """Compile a kernel in which every float operation happens exactly as written.

    Said outright: left unset, a function takes over the fastmath flags of the one that calls it.
    """
    return cast("Function", numba.njit(nogil=True, cache=True, fastmath=False, error_model="numpy")(function))
