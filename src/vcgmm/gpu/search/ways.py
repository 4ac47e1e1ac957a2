"""What an E-step on the device tells of means, and of the ways to better ones, without computing it twice.

EM asks for the weighted means, for the ways to them, for multiples of the ways, and for products of ways.  Each of
these objects knows how it came about, so that sums and differences that undo one another cost nothing, and what is
left is computed by one kernel.  What is asked first makes no difference to what any of them is, to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ...algorithm.mstep import Statistics, as_used, weighted_products
from ..device.arrays import DeviceArray
from ..device.functions import weighted_products as products_on_device
from .homecoming import Coming, Homecoming


class Way(DeviceArray):
    """Ways (C, D) float64 to the weighted means; a multiple of them waits for what it is added to.

    Parameters
    ----------
    tensor : (C, D) float64 tensor
    home : Homecoming, optional
        The weighted means, where they are on their way to the host.
    """

    def __init__(self, tensor: torch.Tensor, home: Homecoming | None = None) -> None:
        super().__init__(tensor)
        self.home = home

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """An operator or elementwise function of NumPy."""
        if ufunc is np.multiply and isinstance(inputs[0], float) and not kwargs:
            return Multiple(self, inputs[0])
        return super().__array_ufunc__(ufunc, method, *inputs, **kwargs)


class _Lazy(DeviceArray):
    """An array that follows from a way, computed when it is first asked for.

    Parameters
    ----------
    way : Way
    factor : float
    """

    def __init__(self, way: Way, factor: float) -> None:
        self.way = way
        self.factor = factor
        self._tensor: torch.Tensor | None = None

    @property
    def tensor(self) -> torch.Tensor:
        """The array."""
        if self._tensor is None:
            self._tensor = self._compute()
        return self._tensor

    @property
    def shape(self) -> tuple[int, ...]:
        """As of an array; known before it is computed."""
        return self.way.shape

    def _compute(self) -> torch.Tensor:
        raise NotImplementedError


class Multiple(_Lazy):
    """Some times a way."""

    def _compute(self) -> torch.Tensor:
        return self.factor * self.way.tensor


class Means(DeviceArray):
    """Means (C, D) float64 that ways lead from."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """An operator or elementwise function of NumPy."""
        if ufunc is np.add and inputs[0] is self and not kwargs:
            if isinstance(inputs[1], Way):
                return Moved(self, inputs[1], 1.0)
            if isinstance(inputs[1], Multiple):
                return Moved(self, inputs[1].way, inputs[1].factor)
        return super().__array_ufunc__(ufunc, method, *inputs, **kwargs)


class Moved(_Lazy):
    """Means so far along a way; less those where it began they are that way again, to the last bit.

    Parameters
    ----------
    start : Means
    way : Way
    factor : float
    """

    def __init__(self, start: Means, way: Way, factor: float) -> None:
        super().__init__(way, factor)
        self.start = start

    @property
    def _home(self) -> Homecoming | None:
        return self.way.home if self.factor == 1.0 else None

    def _compute(self) -> torch.Tensor:
        if self._home is not None:
            return self._home.local
        return torch.add(self.start.tensor, self.way.tensor, alpha=self.factor)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """An operator or elementwise function of NumPy."""
        home = self._home
        if home is not None and ufunc is np.true_divide and inputs[0] is self and inputs[1] == home.scale:
            return Coming(home)
        if ufunc is np.subtract and inputs[0] is self and inputs[1] is self.start and not kwargs:
            return self.way if self.factor == 1.0 else Multiple(self.way, self.factor)
        return super().__array_ufunc__(ufunc, method, *inputs, **kwargs)


class Masses(DeviceArray):
    """Those of an E-step, which has told the host some things about them already; they must not be changed.

    Parameters
    ----------
    tensor : (C,) float64 tensor
    n_nonzero : int
        How many are not 0.
    ways : pair of (C, D) float64 tensors, optional
        Ways before and now, …
    products : pair of float, optional
        … and their `weighted_products`; those of any others are computed when they are asked for.
    home : Homecoming, optional
        What brings them to the host.
    """

    def __init__(
        self,
        tensor: torch.Tensor,
        n_nonzero: int,
        ways: tuple[torch.Tensor, torch.Tensor] | None = None,
        products: tuple[float, float] | None = None,
        home: Homecoming | None = None,
    ) -> None:
        super().__init__(tensor)
        self.n_nonzero = n_nonzero
        self.ways = ways
        self.products = products
        self.home = home

    def on_its_way(self) -> Callable[[], np.ndarray]:
        """What waits for a copy that is brought to the host."""
        return super().on_its_way() if self.home is None else self.home.masses

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """One of NumPy's functions."""
        if function is np.count_nonzero:
            return self.n_nonzero
        return super().__array_function__(function, types, args, kwargs)


@as_used.register
def _(means: DeviceArray, statistics: Statistics) -> DeviceArray:  # noqa: ARG001 (rounded when they are asked for)
    return means


@weighted_products.register
def _(masses: DeviceArray, left: DeviceArray, right: DeviceArray) -> tuple[float, float]:
    if isinstance(masses, Masses) and masses.ways is not None and masses.products is not None:
        before, now = masses.ways
        if left.tensor is before and right.tensor is now:
            return masses.products
    square, cross = products_on_device(masses.tensor, left.tensor.contiguous(), right.tensor.contiguous()).tolist()
    return square, cross
