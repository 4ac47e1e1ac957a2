"""Tensors as rows: used where they lie."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from functools import cache
from typing import Any

import numpy as np
import torch

from ...data import ArrayRows, Part, Rows, UnitRows
from ...data.rows import PART_BLOCKS
from ...validation import TWO_DIMENSIONS
from ..device.downloads import to_host

#: Values that are widened at a time.
BLOCK_VALUES = 1 << 26

#: Types of tensors that NumPy has as well, and what stands for the others on the host.
_ON_HOST = {torch.bfloat16: torch.float32}


class TensorRows(Rows):
    """Rows of a tensor on any device.

    Parameters
    ----------
    tensor : (N, D) tensor of real numbers
    name : str

    Attributes
    ----------
    as_stored : bool
        Whether rows are what the tensor holds, and not made of it as they are read.
    """

    as_stored = True

    def __init__(self, tensor: torch.Tensor, name: str = "X") -> None:
        self.tensor = tensor
        super().__init__(int(tensor.shape[1]), _type_on_host(tensor.dtype), name)

    @property
    def n_samples(self) -> int:
        """How many rows there are."""
        return int(self.tensor.shape[0])

    def wide(self, part: slice) -> torch.Tensor:
        """Some rows in float64, on the device."""
        return self.tensor[part].double()

    def chosen(self, indices: torch.Tensor | None) -> torch.Tensor:
        """Rows with these indices (n,) int64, or all where they lie, on the device."""
        return self.tensor if indices is None else self.tensor[indices]

    def parts(self) -> Generator[Part, None, None]:
        """All rows, in order, copied to the host part by part."""
        step = PART_BLOCKS * self.rows_per_block
        for first in range(0, self.n_samples, step):
            yield Part(first, as_array(self.tensor[first : first + step]), None, self)

    def take(self, indices: np.ndarray) -> np.ndarray:
        """Rows with these indices, on the host."""
        return as_array(self.tensor[torch.from_numpy(indices).to(self.tensor.device)])

    def all(self) -> np.ndarray:
        """All rows, on the host."""
        return as_array(self.tensor)


class UnitTensorRows(TensorRows):
    """Rows of a tensor scaled to length 1 as they are read, on its device, for the cosine metric.

    Parameters
    ----------
    given : UnitRows
    tensor : (N, D) tensor
        Its rows.
    """

    as_stored = False

    def __init__(self, given: UnitRows, tensor: torch.Tensor) -> None:
        super().__init__(tensor, given.name)
        self._kind = torch.float64 if given.dtype == np.float64 else torch.float32
        self.dtype = given.dtype

    def wide(self, part: slice) -> torch.Tensor:
        """Some rows of length 1 in float64; a row of zeros, or one that is not finite, is refused by number."""
        rows = self.tensor[part].double()
        scaled = unit_rows(rows)
        bad = torch.nonzero(~torch.isfinite(scaled[:, 0])).view(-1)
        if len(bad):
            number = part.start + int(bad[0])
            if bool(self.tensor[number].any()):  # not finite
                Part(number, as_array(self.tensor[number : number + 1]), None, self).refuse_nonfinite(0, 1)
            raise ValueError(
                f"{self.name} has a row of zeros, {self.locate(number)}, which has no direction, and "
                f"metric='cosine' compares directions: remove such rows, or use metric='euclidean'."
            )
        return scaled

    def chosen(self, indices: torch.Tensor | None) -> torch.Tensor:
        """A scaled copy of rows with these indices, or of all."""
        given = self.tensor if indices is None else self.tensor[indices]
        with torch.inference_mode(False):  # they may be handed out, and differentiated
            out = torch.empty(given.shape, dtype=self._kind, device=given.device)
        for part in blocks_of(*given.shape):
            out[part] = unit_rows(given[part].double()).to(self._kind)
        return out

    def parts(self) -> Generator[Part, None, None]:
        """All rows, in order, copied to the host part by part."""
        step = PART_BLOCKS * self.rows_per_block
        for first in range(0, self.n_samples, step):
            scaled = self.wide(slice(first, min(first + step, self.n_samples)))
            yield Part(first, as_array(scaled.to(self._kind)), None, self)

    def take(self, indices: np.ndarray) -> np.ndarray:
        """Rows with these indices, on the host."""
        return as_array(self.chosen(torch.from_numpy(indices).to(self.tensor.device)))

    def all(self) -> np.ndarray:
        """All rows, on the host."""
        return as_array(self.chosen(None))


def unit_rows(rows: torch.Tensor) -> torch.Tensor:
    """Rows (n, D) float64 scaled to length 1; NaN where they have none."""
    rows = rows / rows.abs().amax(1, keepdim=True)  # so that squares neither overflow nor vanish
    return rows / torch.linalg.vector_norm(rows, dim=1, keepdim=True)


def blocks_of(n_rows: int, n_features: int) -> Iterator[slice]:
    """All rows, a bounded number of values at a time."""
    step = max(1, BLOCK_VALUES // n_features)
    for first in range(0, n_rows, step):
        yield slice(first, min(first + step, n_rows))


def rows_on(device: torch.device, rows: Rows) -> TensorRows | None:
    """Rows that lie on this device, scaled where they are to be; None for all others."""
    given = rows.given if isinstance(rows, UnitRows) else rows
    if not isinstance(given, TensorRows) or given.tensor.device != device:
        return None
    return UnitTensorRows(rows, given.tensor) if isinstance(rows, UnitRows) else given


def as_array(tensor: torch.Tensor) -> np.ndarray:
    """A tensor as an array on the host, in float32 where NumPy has no such type."""
    tensor, kind = tensor.detach(), _ON_HOST.get(tensor.dtype)
    out = None if kind is None else torch.empty(tensor.shape, dtype=kind)
    array: np.ndarray = to_host(tensor, out).numpy()
    return array


@cache
def _type_on_host(kind: torch.dtype) -> np.dtype[Any]:
    """What `as_array` makes of a type."""
    return as_array(torch.empty(0, dtype=kind)).dtype


def rows_of_tensor(X: torch.Tensor, name: str = "X") -> Rows:
    """Rows of a tensor, without a copy; as a NumPy array where it is one on the host.

    Raises
    ------
    ValueError
        If it is not two-dimensional, empty, sparse, or no real numbers.
    """
    if X.layout != torch.strided:
        raise ValueError(f"{name} is a tensor of layout {X.layout}: convert it with {name}.to_dense().")
    if X.ndim != 2:
        raise ValueError(f"{name} is a tensor of {X.ndim} dimension(s). {TWO_DIMENSIONS}")
    if 0 in X.shape:
        raise ValueError(f"{name} is a tensor of shape {tuple(X.shape)}: give at least one row and one feature.")
    if X.is_complex() or X.dtype == torch.bool:
        raise ValueError(f"{name} is a tensor of {X.dtype}, but real numbers are needed. Convert it first.")
    X = X.detach()
    if type(X) is not torch.Tensor:  # launches tell the types of arguments apart
        X = X.as_subclass(torch.Tensor)
    if X.stride(1) != 1:
        X = X.contiguous()  # kernels read a row as one run
    if X.device.type == "cpu" and X.dtype not in _ON_HOST:
        return ArrayRows(X.numpy(), name)
    return TensorRows(X, name)
