"""Some rows, from which it is told in which directions all of them vary."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from ...parallel import Workers

#: Rows of the sample that a thread multiplies at once.
ROWS_AT_ONCE = 512

#: A share of all squares that rounding may leave.
ROUNDING = 1e-6


class Sample(Protocol):
    """Some rows R (n, D) about their mean, each times the root of its weight, wherever they are."""

    def __len__(self) -> int:
        """How many there are."""
        ...

    @property
    def total(self) -> float:
        """Sum of all squares."""
        ...

    def sums(self, signs: np.ndarray, n_sums: int) -> np.ndarray:
        """Every `n_sums`-th row with its sign (n,), added up from each of the first ones on; (n_sums, D)."""
        ...

    def scatter_times(self, matrix: np.ndarray) -> np.ndarray:
        """R^T R M of a matrix M (D, d); (D, d)."""
        ...

    def scatter_within(self, basis: np.ndarray) -> np.ndarray:
        """(R B)^T R B of a basis B (D, d); (d, d)."""
        ...


class RowSample:
    """A sample in the host's memory.

    Parameters
    ----------
    rows : (n, D) float
        Written over.
    shares : (n,) float64
        Weights that add up to one.
    workers : Workers
    """

    def __init__(self, rows: np.ndarray, shares: np.ndarray, workers: Workers) -> None:
        self._rows, self._shares, self._workers = rows, shares, workers
        rows -= shares.astype(rows.dtype) @ rows
        if shares.min() < shares.max():
            rows *= np.sqrt(len(rows) * shares)[:, None].astype(rows.dtype)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._rows)

    @property
    def total(self) -> float:
        """Sum of all squares."""
        return float(np.vdot(self._rows, self._rows))

    def scatter(self) -> np.ndarray:
        """R^T R, (D, D)."""
        product: np.ndarray = self._rows.T @ self._rows
        return product

    def sums(self, signs: np.ndarray, n_sums: int) -> np.ndarray:
        """Every `n_sums`-th row with its sign (n,), added up from each of the first ones on; (n_sums, D)."""
        sums = np.zeros((n_sums, self._rows.shape[1]), self._rows.dtype)
        for first in range(0, len(self._rows), n_sums):
            some = self._rows[first : first + n_sums]
            sums[: len(some)] += signs[first : first + n_sums, None] * some
        return sums

    def scatter_times(self, matrix: np.ndarray) -> np.ndarray:
        """R^T R M of a matrix M (D, d); (D, d)."""

        def multiply(block: np.ndarray, out: np.ndarray) -> None:
            np.dot(block.T, block @ matrix, out)

        return self._over_blocks(matrix.shape, multiply)

    def scatter_within(self, basis: np.ndarray) -> np.ndarray:
        """(R B)^T R B of a basis B (D, d); (d, d)."""

        def square(block: np.ndarray, out: np.ndarray) -> None:
            projected = block @ basis
            np.dot(projected.T, projected, out)

        return self._over_blocks((basis.shape[1],) * 2, square)

    def tails_beyond(self, directions: np.ndarray) -> float:
        """Weighted mean of fourth powers over squared mean of squares of what directions (D, d) leave of the rows.

        Sums of both over the features are compared; 0 where nothing is left but rounding.
        """
        left = self._rows - (self._rows @ directions) @ directions.T
        squares = (left * left).astype(np.float64)  # times the weights that rows have
        if not squares.sum() > ROUNDING * self.total:
            return 0.0
        weights = np.maximum(len(left) * self._shares, np.finfo(np.float64).tiny)
        fourth = (squares * squares / weights[:, None]).mean(axis=0)
        return float(fourth.sum() / (squares.mean(axis=0) ** 2).sum())

    def _over_blocks(
        self, shape: tuple[int, ...], of_block: Callable[[np.ndarray, np.ndarray], None]
    ) -> np.ndarray:
        """Sum of a product over blocks of rows, which do not depend on the number of threads."""
        parts = np.empty((-(-len(self._rows) // ROWS_AT_ONCE), *shape), self._rows.dtype)

        def work(_thread: int, first: int, last: int) -> None:
            for i in range(first, last):
                of_block(self._rows[i * ROWS_AT_ONCE : (i + 1) * ROWS_AT_ONCE], parts[i])

        self._workers.run(work, len(parts))
        total: np.ndarray = parts.sum(axis=0)
        return total
