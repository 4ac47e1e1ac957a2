"""Memory on the device that is known by where it begins.

Kernels want no more than that.  To ask torch for a tensor takes the host as long as to launch a kernel, and so does a
look at a part of one; numbers that say where it begins, and of what shape it is, take a tenth.  So a fit to few points
takes its memory in large pieces and cuts them up by itself, and a tensor is made only where torch is to compute
something.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import torch

#: Most points of a fit that takes its memory so.
FEW = 1 << 20

#: Bytes that are asked for at a time, and a share of them from which on memory is asked for alone.  Triton's
#: interpreter copies all that an argument is a part of: there they are few.
CHUNK, INTERPRETED, LARGE = 1 << 26, 1 << 14, 1 / 4

#: Bytes of the host's memory for what it is told.
MAIL = 1 << 17

_ON_HOST: dict[torch.dtype, Any] = {torch.float64: np.float64, torch.int64: np.int64, torch.int32: np.int32}

#: Everything begins at multiples of so many bytes, as with torch.
ALIGNED = 512


class Span:
    """A tensor that torch knows nothing of, as much of its interface as is asked for; its rows have no gaps inside.

    Whatever is not offered here is asked of a tensor in the same place, and so does every function of torch.

    Parameters
    ----------
    place : int
        Where it begins.
    dtype : torch.dtype
    shape : tuple of int
    pitch : int
        Values from one entry of the first dimension to the next.
    base : tensor without gaps
        Whose memory it is.
    """

    __slots__ = ("_base", "dtype", "pitch", "place", "shape", "tensor")

    #: What torch computes with, made when it is first asked for.
    tensor: torch.Tensor

    def __init__(
        self, place: int, dtype: torch.dtype, shape: tuple[int, ...], pitch: int, base: torch.Tensor
    ) -> None:
        self.place = place
        self.dtype = dtype
        self.shape = shape
        self.pitch = pitch
        self._base = base

    @classmethod
    def over(cls, tensor: torch.Tensor) -> Span:
        """That of a tensor without gaps."""
        shape = tuple(tensor.shape)
        return cls(tensor.data_ptr(), tensor.dtype, shape, math.prod(shape[1:]), tensor)

    def _make_tensor(self) -> torch.Tensor:
        shape, first = self.shape, self.place - self._base.data_ptr()
        strides = (self.pitch, *(math.prod(shape[i + 1 :]) for i in range(1, len(shape))))
        n_values = (shape[0] - 1) * self.pitch + math.prod(shape[1:]) if shape[0] else 0
        every = self._base.view(-1).view(torch.uint8)
        return every[first : first + n_values * self.dtype.itemsize].view(self.dtype).as_strided(shape, strides)

    @property
    def device(self) -> torch.device:
        """As of a tensor."""
        return self._base.device

    def data_ptr(self) -> int:
        """As of a tensor."""
        return self.place

    def get_device(self) -> int:
        """As of a tensor."""
        return self._base.get_device()

    def stride(self, dimension: int) -> int:
        """As of a tensor."""
        return self.pitch if dimension == 0 else math.prod(self.shape[dimension + 1 :])

    def numel(self) -> int:
        """As of a tensor."""
        return math.prod(self.shape)

    def contiguous(self) -> Span | torch.Tensor:
        """As of a tensor."""
        return self if self.pitch == math.prod(self.shape[1:]) else self.tensor.contiguous()

    def view(self, *kind: Any) -> Any:
        """As of a tensor; in one dimension, or there of another type, at no cost."""
        (how,) = kind if len(kind) == 1 else (kind,)
        if how == -1 and self.pitch == math.prod(self.shape[1:]):
            return Span(self.place, self.dtype, (math.prod(self.shape),), 1, self._base)
        if isinstance(how, torch.dtype) and len(self.shape) == self.pitch == 1:
            n_values = self.shape[0] * self.dtype.itemsize // how.itemsize
            return Span(self.place, how, (n_values,), 1, self._base)
        return self.tensor.view(how)

    def __len__(self) -> int:
        """Length of the first dimension."""
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(self.shape[0]))

    def __getitem__(self, key: Any) -> Any:
        """As of a tensor; an entry, some in a row, and the same of rows, at no cost."""
        shape, pitch, size = self.shape, self.pitch, self.dtype.itemsize
        if type(key) is slice and key.step is None:
            first, last, _ = key.indices(shape[0])
            here = self.place + first * pitch * size
            return Span(here, self.dtype, (max(0, last - first), *shape[1:]), pitch, self._base)
        if type(key) is int and len(shape) > 1:
            key = key + shape[0] if key < 0 else key
            return Span(
                self.place + key * pitch * size, self.dtype, shape[1:], math.prod(shape[2:]), self._base
            )
        if type(key) is tuple and len(key) == 2 and len(shape) == 2 and key[0] == slice(None):
            column = key[1]
            if type(column) is int and column >= 0:
                return Span(self.place + column * size, self.dtype, shape[:1], pitch, self._base)
            if type(column) is slice and column.start is None and column.step is None:
                width = column.indices(shape[1])[1]
                return Span(self.place, self.dtype, (shape[0], width), pitch, self._base)
        return self.tensor[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.tensor[key] = value

    def __getattr__(self, name: str) -> Any:
        """All else that a tensor has."""
        if name == "tensor":
            self.tensor = self._make_tensor()
            return self.tensor
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.tensor, name)

    @classmethod
    def __torch_function__(
        cls, function: Callable[..., Any], _types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """What a function of torch gives for tensors in the same places."""
        found = {name: as_tensors(value) for name, value in (kwargs or {}).items()}
        return function(*as_tensors(args), **found)

    __hash__ = object.__hash__


def _by_tensor(name: str) -> Callable[..., Any]:
    """An operator, as tensors have it."""
    return lambda span, *others: getattr(span.tensor, name)(*map(as_tensors, others))


for _name in (
    "eq ne lt le gt ge add radd sub rsub mul rmul truediv rtruediv floordiv mod pow rpow matmul and or xor invert "
    "neg bool float int"
).split():
    setattr(Span, f"__{_name}__", _by_tensor(f"__{_name}__"))


def as_tensors(value: Any) -> Any:
    """Spans as tensors, in lists and tuples too; all else as it is."""
    if isinstance(value, Span):
        return value.tensor
    return type(value)(map(as_tensors, value)) if type(value) in (list, tuple) else value


class Letter(Span):
    """Memory of the host that kernels write to: what they tell is there once they are done, without a copy.

    Attributes
    ----------
    array : array
        The same, as the host looks at it.
    teller : torch.device
        Whose kernels they are.
    """

    __slots__ = ("array", "teller")

    array: np.ndarray
    teller: torch.device


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
            self._written += n_bytes + -n_bytes % 64
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
        if here + n_bytes > self._last:
            if n_bytes >= LARGE * self._chunk:
                alone = torch.empty(n_bytes, dtype=torch.uint8, device=self._device)
                return Span(alone.data_ptr(), dtype, shape, inside, alone)
            self._base = torch.empty(self._chunk, dtype=torch.uint8, device=self._device)
            here = self._base.data_ptr()
            self._last = here + self._chunk
        self._next = here + n_bytes + -n_bytes % ALIGNED
        return Span(here, dtype, shape, inside, self._base)  # type: ignore[arg-type]


_arena: ContextVar[Arena | None] = ContextVar("arena", default=None)


@contextmanager
def in_arena(device: torch.device, n_points: int) -> Iterator[None]:
    """Within it memory for kernels on this device comes from an arena, where a fit is to so few points."""
    if n_points > FEW:  # what is kept longer than needed may be large, and the host is not in the way
        yield
        return
    arena = Arena(device)
    token = _arena.set(arena)
    try:
        yield
    except BaseException:
        if device.type == "cuda":  # letters may still be written, and their memory would be that of others
            torch.cuda.synchronize(device)
        raise
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
