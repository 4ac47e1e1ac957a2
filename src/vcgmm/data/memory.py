"""Rows that are in memory already, as a source."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from .source import AddressedSource


class MemorySource(AddressedSource):
    """An array.

    Parameters
    ----------
    array : (N, D) array
    name : str
    """

    def __init__(self, array: np.ndarray, name: str) -> None:
        super().__init__(name, len(array), array.shape[1], array.dtype)
        self._array = array

    @contextmanager
    def opened(self) -> Iterator[Callable[[int, np.ndarray], None]]:
        """A function read(first, out)."""

        def read(first: int, out: np.ndarray) -> None:
            out[:] = self._array[first : first + len(out)]

        yield read
