"""Arrays on the device that NumPy's own functions work on.

EM and its M-steps are written in NumPy.  NumPy hands its operators and functions over to whoever implements its
protocols (NEP 13 and 18), so the same lines run on tensors: means and sums of very many clusters stay where the
points are, and only single numbers, and places that are few, come to the host.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ..algorithm.mstep import weighted_products
from .functions import FUNCTIONS, UFUNCS
from .functions import weighted_products as products_on_device

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
        return np.asarray(self.tensor.cpu().numpy(), dtype=dtype)

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
            return value.tensor
        if isinstance(value, np.ndarray):
            return torch.from_numpy(value).to(self.tensor.device)
        return value

    def _key(self, key: Any) -> Any:
        return tuple(self._operand(part) for part in key) if isinstance(key, tuple) else self._operand(key)


class Masses(DeviceArray):
    """Those of an E-step, which has told the host what it will ask about them; they must not be changed.

    Parameters
    ----------
    tensor : (C,) float64 tensor
    n_nonzero : int
        How many are not 0.
    ways : pair of (C, D) float64 tensors, optional
        The ways to the weighted means before and now, …
    products : pair of float, optional
        … and their `weighted_products`.
    """

    def __init__(
        self,
        tensor: torch.Tensor,
        n_nonzero: int,
        ways: tuple[torch.Tensor, torch.Tensor] | None = None,
        products: tuple[float, float] | None = None,
    ) -> None:
        super().__init__(tensor)
        self.n_nonzero = n_nonzero
        self.ways = ways
        self.products = products

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """One of NumPy's functions."""
        if function is np.count_nonzero:
            return self.n_nonzero
        return super().__array_function__(function, types, args, kwargs)


class Means(DeviceArray):
    """Means from which ways lead to others: where those are computed is put off until they are asked for."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """An operator or elementwise function of NumPy."""
        if ufunc is np.add and inputs[0] is self and isinstance(inputs[1], DeviceArray) and not kwargs:
            return Moved(self, inputs[1])
        return super().__array_ufunc__(ufunc, method, *inputs, **kwargs)


class Moved(DeviceArray):
    """Means at the end of a way; less those where it began they are the way again, to the last bit.

    Parameters
    ----------
    start : Means
    way : DeviceArray
    """

    def __init__(self, start: Means, way: DeviceArray) -> None:
        self._came: tuple[Means, DeviceArray] | None = (start, way)
        self._tensor: torch.Tensor | None = None

    @property
    def tensor(self) -> torch.Tensor:
        """The means; once they are known, how they came about is forgotten."""
        if self._came is not None:
            start, way = self._came
            self._tensor, self._came = start.tensor + way.tensor, None
        found: Any = self._tensor
        return found

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """An operator or elementwise function of NumPy."""
        if ufunc is np.subtract and inputs[0] is self and self._came is not None and not kwargs:
            start, way = self._came
            if inputs[1] is start:
                return way
        return super().__array_ufunc__(ufunc, method, *inputs, **kwargs)


class Told:
    """Numbers that are on their way to the host, while the device goes on with what it is told next.

    Parameters
    ----------
    numbers : (n,) tensor
    """

    def __init__(self, numbers: torch.Tensor) -> None:
        self._numbers = numbers.to("cpu", non_blocking=True)
        self._arrived = torch.cuda.Event() if numbers.is_cuda else None
        if self._arrived is not None:
            self._arrived.record()

    def tolist(self) -> list[float]:
        """The numbers; the host waits for them."""
        if self._arrived is not None:
            self._arrived.synchronize()
        numbers: list[float] = self._numbers.tolist()
        return numbers


@weighted_products.register
def _(masses: DeviceArray, left: DeviceArray, right: DeviceArray) -> tuple[float, float]:
    if isinstance(masses, Masses) and masses.ways is not None and masses.products is not None:
        before, now = masses.ways
        if left.tensor is before and right.tensor is now:
            return masses.products
    square, cross = products_on_device(masses.tensor, left.tensor.contiguous(), right.tensor.contiguous()).tolist()
    return square, cross


def on_host(array: Any) -> np.ndarray:
    """A `DeviceArray` or an array as an array."""
    return np.asarray(array)


def as_tensor(array: Any, device: torch.device) -> torch.Tensor:
    """A `DeviceArray` or an array as a tensor on the device."""
    return array.tensor if isinstance(array, DeviceArray) else torch.from_numpy(np.asarray(array)).to(device)
