"""Places of points among all, in no more memory than they need."""

from __future__ import annotations

from typing import Any

import numpy as np

#: Places that are widened or written at once.
AT_ONCE = 1 << 14


def place_type(n_points: int) -> np.dtype[Any]:
    """Type of places among so many points: the narrower one, so long as it will do."""
    return np.dtype(np.int32 if n_points < 1 << 31 else np.int64)


def narrowed(places: np.ndarray, n_points: int) -> np.ndarray:
    """Places (k,) int64 among so many points, of their type."""
    return places.astype(place_type(n_points), copy=False)


def in_order(values: np.ndarray, order: np.ndarray) -> np.ndarray:
    """values[order], some at a time: NumPy would widen a narrow order as a whole."""
    out = np.empty_like(values)
    for low in range(0, len(order), AT_ONCE):
        part = slice(low, low + AT_ONCE)
        out[part] = values[order[part]]
    return out


def look_up(values: np.ndarray, order: np.ndarray) -> None:
    """Write values[order] over the order (n,) int."""
    for low in range(0, len(order), AT_ONCE):
        part = slice(low, low + AT_ONCE)
        order[part] = values[order[part]]


def count_up(order: np.ndarray) -> None:
    """Write 0, 1, 2, … over an order (n,) int: the points have been put in it."""
    for low in range(0, len(order), AT_ONCE):
        order[low : low + AT_ONCE] = np.arange(low, min(low + AT_ONCE, len(order)))
