"""Files of records of one length: .npy, raw binary, .fvecs and its kin, .fbin and its kin."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np

from .binary import read_into
from .files import WatchedFile
from .source import AddressedSource

#: Every row begins with its length, int32.
VECS = {".fvecs": "<f4", ".bvecs": "u1", ".ivecs": "<i4"}

#: The file begins with the numbers of rows and of columns, uint32.
BINS = {".fbin": "<f4", ".u8bin": "u1", ".i8bin": "i1", ".ibin": "<i4"}


class RecordFile(AddressedSource):
    """Rows one after the other in a file.

    They are read, not mapped: the process does not grow with the file.

    Parameters
    ----------
    path : Path
    offset : int
        Bytes before the first row.
    shape : tuple of int
        Rows and features.
    dtype : dtype
    prefixed : bool, default=False
        Every row begins with its length, int32.
    """

    def __init__(
        self, path: Path, offset: int, shape: tuple[int, int], dtype: np.dtype[Any], *, prefixed: bool = False
    ) -> None:
        n_samples, n_features = shape
        super().__init__(str(path), n_samples, n_features, dtype)
        self._file = WatchedFile(path)
        self._offset = offset
        self._prefixed = prefixed
        self._record = np.dtype([("length", "<i4"), ("row", dtype, (n_features,))])
        self._stride = self._record.itemsize if prefixed else n_features * dtype.itemsize

    @contextmanager
    def opened(self) -> Iterator[Callable[[int, np.ndarray], None]]:
        """A function read(first, out)."""
        self._file.check()
        with FileIO(self._file.path) as file:
            if hasattr(os, "posix_fadvise"):
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_SEQUENTIAL)

            def read(first: int, out: np.ndarray) -> None:
                file.seek(self._offset + first * self._stride)
                if self._prefixed:
                    records = np.empty(len(out), self._record)
                    self._read_into(file, records)
                    self._check_lengths(first, records["length"])
                    out[:] = records["row"]
                else:
                    self._read_into(file, out)

            yield read
        self._file.check()

    def _read_into(self, file: FileIO, out: np.ndarray) -> None:
        if not read_into(file, out):
            raise ValueError(f"{self.name} has become shorter while it was read: leave it alone, and begin again.")

    def _check_lengths(self, first: int, lengths: np.ndarray) -> None:
        if (lengths != self.n_features).any():
            row = int(np.argmax(lengths != self.n_features))
            raise ValueError(
                f"{self.name} has {lengths[row]} values in row {first + row}, but {self.n_features} in its first: "
                f"all rows must be equally long. Is the file damaged, or of another kind?"
            )


class ColumnFile(AddressedSource):
    """An .npy file in Fortran order: mapped a block at a time, since a row lies all over the file.

    Parameters
    ----------
    path : Path
    offset : int
    shape : tuple of int
    dtype : dtype
    """

    def __init__(self, path: Path, offset: int, shape: tuple[int, int], dtype: np.dtype[Any]) -> None:
        super().__init__(str(path), *shape, dtype)
        self._file = WatchedFile(path)
        self._offset = offset

    @contextmanager
    def opened(self) -> Iterator[Callable[[int, np.ndarray], None]]:
        """A function read(first, out)."""
        self._file.check()

        def read(first: int, out: np.ndarray) -> None:
            # A new map for every block: giving it back drops its pages.
            every = np.memmap(self._file.path, self.dtype, "r", self._offset, self.shape, "F")
            out[:] = every[first : first + len(out)]

        yield read
        self._file.check()


def open_npy(path: Path) -> RecordFile | ColumnFile:
    """Rows of an .npy file."""
    array = map_npy(path)
    check_rows_shape(array.shape, str(path))
    shape = (array.shape[0], array.shape[1])
    kind = RecordFile if array.flags.c_contiguous else ColumnFile
    return kind(path, array.offset, shape, array.dtype)


def map_npy(path: Path) -> np.memmap[Any, Any]:
    """An .npy file as an array in mapped memory, of any number of dimensions; nothing is read but its header."""
    try:
        array: np.memmap[Any, Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path} is not a valid .npy file: {plain(error)}. Write it with numpy.save.") from None
    if not isinstance(array, np.memmap):  # numpy.load also reads archives
        raise ValueError(f"{path} is not a valid .npy file: it is an archive. Call it .npz.")
    return array


def open_raw(path: Path, dtype: Any, shape: Any) -> RecordFile:
    """Rows of a binary file without a header, of which type and shape are told."""
    try:
        kind = np.dtype(dtype)
    except TypeError:
        raise ValueError(f"dtype={dtype!r} is not known: give one of NumPy's, such as 'float32'.") from None
    if np.shape(shape) != (2,) or not all(isinstance(n, int) for n in shape) or shape[0] < -1 or shape[1] < 1:
        raise ValueError(
            f"shape={shape!r} is not valid: give (rows, columns), with -1 for as many rows as there are."
        )
    size, stride = path.stat().st_size, shape[1] * kind.itemsize
    n_samples = size // stride if shape[0] == -1 else shape[0]
    if n_samples * stride != size:
        raise ValueError(
            f"{path} has {size:,} bytes, but {n_samples:,} rows of {shape[1]:,} values of {kind} are "
            f"{n_samples * stride:,}: it is cut off, or type or shape is another one."
        )
    return RecordFile(path, 0, (n_samples, shape[1]), kind)


def open_vecs(path: Path) -> RecordFile:
    """Rows of an .fvecs, .bvecs or .ivecs file."""
    size, dtype = path.stat().st_size, np.dtype(VECS[path.suffix.lower()])
    head = np.fromfile(path, "<i4", 1)
    if not len(head):
        raise ValueError(f"{path} holds no rows. Give at least one.")
    n_features = int(head[0])
    stride = 4 + n_features * dtype.itemsize
    if n_features < 1 or size % stride:
        raise ValueError(
            f"{path} is cut off, or no {path.suffix} file: its first row has {n_features} values, and its "
            f"{size:,} bytes are no number of such rows. Copy it again."
        )
    return RecordFile(path, 0, (size // stride, n_features), dtype, prefixed=True)


def open_bin(path: Path) -> RecordFile:
    """Rows of an .fbin, .u8bin, .i8bin or .ibin file."""
    size, dtype = path.stat().st_size, np.dtype(BINS[path.suffix.lower()])
    head = np.fromfile(path, "<u4", 2)
    expected = 8 + int(head[0]) * int(head[1]) * dtype.itemsize if len(head) == 2 else 8
    if size != expected:
        promised = f"{head[0]:,} rows of {head[1]:,} values" if len(head) == 2 else "a head of 8 bytes"
        raise ValueError(
            f"{path} is cut off, or no {path.suffix} file: {promised} would be {expected:,} bytes, and it has "
            f"{size:,}. Copy it again."
        )
    return RecordFile(path, 8, (int(head[0]), int(head[1])), dtype)


def check_rows_shape(shape: tuple[int, ...], name: str) -> None:
    """Refuse what is no table of rows."""
    if len(shape) != 2:
        raise ValueError(f"{name} holds an array of shape {shape}: rows of numbers are needed, (N, D).")


def plain(error: Exception) -> str:
    """NumPy's words without its advice to allow pickles, and without a full stop."""
    text = " ".join(str(error).split())
    if "pickle" in text or "Python objects" in text or "Object arrays" in text:
        return "it holds Python objects, or nothing that NumPy knows"
    if "mmap length" in text:
        return "it is cut off"
    return text.rstrip(".") or type(error).__name__
