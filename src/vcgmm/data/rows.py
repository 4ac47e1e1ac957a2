"""Rows as the algorithm asks for them.

A step asks its rows for very little: how many, how wide, their parts in order, and the rows with these indices.
A part is a run of blocks, and sums are taken per block: blocks depend on the width alone, so results depend
neither on how the rows are read nor on the number of threads.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

#: Values in one block: small enough to stay in cache between conversion and use.
BLOCK_VALUES = 1 << 18

#: Rows in one block, however wide they are: what is kept per block stays small beside the block.
LEAST_ROWS = 64

#: Blocks in one part at most: where it is read into memory, and where it is a view of an array, which may be long
#: and is then handed around less often.  Parts that an array is cut into at least, where it has so many blocks.
PART_BLOCKS = 8
VIEW_BLOCKS = 16
LEAST_PARTS = 12

#: Parts of rows in memory over which sums may be taken all at once.
FEW_PARTS = 2 * LEAST_PARTS


def exact_float(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The narrower of float32 and float64 that holds every value of `dtype` (float64 where neither does)."""
    return np.dtype(np.float32 if np.can_cast(dtype, np.float32) else np.float64)


class Rows(ABC):
    """Rows of real numbers of any dtype, cut into blocks.

    Parameters
    ----------
    n_features : int
    dtype : dtype
    name : str
        What error messages call them.

    Attributes
    ----------
    weighted : bool
        Parts come with weights.
    weight_unit : float
        What those are multiples of: a power of two.
    """

    weighted = False
    weight_unit = 1.0

    def __init__(self, n_features: int, dtype: np.dtype[Any], name: str) -> None:
        self.n_features = n_features
        self.dtype = dtype
        self.name = name
        self.rows_per_block = max(LEAST_ROWS, BLOCK_VALUES // max(1, n_features))

    @property
    @abstractmethod
    def n_samples(self) -> int:
        """How many rows there are."""

    @abstractmethod
    def parts(self) -> Generator[Part, None, None]:
        """All rows, in order."""

    @abstractmethod
    def take(self, indices: np.ndarray) -> np.ndarray:
        """Rows with these indices, in their own dtype."""

    @abstractmethod
    def all(self) -> np.ndarray:
        """All rows in one array, in their own dtype."""

    @property
    def has_weights(self) -> bool:
        """Whether the rows could come with weights."""
        return False

    def use_weights(self) -> None:
        """Let parts come with those weights, once they have been checked."""
        raise TypeError(f"{self.name} has no weights.")

    @property
    def at_hand(self) -> bool:
        """Whether all rows are in memory."""
        return False

    @property
    def in_few_parts(self) -> bool:
        """Whether all rows are in memory, in so few parts that sums over each of them are little."""
        return False

    def locate(self, row: int) -> str:
        """A row in words."""
        return f"row {row}"


@dataclass(frozen=True)
class Part:
    """A run of rows that begins and ends where blocks do.

    Attributes
    ----------
    first : int
        Index of its first row among all.
    rows : (n, D) array
        In their own dtype: conversions happen one block at a time.
    own_weights : (n,) float64 or None
        Weights that came with the rows.
    owner : Rows
    """

    first: int
    rows: np.ndarray
    own_weights: np.ndarray | None
    owner: Rows

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.rows)

    def bounds(self) -> Iterator[tuple[int, int]]:
        """First row of each block and the first one after it, counted from the part's first."""
        step = self.owner.rows_per_block
        for first in range(0, len(self.rows), step):
            yield first, min(first + step, len(self.rows))

    def block(self, first: int, last: int) -> np.ndarray:
        """Rows of a block as contiguous floats that hold their values exactly."""
        return np.ascontiguousarray(self.rows[first:last], dtype=exact_float(self.rows.dtype))

    def runs(self) -> Iterator[tuple[int, int]]:
        """Like `bounds`, but in one run where nothing has to be converted."""
        if self.rows.dtype == exact_float(self.rows.dtype) and self.rows.flags.c_contiguous:
            yield 0, len(self.rows)
        else:
            yield from self.bounds()

    def weights(self, given: np.ndarray | None) -> np.ndarray | None:
        """Weights of these rows: from those that are given for all rows, else their own; None: all 1."""
        return self.own_weights if given is None else given[self.first : self.first + len(self.rows)]

    def refuse_nonfinite(self, first: int, last: int) -> None:
        """Raise a ValueError that names the first NaN or infinity of a block, if it holds any."""
        finite = np.isfinite(self.rows[first:last])
        if not finite.all():
            row, feature = np.argwhere(~finite)[0]
            value = self.rows[first + row, feature]
            kind = "NaN" if np.isnan(value) else "infinity (inf)"
            raise ValueError(
                f"Input {self.owner.name} contains {kind}: the first in "
                f"{self.owner.locate(self.first + first + int(row))}, feature {feature}. "
                f"Remove such rows or impute their values (for example with sklearn.impute.SimpleImputer)."
            )


class ArrayRows(Rows):
    """Rows of a two-dimensional array of any real dtype and memory order.

    Parameters
    ----------
    array : (N, D) array
        Kept as it is.
    name : str
        What error messages call it.
    """

    def __init__(self, array: np.ndarray, name: str = "X") -> None:
        super().__init__(array.shape[1], array.dtype, name)
        self.array = array
        self.n_blocks = -(-len(array) // self.rows_per_block)

    @property
    def n_samples(self) -> int:
        """How many rows there are."""
        return len(self.array)

    def parts(self) -> Generator[Part, None, None]:
        """All rows, in order; nothing is copied."""
        for first in range(0, len(self.array), self._rows_per_part):
            yield Part(first, self.array[first : first + self._rows_per_part], None, self)

    @property
    def _rows_per_part(self) -> int:
        return self.rows_per_block * min(VIEW_BLOCKS, max(1, self.n_blocks // LEAST_PARTS))

    @property
    def in_few_parts(self) -> bool:
        """Whether all rows are in memory, in so few parts that sums over each of them are little."""
        return self.at_hand and len(self.array) <= FEW_PARTS * self._rows_per_part

    def take(self, indices: np.ndarray) -> np.ndarray:
        """Rows with these indices, in the array's own dtype."""
        return np.ascontiguousarray(self.array[indices])

    @property
    def at_hand(self) -> bool:
        """Whether all rows are in memory, and not in a file that is mapped."""
        return not isinstance(self.array, np.memmap)

    @property
    def quick(self) -> bool:
        """Whether any row can be fetched at once: neither from a file, nor from many places."""
        return self.at_hand and self.array.strides[1] == self.array.itemsize

    def all(self) -> np.ndarray:
        """The array itself."""
        return self.array

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
        Part(0, self.array, None, self).refuse_nonfinite(*self.bounds(block))
