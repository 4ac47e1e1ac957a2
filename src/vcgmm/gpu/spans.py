"""Tensors that torch knows nothing of: memory on the device that is known by where it begins.

Kernels want no more than that.  To ask torch for a tensor takes the host as long as to launch a kernel, and a look
at a part of one half as long; to write down where it begins, and of what shape it is, takes a tenth of that.  So a
tensor is made only where torch is to compute something.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

#: Operators that are left to tensors.
OPERATORS = (
    "eq", "ne", "lt", "le", "gt", "ge", "add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv",
    "floordiv", "mod", "pow", "rpow", "matmul", "and", "or", "xor", "invert", "neg", "bool", "float", "int",
)  # fmt: skip


class Span:
    """Memory with the interface of a tensor, as much of it as is asked for; its rows have no gaps inside.

    What is not offered here is asked of a tensor in the same place, and functions of torch are given that.

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
            if not -shape[0] <= key < shape[0]:
                raise IndexError(f"{key} is not among {shape[0]}")
            key = key + shape[0] if key < 0 else key
            return Span(self.place + key * pitch * size, self.dtype, shape[1:], math.prod(shape[2:]), self._base)
        if type(key) is tuple and len(key) == len(shape) == 2 and type(key[0]) is slice:
            rows, column = key
            if rows != slice(None):
                return self[rows][:, column]
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


for _name in OPERATORS:
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
