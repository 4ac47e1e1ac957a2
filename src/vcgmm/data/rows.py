"""Rows of an array, block by block.

A step of the algorithm asks its rows for very little: how many, how wide, block i, and the rows with these
indices.  Blocks depend on the shape alone, never on the number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

#: Values in one block: small enough to stay in cache between conversion and use.
BLOCK_VALUES = 1 << 18

#: Rows in one block, however wide they are: what is kept per block stays small beside the block.
LEAST_ROWS = 64


def exact_float(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The narrower of float32 and float64 that holds every value of `dtype` (float64 where neither does)."""
    return np.dtype(np.float32 if np.can_cast(dtype, np.float32) else np.float64)


class ArrayRows:
    """Rows of a two-dimensional array of any real dtype and memory order.

    Parameters
    ----------
    array : (N, D) array
        Kept as it is: conversions happen one block at a time.
    name : str
        What error messages call it.
    """

    def __init__(self, array: np.ndarray, name: str = "X") -> None:
        self.array = array
        self.name = name
        self.n_samples, self.n_features = array.shape
        self.dtype = array.dtype
        self.rows_per_block = max(LEAST_ROWS, BLOCK_VALUES // max(1, self.n_features))
        self.n_blocks = -(-self.n_samples // self.rows_per_block)

    def bounds(self, block: int) -> tuple[int, int]:
        """First row of a block and the first one after it."""
        first = block * self.rows_per_block
        return first, min(first + self.rows_per_block, self.n_samples)

    def block(self, block: int) -> np.ndarray:
        """Rows of one block as contiguous floats that hold their values exactly."""
        first, last = self.bounds(block)
        return np.ascontiguousarray(self.array[first:last], dtype=exact_float(self.dtype))

    def refuse_nonfinite(self, block: int) -> None:
        """Raise a ValueError that names the first NaN or infinity of a block, if it holds any."""
        first, last = self.bounds(block)
        finite = np.isfinite(self.array[first:last])
        if not finite.all():
            row, feature = np.argwhere(~finite)[0]
            value = self.array[first + row, feature]
            kind = "NaN" if np.isnan(value) else "infinity (inf)"
            raise ValueError(
                f"Input {self.name} contains {kind}: the first in row {first + row}, feature {feature}. "
                f"Remove such rows or impute their values (for example with sklearn.impute.SimpleImputer)."
            )

    def take(self, indices: np.ndarray) -> np.ndarray:
        """Rows with these indices, in the array's own dtype."""
        return np.ascontiguousarray(self.array[indices])
