"""Whole arrays: from a stream, and weights from a file."""

from __future__ import annotations

from io import BufferedReader, BytesIO
from typing import Any, BinaryIO

import numpy as np

from .archives import MALFORMED, read_npz
from .records import plain
from .tables import read_table

_NPY = b"\x93NUMPY"
_ZIP = b"PK"


def read_stream(stream: BinaryIO, name: str = "standard input") -> np.ndarray:
    """An array from a stream, by what it begins with: `.npy`, `.npz` with one array, or a table of numbers.

    Parameters
    ----------
    stream : binary file
        Need not be seekable.
    name : str
        What error messages call it.

    Returns
    -------
    array
        Of any number of dimensions; tables have two.
    """
    buffered = stream if isinstance(stream, BufferedReader) else BufferedReader(stream)  # type: ignore[type-var]
    try:
        if buffered.peek(len(_NPY)).startswith(_NPY):
            return _check_kind(_read_npy(buffered, name), name)
        whole = BytesIO(buffered.read())
    finally:
        if buffered is not stream:
            buffered.detach()
    if whole.getbuffer()[: len(_ZIP)] == _ZIP:
        return _check_kind(read_npz(whole, name, None), name)
    return read_table(whole, name)


def _read_npy(stream: Any, name: str) -> np.ndarray:
    try:
        array: np.ndarray = np.lib.format.read_array(stream, allow_pickle=False)
    except MALFORMED as error:
        raise ValueError(f"{name} is not a valid .npy file: {plain(error)}. Write it with numpy.save.") from None
    return array


def _check_kind(array: np.ndarray, name: str) -> np.ndarray:
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} holds {array.dtype}, but real numbers are needed. Convert it to floats first.")
    return array
