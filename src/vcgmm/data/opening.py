"""Files of rows as arrays: `vcgmm.open`."""

from __future__ import annotations

import os
import zipfile
import zlib
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from .tables import read_table

#: What can be opened.
SUFFIXES = (".npy", ".npz", ".csv", ".tsv")

_NPY = b"\x93NUMPY"
_ZIP = b"PK"

#: What NumPy and zipfile raise over files that are none.
_MALFORMED = (ValueError, EOFError, KeyError, NotImplementedError, zipfile.BadZipFile, zlib.error)


def open_rows(path: str | os.PathLike[str], *, key: str | None = None) -> np.ndarray:
    """Open a file of rows.

    Parameters
    ----------
    path : path-like
        `.npy`, which is mapped into memory and not read; `.npz`; or a table of numbers as text, `.csv` or `.tsv`,
        with or without a line of names at its top.
    key : str, optional
        Which array of an `.npz` file; `file.npz:key` says the same. Needed where there are several.

    Returns
    -------
    (N, D) array
        For `fit`, `predict` and all other functions that take rows. Of the file's type; tables are float64.

    Raises
    ------
    ValueError
        If the file is of a kind that is not known, damaged, or does not hold rows of real numbers.
    OSError
        If it is not there, or may not be read.

    Examples
    --------
    >>> import numpy as np, tempfile, vcgmm
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/X.npy", np.arange(6.0).reshape(3, 2))
    ...     vcgmm.open(f"{folder}/X.npy").shape
    (3, 2)
    """
    return check_rows_shape(read_array(path, key=key), str(path))


def read_array(path: str | os.PathLike[str], *, key: str | None = None) -> np.ndarray:
    """Like `open_rows`, but of any number of dimensions: weights have one."""
    text = os.fspath(path)
    if key is None and ".npz:" in text and not Path(text).exists():
        text, _, key = text.rpartition(":")
    file = Path(text)
    suffix = file.suffix.lower()
    if not file.exists():
        raise FileNotFoundError(f"{file} does not exist: check the name.")
    if file.is_dir():
        raise IsADirectoryError(f"{file} is a folder: give a file.")
    if suffix not in SUFFIXES:
        raise ValueError(f"{file} is of an unknown kind: its name should end in {', '.join(SUFFIXES)}.")
    if key is not None and suffix != ".npz":
        raise ValueError(f"{file} has no arrays by name, so key={key!r} means nothing: only .npz files have.")
    if suffix == ".npy":
        return _map_npy(file)
    with file.open("rb") as stream:
        if suffix == ".npz":
            return _read_npz(stream, str(file), key)
        return read_table(stream, str(file), "\t" if suffix == ".tsv" else None)


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
            return _read_npy(buffered, name)
        whole = BytesIO(buffered.read())
    finally:
        if buffered is not stream:
            buffered.detach()
    if whole.getbuffer()[: len(_ZIP)] == _ZIP:
        return _read_npz(whole, name, None)
    return read_table(whole, name)


def check_rows_shape(array: np.ndarray, name: str) -> np.ndarray:
    """Refuse what is no table of rows."""
    if array.ndim != 2:
        raise ValueError(f"{name} holds an array of shape {array.shape}: rows of numbers are needed, (N, D).")
    return array


def _check_kind(array: np.ndarray, name: str) -> np.ndarray:
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} holds {array.dtype}, but real numbers are needed. Convert it to floats first.")
    return array


def _map_npy(file: Path) -> np.ndarray:
    try:
        mapped: np.ndarray = np.load(file, mmap_mode="r", allow_pickle=False)
    except _MALFORMED as error:
        raise ValueError(f"{file} is not a valid .npy file: {_plain(error)}. Write it with numpy.save.") from None
    return _check_kind(mapped, str(file))


def _read_npy(stream: Any, name: str) -> np.ndarray:
    try:
        array: np.ndarray = np.lib.format.read_array(stream, allow_pickle=False)
    except _MALFORMED as error:
        raise ValueError(f"{name} is not a valid .npy file: {_plain(error)}. Write it with numpy.save.") from None
    return _check_kind(array, name)


def _read_npz(stream: BinaryIO, name: str, key: str | None) -> np.ndarray:
    try:
        with np.lib.npyio.NpzFile(stream, allow_pickle=False) as arrays:
            keys = list(arrays.files)
            if key is None and len(keys) == 1:
                key = keys[0]
            array = arrays[key] if key in keys else None
    except _MALFORMED as error:
        raise ValueError(f"{name} is not a valid .npz file: {_plain(error)}. Write it with numpy.savez.") from None
    if array is None:
        listed = ", ".join(keys) or "none"
        wanted = "say which one" if key is None else f"there is no {key!r}"
        raise ValueError(f"{name} holds the arrays {listed}: {wanted}, as in data.npz:{(keys or ['X'])[0]}.")
    return _check_kind(array, name)


def _plain(error: Exception) -> str:
    """NumPy's words without its advice to allow pickles, and without a full stop."""
    text = " ".join(str(error).split())
    if "pickle" in text or "Python objects" in text or "Object arrays" in text:
        return "it holds Python objects, or nothing that NumPy knows"
    return text.rstrip(".") or type(error).__name__
