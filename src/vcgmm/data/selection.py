"""Rows of an array that are known by their indices and not copied."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Selection:
    """Some rows of an array in memory.

    Attributes
    ----------
    array : (N, D) array
    indices : (k,) int
    """

    array: np.ndarray
    indices: np.ndarray

    def __len__(self) -> int:
        """How many they are."""
        return len(self.indices)

    def __getitem__(self, places: slice) -> np.ndarray:
        """A copy of those at these places, in the array's own dtype."""
        return np.ascontiguousarray(self.array[self.indices[places]])
