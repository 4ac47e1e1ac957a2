"""One number per row to a file, as they come: what is written never has to be in memory as a whole."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from .atomic import replacing
from .binary import raw_bytes
from .needed import needed

#: What can be written part by part.
VECTOR_SUFFIXES = (".npy", ".csv", ".tsv", ".parquet")

#: Values in a group of rows of a Parquet file.
GROUP = 1 << 20

Append = Callable[[np.ndarray], None]


@contextmanager
def appending(path: str | os.PathLike[str], n: int, dtype: np.dtype[Any], name: str) -> Iterator[Append]:
    """A function that appends numbers to a file, which is there as a whole when the block ends, or not at all.

    Parameters
    ----------
    path : path-like
        Ends in one of `VECTOR_SUFFIXES`; replaced if it exists.
    n : int
        How many numbers there will be.
    dtype : dtype
    name : str
        Of the column, in formats that have names.

    Yields
    ------
    callable
        Takes (k,) arrays of `dtype`, one after the other.

    Raises
    ------
    ValueError
        If the format is not known.
    OSError
        If the file cannot be written, for example because the disk is full.
    ImportError
        For `.parquet` without pyarrow.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in VECTOR_SUFFIXES:
        raise ValueError(f"{path} is of an unknown kind: its name should end in {', '.join(VECTOR_SUFFIXES)}.")
    if suffix == ".parquet":
        needed("pyarrow", "Parquet files")
    with _explained(path), replacing(path) as temporary, temporary.open("wb") as file:
        if suffix == ".npy":
            yield from _npy(file, n, dtype)
        elif suffix == ".parquet":
            yield from _parquet(file, dtype, name)
        else:
            yield from _text(file, name)


@contextmanager
def _explained(path: str | os.PathLike[str]) -> Iterator[None]:
    """A full disk in words that name the file which was asked for, not the temporary one."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        raise OSError(
            f"{path} could not be written: {os.strerror(error.errno).lower()}. Nothing is left under that name. "
            f"Free some space, or write to another folder."
        ) from error


def _npy(file: BinaryIO, n: int, dtype: np.dtype[Any]) -> Generator[Append, None, None]:
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": (n,)}
    np.lib.format.write_array_header_1_0(file, header)
    yield lambda values: void(file.write(raw_bytes(np.ascontiguousarray(values, dtype))))


def _text(file: BinaryIO, name: str) -> Generator[Append, None, None]:
    """A line with the name, then the shortest digits from which the same numbers are read again."""
    file.write(f"{name}\n".encode())
    yield lambda values: void(file.write("".join(f"{value!r}\n" for value in values.tolist()).encode()))


def _parquet(file: BinaryIO, dtype: np.dtype[Any], name: str) -> Generator[Append, None, None]:
    pa, parquet = needed("pyarrow", "Parquet files"), needed("pyarrow.parquet", "Parquet files")
    schema = pa.schema([(name, pa.from_numpy_dtype(dtype))])
    waiting: list[np.ndarray] = []

    with parquet.ParquetWriter(file, schema) as writer:

        def flush() -> None:
            if waiting:
                writer.write_table(pa.table([np.concatenate(waiting)], schema=schema))
                waiting.clear()

        def append(values: np.ndarray) -> None:
            waiting.append(values)
            if sum(map(len, waiting)) >= GROUP:
                flush()

        yield append
        flush()


def void(_: object) -> None:
    """Nothing, where a call returns what nobody asked for."""
