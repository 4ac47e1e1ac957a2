"""Rows scaled to length 1 as they are read, for the cosine metric."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing

import numpy as np

from ..kernels.coreset.lengths import to_unit_length
from .rows import Part, Rows, exact_float


class UnitRows(Rows):
    """Other rows, each divided by its length.

    They are float64 where the others are, else float32.  A row of zeros has no direction: it is refused by name.

    Parameters
    ----------
    given : Rows
    """

    def __init__(self, given: Rows) -> None:
        wide = given.dtype.kind == "f" and given.dtype.itemsize >= 8
        super().__init__(given.n_features, np.dtype(np.float64 if wide else np.float32), given.name)
        self.given = given
        self.weighted, self.weight_unit = given.weighted, given.weight_unit

    @property
    def n_samples(self) -> int:
        """How many rows there are."""
        return self.given.n_samples

    @property
    def has_weights(self) -> bool:
        """Whether the rows could come with weights."""
        return self.given.has_weights

    def use_weights(self) -> None:
        """Let parts come with those weights."""
        self.given.use_weights()
        self.weighted, self.weight_unit = self.given.weighted, self.given.weight_unit

    def parts(self) -> Generator[Part, None, None]:
        """All rows, in order."""
        with closing(self.given.parts()) as parts:
            for part in parts:
                numbers = np.arange(part.first, part.first + len(part))
                yield Part(part.first, self._scaled(part.rows, numbers), part.own_weights, self)

    def take(self, indices: np.ndarray) -> np.ndarray:
        """Rows with these indices."""
        return self._scaled(self.given.take(indices), indices)

    def all(self) -> np.ndarray:
        """All rows in one array of their own."""
        return self._scaled(self.given.all(), np.arange(self.n_samples))

    def locate(self, row: int) -> str:
        """A row in words."""
        return self.given.locate(row)

    def _scaled(self, rows: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """Rows with these numbers (n,) scaled to length 1."""
        out = np.empty(rows.shape, self.dtype)
        wide = exact_float(rows.dtype)
        for first in range(0, len(rows), self.rows_per_block):
            block = np.ascontiguousarray(rows[first : first + self.rows_per_block], dtype=wide)
            bad = to_unit_length(block, out[first : first + len(block)])
            if bad < len(block):
                self._refuse(block[bad], int(numbers[first + bad]))
        return out

    def _refuse(self, row: np.ndarray, number: int) -> None:
        """Raise a ValueError that says what is wrong with a row."""
        if row.any():  # not finite
            Part(number, row[None], None, self).refuse_nonfinite(0, 1)
        raise ValueError(
            f"{self.name} has a row of zeros, {self.locate(number)}, which has no direction, and metric='cosine' "
            f"compares directions: remove such rows, or use metric='euclidean'."
        )
