"""Tensors as rows: used where they lie."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
import torch

from ..data import ArrayRows, Part, Rows
from ..data.rows import PART_BLOCKS
from ..validation import TWO_DIMENSIONS

#: Types of tensors that NumPy has as well, and what stands for the others on the host.
_ON_HOST = {torch.bfloat16: torch.float32}


class TensorRows(Rows):
    """Rows of a tensor on any device.

    Parameters
    ----------
    tensor : (N, D) tensor of real numbers
    name : str
    """

    def __init__(self, tensor: torch.Tensor, name: str = "X") -> None:
        self.tensor = tensor
        super().__init__(int(tensor.shape[1]), as_array(tensor[:0]).dtype, name)

    @property
    def n_samples(self) -> int:
        """How many rows there are."""
        return int(self.tensor.shape[0])

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


def as_array(tensor: torch.Tensor) -> np.ndarray:
    """A tensor as an array on the host, in float32 where NumPy has no such type."""
    array: np.ndarray = tensor.detach().to("cpu", _ON_HOST.get(tensor.dtype, tensor.dtype)).numpy()
    return array


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
    if X.stride(1) != 1:
        X = X.contiguous()  # kernels read a row as one run
    if X.device.type == "cpu" and X.dtype not in _ON_HOST:
        return ArrayRows(X.numpy(), name)
    return TensorRows(X, name)
