"""What arrays a file must hold: types, and shapes that agree with one another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Array:
    """Type and shape of an array.

    Attributes
    ----------
    dtype : str or None
        NumPy's name; None for any real number.
    shape : tuple of str or None
        Names of its dimensions: those of one name have one length in all arrays of a file.  None: not said here.
    """

    dtype: str | None
    shape: tuple[str, ...] | None


def check_arrays(
    path: object, tensors: Mapping[str, np.ndarray], schema: Mapping[str, Array], required: Sequence[str]
) -> None:
    """Refuse a file whose arrays are missing, unknown, or of another type or shape than they should be.

    Parameters
    ----------
    path : object
        What messages call the file.
    tensors : mapping of arrays
    schema : mapping of Array
        All arrays that may be there.
    required : sequence of str
        Those that must be there.

    Raises
    ------
    ValueError
    """
    missing = [name for name in required if name not in tensors]
    if missing:
        raise ValueError(f"{path} holds no {missing[0]}: it is not what vcgmm wrote. Get a new copy of it.")
    lengths: dict[str, tuple[int, str]] = {}
    for name, tensor in tensors.items():
        if name not in schema:
            raise ValueError(f"{path} holds {name!r}, which this vcgmm does not know: a newer one may read it.")
        expected = schema[name]
        if tensor.dtype != expected.dtype if expected.dtype else tensor.dtype.kind not in "fiub":
            raise ValueError(
                f"{path} holds {name} as {tensor.dtype}, but it should be {expected.dtype or 'real'}."
            )
        if expected.shape is None:
            continue
        if tensor.ndim != len(expected.shape):
            raise ValueError(
                f"{path} holds {name} of shape {tensor.shape}, but it should be ({', '.join(expected.shape)})."
            )
        for dimension, length in zip(expected.shape, tensor.shape, strict=True):
            known, other = lengths.setdefault(dimension, (length, name))
            if known != length:
                raise ValueError(
                    f"{path} holds {other} of {known} {dimension} and {name} of {length}: they must agree."
                )
