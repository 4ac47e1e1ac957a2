"""Arrays on the device that NumPy's own functions work on.

EM and its M-steps are written in NumPy.  NumPy hands its operators and functions over to whoever implements its
protocols (NEP 13 and 18), so the same lines run on tensors: means and sums of very many clusters stay where the
points are, and only single numbers, and places that are few, come to the host.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ..spans import Letter, as_tensors
from .downloads import to_host
from .functions import FUNCTIONS, UFUNCS
from .streams import current_stream

_KINDS = {np.dtype(np.float32): torch.float32, np.dtype(np.float64): torch.float64, np.dtype(bool): torch.bool}


class DeviceArray(np.lib.mixins.NDArrayOperatorsMixin):
    """A tensor behind NumPy's interface, as much of it as EM asks for.

    What is not offered raises a TypeError; nothing is brought to the host by the way.  `np.asarray` makes a copy
    on the host.

    Parameters
    ----------
    tensor : torch.Tensor
    """

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    @property
    def shape(self) -> tuple[int, ...]:
        """As of an array."""
        return tuple(self.tensor.shape)

    def __len__(self) -> int:
        """Length of the first dimension."""
        return len(self.tensor)

    def __getitem__(self, key: Any) -> DeviceArray:
        return DeviceArray(self.tensor[self._key(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        self.tensor[self._key(key)] = self._operand(value)

    def __bool__(self) -> bool:
        return bool(self.tensor)

    def __float__(self) -> float:
        return float(self.tensor)

    def __int__(self) -> int:
        return int(self.tensor)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """A copy on the host."""
        if copy is False:
            raise ValueError("An array on the device cannot be seen from the host without a copy.")
        return np.asarray(to_host(self.tensor).numpy(), dtype=dtype)

    def on_its_way(self) -> Callable[[], np.ndarray]:
        """What waits for a copy that is brought to the host."""
        told = Told(self.tensor)
        return lambda: told.array().copy()  # not in memory of the driver's

    def astype(self, dtype: Any) -> DeviceArray:
        """A copy of another type."""
        return DeviceArray(self.tensor.to(_KINDS[np.dtype(dtype)], copy=True))

    def copy(self) -> DeviceArray:
        """One that can be changed."""
        return DeviceArray(self.tensor.clone())

    def sum(self, axis: int | None = None, keepdims: bool = False) -> DeviceArray:
        """As of an array."""
        return DeviceArray(self.tensor.sum() if axis is None else self.tensor.sum(axis, keepdim=keepdims))

    def mean(self, axis: int) -> DeviceArray:
        """Likewise."""
        return DeviceArray(self.tensor.mean(axis))

    def min(self) -> DeviceArray:
        """Likewise."""
        return DeviceArray(self.tensor.min())

    def all(self, axis: int | None = None) -> DeviceArray:
        """Likewise."""
        return DeviceArray(self.tensor.all() if axis is None else self.tensor.all(axis))

    def any(self) -> DeviceArray:
        """Likewise."""
        return DeviceArray(self.tensor.any())

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """An operator or elementwise function of NumPy."""
        function = UFUNCS.get(ufunc)
        target = kwargs.pop("out", (None,))[0]
        if function is None or method != "__call__" or kwargs:
            return NotImplemented
        result = function(*(self._operand(value) for value in inputs))
        if target is None:
            return DeviceArray(result)
        if not isinstance(target, DeviceArray):
            return NotImplemented
        target.tensor.copy_(result)
        return target

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """One of NumPy's other functions."""
        twin: Callable[..., Any] | None = FUNCTIONS.get(function)
        if twin is None:
            return NotImplemented
        result = twin(*(self._operand(value) for value in args), **kwargs)
        return DeviceArray(result) if isinstance(result, torch.Tensor) else result

    def _operand(self, value: Any) -> Any:
        if isinstance(value, DeviceArray):
            return as_tensors(value.tensor)
        if isinstance(value, np.ndarray):
            return torch.from_numpy(value).to(self.tensor.device)
        return value

    def _key(self, key: Any) -> Any:
        return tuple(self._operand(part) for part in key) if isinstance(key, tuple) else self._operand(key)


class Rounded(DeviceArray):
    """Means in float64 that were found in float32, and are there as such too.

    Parameters
    ----------
    used : (C, D) float32 tensor, rows as of `tiling.aligned`

    Attributes
    ----------
    used : likewise, or None once somebody has taken it over
    """

    def __init__(self, used: torch.Tensor) -> None:
        self.used: torch.Tensor | None = used
        self._found = used
        self._wide: torch.Tensor | None = None

    @property
    def tensor(self) -> torch.Tensor:
        """The means in float64, made when they are first asked for."""
        if self._wide is None:
            self._wide = self._found.double()
        return self._wide

    @property
    def shape(self) -> tuple[int, ...]:
        """As of an array."""
        return tuple(self._found.shape)

    def __len__(self) -> int:
        """Length of the first dimension."""
        return int(self._found.shape[0])

    def are_in(self, wide: torch.Tensor) -> None:
        """They are there in float64, (C, D), and what they were found in may be changed from now on."""
        self._wide = wide


class Told:
    """Numbers that are on their way to the host, while the device goes on with what it is told next.

    Parameters
    ----------
    numbers : (n,) tensor
        A `Letter` is there already, once it is written.
    stream : torch.cuda.Stream, optional
        The current one, if it is known.
    before : Told, optional
        As many numbers that nobody looks at any more: what they came by is used again.
    """

    def __init__(self, numbers: Any, stream: torch.cuda.Stream | None = None, before: Told | None = None) -> None:
        device = numbers.teller if type(numbers) is Letter else numbers.device
        if type(numbers) is Letter:
            self._numbers = numbers
        elif before is None:
            self._numbers = numbers.to("cpu", non_blocking=True, copy=True)
        else:
            self._numbers = before._numbers.copy_(numbers, non_blocking=True)
        self._arrived: Any = None
        if device.type == "cuda":
            self._arrived = torch.cuda.Event() if before is None else before._arrived
        if self._arrived is not None:
            self._arrived.record(stream or current_stream(device))

    def array(self) -> np.ndarray:
        """The numbers; the host waits for them."""
        if self._arrived is not None:
            self._arrived.synchronize()
        numbers: np.ndarray = self._numbers.array if type(self._numbers) is Letter else self._numbers.numpy()
        return numbers

    def tolist(self) -> list[float]:
        """Likewise."""
        numbers: list[float] = self.array().tolist()
        return numbers

    def __float__(self) -> float:
        """The first of them, likewise."""
        return self.tolist()[0]


class ToldSum(Told):
    """Numbers of which the host wants to know the sum."""

    def __float__(self) -> float:
        """All of them added up; the host waits for them."""
        return math.fsum(self.tolist())


def on_host(array: Any) -> np.ndarray:
    """A `DeviceArray` or an array as an array."""
    return np.asarray(array)


def on_its_way(array: Any) -> Callable[[], np.ndarray]:
    """What waits for a `DeviceArray` that is brought to the host, or gives an array as it is."""
    return array.on_its_way() if isinstance(array, DeviceArray) else lambda: array


def as_tensor(array: Any, device: torch.device) -> torch.Tensor:
    """A `DeviceArray` or an array as a tensor on the device."""
    return array.tensor if isinstance(array, DeviceArray) else torch.from_numpy(np.asarray(array)).to(device)
