"""Python objects that yield blocks of rows."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from typing import Any

import numpy as np

from .binary import checksum
from .source import Piece, SequentialSource


class ObjectSource(SequentialSource):
    """Blocks that an object yields, the same ones whenever it is asked.

    Parameters
    ----------
    blocks : iterable of blocks, or callable that returns one
        A block is an (n, D) array, or a pair of one and its (n,) weights.  It is gone through several times, so an
        iterator that can be used only once will not do.
    name : str, optional
    """

    def __init__(self, blocks: Iterable[Any] | Callable[[], Iterable[Any]], name: str | None = None) -> None:
        if isinstance(blocks, Iterator):
            raise TypeError(
                f"{type(blocks).__name__} can be gone through only once, and rows are read several times: give "
                f"the function that makes it, or a list."
            )
        self._make = blocks if callable(blocks) else blocks.__iter__
        name = name or getattr(blocks, "__name__", None) or f"a {type(blocks).__name__} of blocks"
        with closing(_as_generator(self._make())) as first:
            block = next(first, None)
        if block is None:
            raise ValueError(f"{name} yields no blocks: give at least one row.")
        rows, weights = _split(block, name, 0)
        super().__init__(name, None, rows.shape[1], rows.dtype)
        self.weighted = weights is not None
        self._checksum: int | None = None

    def pieces(self) -> Generator[Piece, None, None]:
        """Blocks as they come, compared with those of the first whole pass."""
        at = found = 0
        with closing(_as_generator(self._make())) as blocks:
            for block in blocks:
                rows, weights = _split(block, self.name, at)
                self._check(rows, weights, at)
                found = checksum(rows, found)
                yield rows, weights
                at += len(rows)
        if self._checksum is None:
            self._checksum = found
        elif found != self._checksum:
            raise ValueError(
                f"{self.name} yields other rows each time it is gone through: make it yield the same ones (give "
                f"random numbers a fixed seed), or write them to a file first."
            )

    def _check(self, rows: np.ndarray, weights: np.ndarray | None, at: int) -> None:
        if rows.shape[1] != self.n_features or rows.dtype != self.dtype:
            raise ValueError(
                f"{self.name} yields a block of {rows.shape[1]} features and type {rows.dtype} at row {at}, but "
                f"its first has {self.n_features} and {self.dtype}: all blocks must be alike."
            )
        if (weights is not None) != self.weighted or (weights is not None and weights.shape != (len(rows),)):
            raise ValueError(
                f"{self.name} yields a block at row {at} with {'no' if weights is None else len(weights)} weights "
                f"for {len(rows)} rows: give weights for all rows, or for none."
            )


def _as_generator(blocks: Iterable[Any]) -> Generator[Any, None, None]:
    """What can be closed, whatever the object's iterator is."""
    yield from blocks


def _split(block: Any, name: str, at: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Rows and weights of a block."""
    weights = None
    if isinstance(block, tuple) and len(block) == 2:
        block, weights = block[0], np.asarray(block[1], np.float64)
    rows = np.asarray(block)
    if rows.ndim != 2 or rows.dtype.kind not in "fiub":
        raise ValueError(
            f"{name} yields at row {at} an object of shape {rows.shape} and type {rows.dtype}: yield blocks of "
            f"rows, (n, D) arrays of real numbers, or pairs of them and their weights."
        )
    return rows, weights
