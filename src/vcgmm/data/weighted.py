"""Rows with weights from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from .source import READ_VALUES, Fill, Source


class WeightedSource(Source):
    """The rows of one source with the only column of another as their weights.

    Parameters
    ----------
    rows, weights : Source
    """

    weighted = True

    def __init__(self, rows: Source, weights: Source) -> None:
        if weights.n_features != 1:
            raise ValueError(
                f"{weights.name} has {weights.n_features} columns, but weights are one number per row: choose one."
            )
        super().__init__(rows.name, None, rows.n_features, rows.dtype, rows.columns)
        self._rows = rows
        self._weights = weights

    def _count(self) -> int:
        if self._rows.n_samples != self._weights.n_samples:
            raise ValueError(
                f"{self._weights.name} holds {self._weights.n_samples:,} weights, but {self.name} has "
                f"{self._rows.n_samples:,} rows: give one weight per row."
            )
        return self._rows.n_samples

    @contextmanager
    def cursor(self) -> Iterator[Fill]:
        """Begin a pass over all rows."""
        with self._rows.cursor() as fill_rows, self._weights.cursor() as fill_weights:

            def fill(rows: np.ndarray, weights: np.ndarray | None) -> int:
                n = fill_rows(rows, None)
                if weights is not None:
                    column = np.empty((n, 1), self._weights.dtype)
                    fill_weights(column, None)
                    weights[:n] = column[:, 0]
                return n

            yield fill

    def take(self, indices: np.ndarray) -> np.ndarray:
        """Rows with these indices."""
        return self._rows.take(indices)

    def weight_blocks(self) -> Iterator[np.ndarray]:
        """The weights alone."""
        for block in self._weights.blocks(READ_VALUES):
            yield block[:, 0].astype(np.float64)

    def locate(self, row: int) -> str:
        """A row in words."""
        return self._rows.locate(row)
