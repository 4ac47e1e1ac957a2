"""What a source of rows is: how many, how wide, blocks in order, rows by index.

Two kinds differ in how they are read.  `AddressedSource` can begin anywhere (records of fixed length in a file);
`SequentialSource` gives blocks of whatever length suits it, from the first to the last.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from typing import Any, Protocol

import numpy as np

#: Values that a block of `Source.blocks`, or one read of a table, holds about.
READ_VALUES = 1 << 20


#: A block (n, D) with its weights (n,), or None where it has none.
Piece = tuple[np.ndarray, np.ndarray | None]


class Fill(Protocol):
    """Reads on: the next rows of a pass into an array, as many as it has room for or as are left."""

    def __call__(self, rows: np.ndarray, weights: np.ndarray | None) -> int:
        """Rows (n, D) of the source's dtype, their weights (n,) float64; the number of rows read."""


class Source(ABC):
    """Rows that are read when they are needed.

    `fit`, `predict`, `score` and all functions that take an array take a source; `numpy.asarray` reads it whole.

    Parameters
    ----------
    name : str
        What error messages call it: mostly the file.
    n_samples : int or None
        None: not known before they have been counted.
    n_features : int
    dtype : dtype
    columns : sequence of str, optional
        Names of the features.

    Attributes
    ----------
    weighted : bool
        The rows come with weights.
    """

    ndim = 2
    weighted = False

    def __init__(
        self,
        name: str,
        n_samples: int | None,
        n_features: int,
        dtype: np.dtype[Any],
        columns: tuple[str, ...] | None = None,
    ) -> None:
        if n_features == 0:
            raise ValueError(f"{name} has rows of no features: give at least one column.")
        if dtype.kind not in "fiub":
            raise ValueError(f"{name} holds {dtype}, but real numbers are needed. Convert it to floats first.")
        self.name = name
        self.n_features = n_features
        self.dtype = dtype
        self.columns = columns
        self._n_samples = n_samples

    @property
    def n_samples(self) -> int:
        """How many rows there are; counted in a pass of their own where nobody says so."""
        if self._n_samples is None:
            self._n_samples = self._count()
        return self._n_samples

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        return self.n_samples, self.n_features

    def __len__(self) -> int:
        """How many rows there are."""
        return self.n_samples

    def __repr__(self) -> str:
        n = "an unknown number of" if self._n_samples is None else f"{self._n_samples:,}"
        return f"<{type(self).__name__} {self.name}: {n} rows of {self.n_features:,} features, {self.dtype}>"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """All rows in memory."""
        out = np.empty(self.shape, self.dtype)
        with self.cursor() as fill:
            n = fill(out, None)
            over = fill(np.empty((1, self.n_features), self.dtype), None)
        self.check_count(n + over)
        return out if dtype is None else out.astype(dtype, copy=False)

    @abstractmethod
    def cursor(self) -> AbstractContextManager[Fill]:
        """Begin a pass over all rows."""

    @abstractmethod
    def take(self, indices: np.ndarray) -> np.ndarray:
        """Rows with these indices (n,), in any order, in the source's dtype."""

    def blocks(self, n_rows: int | None = None) -> Iterator[np.ndarray]:
        """All rows in order, (n_rows, D) at a time; the last block may be shorter."""
        n_rows = n_rows or max(1, READ_VALUES // self.n_features)
        with self.cursor() as fill:
            while True:
                block = np.empty((n_rows, self.n_features), self.dtype)
                n = fill(block, None)
                if n:
                    yield block[:n]
                if n < n_rows:
                    return

    def weight_blocks(self) -> Iterator[np.ndarray]:
        """The weights of all rows in order, some (n,) float64 at a time, where the rows have weights."""
        n_rows = max(1, READ_VALUES // self.n_features)
        block = np.empty((n_rows, self.n_features), self.dtype)
        with self.cursor() as fill:
            while True:
                weights = np.empty(n_rows)
                n = fill(block, weights)
                if n:
                    yield weights[:n]
                if n < n_rows:
                    return

    def locate(self, row: int) -> str:
        """A row in words: which file, which row of it."""
        return f"row {row}"

    def check_count(self, n: int) -> None:
        """Refuse another number of rows than there were before."""
        if n != self.n_samples:
            raise ValueError(
                f"{self.name} gave {n:,} rows or more, but {self.n_samples:,} before: it has changed. Leave it "
                f"alone while it is read, and begin again."
            )

    def _count(self) -> int:
        return sum(map(len, self.blocks()))


class AddressedSource(Source):
    """A source that can be read from any row on."""

    @abstractmethod
    def opened(self) -> AbstractContextManager[Any]:
        """A function read(first, out) that fills `out` (n, D) with the rows from `first` on."""

    @contextmanager
    def cursor(self) -> Iterator[Fill]:
        """Begin a pass over all rows."""
        at = 0
        with self.opened() as read:

            def fill(rows: np.ndarray, weights: np.ndarray | None) -> int:  # noqa: ARG001 (no weights here)
                nonlocal at
                n = min(len(rows), self.n_samples - at)
                if n > 0:
                    read(at, rows[:n])
                    at += n
                return n

            yield fill

    def take(self, indices: np.ndarray) -> np.ndarray:
        """Rows with these indices: runs of neighbours are read at once."""
        out = np.empty((len(indices), self.n_features), self.dtype)
        order = np.argsort(indices, kind="stable")
        ordered = np.asarray(indices)[order]
        ends = np.flatnonzero(np.diff(ordered) != 1) + 1
        with self.opened() as read:
            for first, last in zip([0, *ends], [*ends, len(ordered)], strict=True):
                if last > first:
                    run = np.empty((last - first, self.n_features), self.dtype)
                    read(int(ordered[first]), run)
                    out[order[first:last]] = run
        return out


class SequentialSource(Source):
    """A source that gives blocks from the first row to the last."""

    @abstractmethod
    def pieces(self) -> Generator[Piece, None, None]:
        """Blocks (n, D) of any length, each with its weights (n,) or None."""

    @contextmanager
    def cursor(self) -> Iterator[Fill]:
        """Begin a pass over all rows."""
        with closing(self.pieces()) as pieces:
            yield _Reblocking(pieces)

    def take(self, indices: np.ndarray) -> np.ndarray:
        """Rows with these indices, picked up on a pass that ends with the last of them."""
        out = np.empty((len(indices), self.n_features), self.dtype)
        order = np.argsort(indices, kind="stable")
        ordered = np.asarray(indices)[order]
        first = done = 0
        with closing(self.pieces()) as pieces:
            for rows, _ in pieces:
                last = int(np.searchsorted(ordered, first + len(rows)))
                out[order[done:last]] = rows[ordered[done:last] - first]
                first, done = first + len(rows), last
                if done == len(ordered):
                    return out
        self.check_count(first)  # fewer rows than there were
        raise IndexError(f"{self.name} has {first:,} rows, but row {ordered[-1]} was asked for.")


class _Reblocking:
    """Blocks of one length from blocks of any length."""

    def __init__(self, pieces: Iterator[Piece]) -> None:
        self._pieces = pieces
        self._rows: np.ndarray | None = None
        self._weights: np.ndarray | None = None
        self._used = 0

    def __call__(self, rows: np.ndarray, weights: np.ndarray | None) -> int:
        n = 0
        while n < len(rows):
            if self._rows is None or self._used == len(self._rows):
                self._rows, self._weights = next(self._pieces, (None, None))
                self._used = 0
                if self._rows is None:
                    break
            step = min(len(rows) - n, len(self._rows) - self._used)
            taken = slice(self._used, self._used + step)
            rows[n : n + step] = self._rows[taken]
            if weights is not None and self._weights is not None:
                weights[n : n + step] = self._weights[taken]
            n, self._used = n + step, self._used + step
        return n
