"""Arrays in .npz archives, unpacked as they are read."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np

from .binary import read_into
from .files import WatchedFile
from .keys import ChoiceError, choose_key
from .memory import MemorySource
from .records import check_rows_shape, plain
from .source import READ_VALUES, Piece, SequentialSource, Source

#: What NumPy and zipfile raise over files that are none.
MALFORMED = (ValueError, EOFError, KeyError, NotImplementedError, zipfile.BadZipFile, zlib.error)


class ArchivedArray(SequentialSource):
    """One array of an .npz file, in C order.

    Parameters
    ----------
    path : Path
    key : str
    n_samples, n_features : int
    dtype : dtype
    """

    def __init__(self, path: Path, key: str, n_samples: int, n_features: int, dtype: np.dtype[Any]) -> None:
        super().__init__(str(path), n_samples, n_features, dtype)
        self._file = WatchedFile(path)
        self._key = key

    def pieces(self) -> Generator[Piece, None, None]:
        """Blocks, unpacked one after the other."""
        self._file.check()
        step = max(1, READ_VALUES // self.n_features)
        with (
            explained(self.name),
            zipfile.ZipFile(self._file.path) as archive,
            _member(archive, self._key) as stream,
        ):
            _read_header(stream)
            for first in range(0, self.n_samples, step):
                block = np.empty((min(step, self.n_samples - first), self.n_features), self.dtype)
                if not read_into(stream, block):
                    raise EOFError("it is cut off")
                yield block, None
        self._file.check()


def open_npz(path: Path, key: str | None, *, vector: bool = False) -> Source:
    """Rows of one array of an .npz file; the only one, where none is named.  `vector`: it may be one column."""
    with explained(str(path)), zipfile.ZipFile(path) as archive:
        key = choose_key(str(path), [name.removesuffix(".npy") for name in archive.namelist()], key)
        with _member(archive, key) as stream:
            shape, fortran, dtype = _read_header(stream)
    if vector and len(shape) == 1:
        shape, fortran = (*shape, 1), False
    check_rows_shape(shape, str(path))
    if fortran:  # a row lies all over it: unpacked as a whole
        with path.open("rb") as whole:
            return MemorySource(read_npz(whole, str(path), key), str(path))
    return ArchivedArray(path, key, shape[0], shape[1], dtype)


def read_npz(stream: BinaryIO, name: str, key: str | None) -> np.ndarray:
    """One array of an archive, as a whole."""
    with explained(name), np.lib.npyio.NpzFile(stream, allow_pickle=False) as arrays:
        array: np.ndarray = arrays[choose_key(name, list(arrays.files), key)]
    return array


@contextmanager
def explained(name: str) -> Iterator[None]:
    """What is wrong with an archive, in words."""
    try:
        yield
    except ChoiceError:
        raise
    except MALFORMED as error:
        raise ValueError(f"{name} is not a valid .npz file: {plain(error)}. Write it with numpy.savez.") from None


def _member(archive: zipfile.ZipFile, key: str) -> IO[bytes]:
    return archive.open(key if key in archive.namelist() else f"{key}.npy")


def _read_header(stream: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    else:
        shape, fortran, dtype = np.lib.format.read_array_header_2_0(stream)
    if dtype.hasobject:
        raise ValueError("Object arrays")
    return shape, fortran, dtype
