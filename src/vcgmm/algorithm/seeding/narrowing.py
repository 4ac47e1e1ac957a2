"""Winners of which only the first two matter, pushed together in their own memory: the rest is room for others."""

from __future__ import annotations

import numpy as np

#: Rows that are moved at once.
AT_ONCE = 1 << 14


def narrow(winners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first two winners of every point, and the memory that is free as long as nobody needs the others.

    Parameters
    ----------
    winners : (N', C') int32, C-ordered
        In a mess until `widen` is called.

    Returns
    -------
    pairs : (N', 2) int32, or (N', 1) where there is but one
    room : (n,) int32
    """
    n, width = len(winners), min(2, winners.shape[1])
    flat = winners.reshape(-1)
    for low in range(0, n, AT_ONCE):  # what is written to has been read, since rows only become shorter
        high = min(low + AT_ONCE, n)
        flat[width * low : width * high] = winners[low:high, :width].ravel()
    return flat[: width * n].reshape(n, width), flat[width * n :]


def widen(pairs: np.ndarray, winners: np.ndarray) -> None:
    """Undo `narrow`: all winners but the first are unknown (-1) then."""
    for high in range(len(pairs), 0, -AT_ONCE):  # from the end, for the same reason
        low = max(high - AT_ONCE, 0)
        labels = pairs[low:high, 0].copy()
        winners[low:high, 1:] = -1
        winners[low:high, 0] = labels


def taken_from(room: np.ndarray, n: int, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Arrays (n,) of a float type and of int32, in a room where that is large enough, or else of their own."""
    size = n * dtype.itemsize // room.itemsize
    if len(room) < size + n:
        return np.empty(n, dtype), np.empty(n, np.int32)
    return room[:size].view(dtype), room[size : size + n]
