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

from .jit import FAST, part
from .vectors import ROWS

#: Up to so many candidates fit beside a float32 distance with 15 bits of mantissa left.
NARROW = 256

#: Points in one block, at most.
LANES = 64

#: Candidates that are sorted among themselves before they meet the nearest so far.
AT_ONCE = 4

#: Up to so many nearest are selected in registers.
FEW = 5


def key_type(dtype: np.dtype, n_candidates: int) -> type:
    """Integer type of the keys: 32 bits where the index leaves enough of the distance, else 64."""
    return np.int32 if dtype == np.float32 and n_candidates <= NARROW else np.int64


def key_indices(n_candidates: int, dtype: type) -> np.ndarray:
    """Index of every candidate in the keys' type, then a mask that clears it from a key, and the largest key.

    There are as many indices as the next multiple of `tiles.ROWS`, which is one of `AT_ONCE`.
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
    costs : (L', >= n) float, IN, of candidates for points, never negative; L' a multiple of AT_ONCE
    indices : (L' + 2,) int32 or int64, IN, from `key_indices`
    best : ((n_best + AT_ONCE) * LANES,) int32 or int64, OUT, keys: the k-th of point j is best[k * LANES + j];
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


@part
def five_smallest_keys(
    n: int,
    costs: np.ndarray,
    indices: np.ndarray,
    best: np.ndarray,
) -> None:
    """`smallest_keys` for n_best = FEW: four candidates at a time, without a detour through memory.

    The four are sorted first, a <= b <= c <= d.  Then b cannot be the smallest of all, c is the third at best,
    and d the fourth, so each has one comparison less to make than the one before it.
    """
    keep = indices[-2]
    for k in range(FEW * LANES):
        best[k] = indices[-1]
    for i in range(0, costs.shape[0], AT_ONCE):
        index0, index1, index2, index3 = indices[i], indices[i + 1], indices[i + 2], indices[i + 3]
        for j in range(n):
            a, b = pack(costs[i, j], keep, index0), pack(costs[i + 1, j], keep, index1)
            c, d = pack(costs[i + 2, j], keep, index2), pack(costs[i + 3, j], keep, index3)
            a, b = min(a, b), max(a, b)
            c, d = min(c, d), max(c, d)
            a, c = min(a, c), max(a, c)
            b, d = min(b, d), max(b, d)
            b, c = min(b, c), max(b, c)
            best0, best1, best2, best3, best4 = (
                best[j], best[LANES + j], best[2 * LANES + j], best[3 * LANES + j], best[4 * LANES + j],
            )  # fmt: skip
            best0, a = min(best0, a), max(best0, a)
            best1, a = min(best1, a), max(best1, a)
            best2, a = min(best2, a), max(best2, a)
            best3, a = min(best3, a), max(best3, a)
            best4 = min(best4, a)
            best1, b = min(best1, b), max(best1, b)
            best2, b = min(best2, b), max(best2, b)
            best3, b = min(best3, b), max(best3, b)
            best4 = min(best4, b)
            best2, c = min(best2, c), max(best2, c)
            best3, c = min(best3, c), max(best3, c)
            best4 = min(best4, c)
            best3, d = min(best3, d), max(best3, d)
            best4 = min(best4, d)
            best[j] = best0
            best[LANES + j] = best1
            best[2 * LANES + j] = best2
            best[3 * LANES + j] = best3
            best[4 * LANES + j] = best4
