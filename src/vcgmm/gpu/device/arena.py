"""Memory of a fit to few points, taken in large pieces that the host cuts up by itself."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import torch

from ..spans import Letter, Span

#: Most points of a fit that takes its memory so.
FEW = 1 << 20

#: Bytes that are asked for at a time, and a share of them from which on memory is asked for alone.  Triton's
#: interpreter copies all that an argument is a part of: there they are few.
CHUNK, INTERPRETED, LARGE = 1 << 24, 1 << 14, 1 / 4

#: Bytes of the host's memory for what it is told.
MAIL = 1 << 17

#: Everything begins at multiples of so many bytes, as with torch; letters at those of a cache line.
ALIGNED, LINE = 512, 64

_ON_HOST: dict[torch.dtype, Any] = {torch.float64: np.float64, torch.int64: np.int64, torch.int32: np.int32}


class Arena:
    """Memory of a fit, cut from large pieces; a piece is free for others when nobody has a part of it.

    Parameters
    ----------
    device : torch.device
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._chunk = CHUNK if device.type == "cuda" else INTERPRETED
        self._base: torch.Tensor | None = None
        self._next = self._last = 0
        self._mail: tuple[torch.Tensor, int, np.ndarray] | None = None
        self._written = 0

    def letter(self, shape: tuple[int, ...], dtype: torch.dtype) -> Letter:
        """Memory of any contents, likewise, but of the host.

        Whoever asks for it waits for what is written there, or for something later, before the arena is gone.
        """
        inside = math.prod(shape[1:])
        n_bytes = shape[0] * inside * dtype.itemsize
        if n_bytes > LARGE * MAIL:
            mail, first = self._paper(n_bytes), 0
        else:
            if self._mail is None or self._written + n_bytes > MAIL:
                self._mail, self._written = self._paper(MAIL), 0
            mail, first = self._mail, self._written
            self._written += n_bytes + -n_bytes % LINE
        base, place, array = mail
        letter = Letter(place + first, dtype, shape, inside, base)
        letter.teller = self._device
        letter.array = array[first : first + n_bytes].view(_ON_HOST[dtype]).reshape(shape)
        return letter

    def _paper(self, n_bytes: int) -> tuple[torch.Tensor, int, np.ndarray]:
        """Memory of the host that the device can write to, where it begins, and as an array."""
        base = torch.empty(n_bytes, dtype=torch.uint8, pin_memory=self._device.type == "cuda")
        return base, base.data_ptr(), base.numpy()

    def empty(self, shape: tuple[int, ...], dtype: torch.dtype) -> Span:
        """Memory of any contents."""
        inside = 1 if len(shape) == 1 else shape[1] if len(shape) == 2 else math.prod(shape[1:])
        n_bytes = shape[0] * inside * dtype.itemsize
        here = self._next
        if self._base is None or here + n_bytes > self._last:
            if n_bytes >= LARGE * self._chunk:
                alone = torch.empty(n_bytes, dtype=torch.uint8, device=self._device)
                return Span(alone.data_ptr(), dtype, shape, inside, alone)
            self._base = torch.empty(self._chunk, dtype=torch.uint8, device=self._device)
            here = self._base.data_ptr()
            self._last = here + self._chunk
        self._next = here + n_bytes + -n_bytes % ALIGNED
        return Span(here, dtype, shape, inside, self._base)


_arena: ContextVar[Arena | None] = ContextVar("arena", default=None)


@contextmanager
def in_arena(device: torch.device, n_points: int) -> Iterator[None]:
    """Within it memory for kernels on this device comes from an arena, where a fit is to so few points."""
    if n_points > FEW:  # what is kept longer than needed may be large, and the host is not in the way
        yield
        return
    token = _arena.set(Arena(device))
    try:
        yield
    except BaseException:
        if device.type == "cuda":  # letters may still be written, and their memory would be that of others
            torch.cuda.synchronize(device)
        raise
    finally:
        _arena.reset(token)


@contextmanager
def out_of_arena() -> Iterator[None]:
    """Within it, all memory is torch's again: what is made there may be handed out."""
    token = _arena.set(None)
    try:
        yield
    finally:
        _arena.reset(token)


def empty(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Any:
    """Memory of any contents on a device, for kernels: a tensor, or a `Span` within `in_arena`."""
    arena = _arena.get()
    return torch.empty(shape, dtype=dtype, device=device) if arena is None else arena.empty(shape, dtype)


def letter(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Any:
    """Memory that kernels tell the host by: a `Letter` within `in_arena`, else a tensor that is to be copied."""
    arena = _arena.get()
    return torch.empty(shape, dtype=dtype, device=device) if arena is None else arena.letter(shape, dtype)
