"""The C' nearest of a block of candidates, those of least cost, for many points at once.

Costs come as (candidates x points), so that each step is a loop over points, which LLVM turns into vector
instructions.  A candidate's index travels with its distance in the low bits of the same integer: the bit
pattern of a non-negative float orders like the float itself, so a minimum of integers moves both.

The price is that distances which agree in all but the low bits may come out in the wrong order, so callers look
the distances up again by index and put ties right.

What is kept lies at a stride that the compiler knows, `LANES`: it need not fear that rows overlap.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import types
from numba.extending import overload

from ..jit import FAST, part
from .vectors import ROWS

#: Up to so many candidates fit beside a float32 distance with 15 bits of mantissa left.
NARROW = 256

#: Points in one block, at most.
LANES = 64

#: Up to so many nearest are selected in registers (`survey`).
FEW = 5

#: Candidates that are sorted among themselves before they meet those.
AT_ONCE = 4


def key_type(dtype: np.dtype, n_candidates: int) -> type:
    """Integer type of the keys: 32 bits where the index leaves enough of the distance, else 64."""
    return np.int32 if dtype == np.float32 and n_candidates <= NARROW else np.int64


def key_indices(n_candidates: int, dtype: type) -> np.ndarray:
    """Index of every candidate in the keys' type, then a mask that clears it from a key, and the largest key.

    There are as many indices as the next multiple of `vectors.ROWS`, which is one of `AT_ONCE`.
    """
    n_indices = -(-n_candidates // ROWS) * ROWS
    mask = (1 << max(1, int(n_indices - 1).bit_length())) - 1
    return np.array([*range(n_indices), ~mask, np.iinfo(dtype).max], dtype=dtype)


def pack(value: float, keep: int, index: int) -> int:
    """Key of a non-negative distance and an index, in the type of `keep`."""
    width = np.float32 if isinstance(keep, np.int32) else np.float64
    return type(keep)((width(value).view(type(keep)) & keep) | index)


@overload(pack, jit_options={"fastmath": FAST}, strict=False)
def _compiled_pack(value: float, keep: types.Integer, index: int) -> Callable[..., np.signedinteger]:  # noqa: ARG001
    if keep == types.int32:
        return lambda value, keep, index: np.int32((np.float32(value).view(np.int32) & keep) | index)
    return lambda value, keep, index: np.int64((np.float64(value).view(np.int64) & keep) | index)


@part
def smallest_keys(
    n_best: int,
    n: int,
    costs: np.ndarray,
    indices: np.ndarray,
    best: np.ndarray,
) -> None:
    """Keep, for every point, the keys of its nearest candidates in ascending order.

    Parameters
    ----------
    n_best, n : int, IN, how many to keep, of how many points
    costs : (L', >= n) float, IN, of candidates for points, never negative
    indices : (L' + 2,) int32 or int64, IN, from `key_indices`
    best : ((n_best + 1) * LANES,) int32 or int64, OUT, keys: the k-th of point j is best[k * LANES + j];
        the rest is scratch
    """
    keep = indices[-2]
    for k in range(n_best * LANES):
        best[k] = indices[-1]
    scratch = n_best * LANES
    for i in range(costs.shape[0]):
        for j in range(n):
            best[scratch + j] = pack(costs[i, j], keep, indices[i])
        for k in range(n_best):
            for j in range(n):
                kept = best[k * LANES + j]
                key = best[scratch + j]
                best[k * LANES + j] = min(kept, key)
                best[scratch + j] = max(kept, key)
