"""Arrays on the device that NumPy's own functions work on.

EM and its M-step are written in NumPy.  NumPy hands its operators and functions over to whoever implements its
protocols (NEP 13 and 18), so the same lines run on tensors: means and sums of very many clusters stay where the
points are, and only single numbers come to the host.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

_UFUNCS: dict[Any, Callable[..., torch.Tensor]] = {
    np.add: torch.add,
    np.subtract: torch.subtract,
    np.multiply: torch.multiply,
    np.true_divide: torch.true_divide,
    np.greater: torch.gt,
    np.maximum: torch.maximum,
    np.absolute: torch.abs,
}

_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.where: torch.where,
    np.einsum: torch.einsum,
    np.dot: torch.dot,
    np.count_nonzero: torch.count_nonzero,
}


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
        return DeviceArray(self.tensor[key])

    def __float__(self) -> float:
        return float(self.tensor)

    def __int__(self) -> int:
        return int(self.tensor)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """A copy on the host."""
        if copy is False:
            raise ValueError("An array on the device cannot be seen from the host without a copy.")
        return np.asarray(self.tensor.cpu().numpy(), dtype=dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """An operator or elementwise function of NumPy."""
        function = _UFUNCS.get(ufunc)
        if function is None or method != "__call__" or kwargs:
            return NotImplemented
        operands = [self._operand(value) for value in inputs]
        tensors = [value for value in operands if isinstance(value, torch.Tensor)]
        if function is torch.maximum:  # takes no numbers
            operands = [torch.as_tensor(value).to(tensors[0]) for value in operands]
        return DeviceArray(function(*operands))

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """One of NumPy's other functions."""
        twin = _FUNCTIONS.get(function)
        if twin is None or kwargs:
            return NotImplemented
        return DeviceArray(twin(*(self._operand(value) for value in args)))

    def _operand(self, value: Any) -> Any:
        if isinstance(value, DeviceArray):
            return value.tensor
        if isinstance(value, np.ndarray):
            return torch.from_numpy(value).to(self.tensor.device)
        return value


def on_host(array: Any) -> np.ndarray:
    """A `DeviceArray` or an array as an array."""
    return np.asarray(array)
