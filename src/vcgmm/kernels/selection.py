"""The C' nearest of a block of candidates, for many points at once.

Distances come as (candidates x points), so that each step is a loop over points, which LLVM turns into vector
instructions.  A candidate's index travels with its distance in the low bits of the same integer: the bit
pattern of a non-negative float orders like the float itself, so a minimum of integers moves both.

The price is that distances which agree in all but the low bits may come out in the wrong order, so callers look
the distances up again by index and put ties right.
"""

from __future__ import annotations

import numpy as np

from .jit import kernel

#: Up to so many candidates fit beside a float32 distance with 15 bits of mantissa left.
NARROW = 256


def key_types(dtype: np.dtype, n_candidates: int) -> tuple[type, type]:
    """Float and integer type of the keys: 32 bits where the index leaves enough of the distance, else 64."""
    if dtype == np.float32 and n_candidates <= NARROW:
        return np.float32, np.int32
    return np.float64, np.int64


def key_indices(n_candidates: int, key_type: type) -> np.ndarray:
    """Index of every candidate in the keys' type, followed by the mask that covers them and the largest key."""
    mask = (1 << max(1, int(n_candidates - 1).bit_length())) - 1
    return np.array([*range(n_candidates), mask, np.iinfo(key_type).max], dtype=key_type)


@kernel
def smallest_keys(
    distances: np.ndarray,
    indices: np.ndarray,
    row: np.ndarray,
    row_bits: np.ndarray,
    best: np.ndarray,
) -> None:
    """Keep, for every point, the keys of its nearest candidates in ascending order.

    Parameters
    ----------
    distances : (L, B) float, IN, non-negative
    indices : (L' + 2,) int32 or int64, IN, from `key_indices` with L' >= L
    row : (B,) float32 or float64, scratch
    row_bits : (B,) int32 or int64, the same memory as `row` seen as integers
    best : (C', B) int32 or int64, OUT, keys: distance above, index below the mask
    """
    n_best, n_points = best.shape
    mask = indices[-2]
    for k in range(n_best):
        for j in range(n_points):
            best[k, j] = indices[-1]
    for i in range(distances.shape[0]):
        index = indices[i]
        for j in range(n_points):
            row[j] = distances[i, j]
        for j in range(n_points):
            row_bits[j] = (row_bits[j] & ~mask) | index
        for k in range(n_best):
            for j in range(n_points):
                key = row_bits[j]
                kept = best[k, j]
                best[k, j] = min(kept, key)
                row_bits[j] = max(kept, key)
