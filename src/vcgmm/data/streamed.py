"""Rows of a source, read ahead of whoever uses them."""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np

from .reading import read_ahead
from .rows import BLOCK_VALUES, PART_BLOCKS, Part, Rows
from .source import Source


class StreamedRows(Rows):
    """Rows of a source.

    Parameters
    ----------
    source : Source
    """

    def __init__(self, source: Source) -> None:
        super().__init__(source.n_features, source.dtype, source.name)
        self.source = source

    @property
    def n_samples(self) -> int:
        """How many rows there are."""
        return self.source.n_samples

    @property
    def has_weights(self) -> bool:
        """Whether the source has weights."""
        return self.source.weighted

    def use_weights(self) -> None:
        """Let parts come with the source's weights, once they have been checked in a pass over them alone.

        In parts they are divided by `weight_unit`, the power of two under the largest: its scale costs no digits.

        Raises
        ------
        ValueError
            If a weight is negative or not finite, or all are zero.
        """
        first, largest, total = 0, 0.0, 0.0
        for weights in self.source.weight_blocks():
            bad = ~(np.isfinite(weights) & (weights >= 0))
            if bad.any():
                row = int(np.argmax(bad))
                raise ValueError(
                    f"The weight of {self.source.name}, {self.locate(first + row)}, is {weights[row]}: weights "
                    f"are finite and not negative. Use 0 for a row that should not count."
                )
            largest = max(largest, float(weights.max(initial=0.0)))
            with np.errstate(over="ignore"):
                total += float(weights.sum())
            first += len(weights)
        self.source.check_count(first)
        if largest == 0.0:
            raise ValueError(f"The weights of {self.source.name} are zero for every row: give one that is not.")
        if not math.isfinite(total):
            raise ValueError(f"The weights of {self.source.name} sum to infinity: divide them by the largest.")
        self.weight_unit = math.ldexp(1.0, math.frexp(largest)[1] - 1)
        self.weighted = True

    def parts(self) -> Generator[Part, None, None]:
        """All rows, in order, read ahead by a thread."""
        return read_ahead(self._read())

    def _read(self) -> Generator[Part, None, None]:
        # Blocks of very wide rows are long: fewer of them, for several parts are in memory at a time.
        n_blocks = max(1, min(PART_BLOCKS, PART_BLOCKS * BLOCK_VALUES // (self.rows_per_block * self.n_features)))
        first, step = 0, self.rows_per_block * n_blocks
        with self.source.cursor() as fill:
            n = step
            while n == step:
                rows = np.empty((step, self.n_features), self.dtype)
                weights = np.empty(step) if self.weighted else None
                n = fill(rows, weights)
                if weights is not None:
                    weights = weights[:n] / self.weight_unit
                if n:
                    yield Part(first, rows[:n], weights, self)
                first += n
        self.source.check_count(first)

    def take(self, indices: np.ndarray) -> np.ndarray:
        """Rows with these indices."""
        return self.source.take(indices)

    def all(self) -> np.ndarray:
        """All rows in memory."""
        return np.asarray(self.source)

    def locate(self, row: int) -> str:
        """A row in words: which file, which row of it."""
        return self.source.locate(row)
