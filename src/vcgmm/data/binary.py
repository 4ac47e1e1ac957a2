"""Arrays as bytes."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np


def raw_bytes(array: np.ndarray) -> memoryview:
    """The memory of a contiguous array, of any dtype."""
    return array.reshape(-1).view(np.uint8).data


def read_into(file: Any, out: np.ndarray) -> bool:
    """Fill a contiguous array from a binary file; False where it ends before the array is full."""
    room = raw_bytes(out)
    while len(room):
        n = file.readinto(room)
        if not n:
            return False
        room = room[n:]
    return True


def checksum(array: np.ndarray, before: int) -> int:
    """Checksum of all arrays of a sequence, from that of those before and the next: as if they were one."""
    return zlib.crc32(raw_bytes(np.ascontiguousarray(array)), before)
