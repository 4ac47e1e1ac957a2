"""HDF5 and Zarr: arrays in chunks, of which each is read once in a pass."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from .binary import checksum
from .files import WatchedFile
from .keys import choose_key
from .needed import needed
from .records import check_rows_shape
from .source import READ_VALUES, Piece, SequentialSource

HDF5 = (".h5", ".hdf5", ".he5", ".hdf")


class ChunkedArray(SequentialSource):
    """An array that is read in slices.

    Parameters
    ----------
    name : str
    array : h5py.Dataset or zarr.Array
    vector : bool
        It may have one dimension, for a single column.
    """

    def __init__(self, name: str, array: Any, *, vector: bool) -> None:
        shape = (*array.shape, 1) if vector and len(array.shape) == 1 else array.shape
        check_rows_shape(shape, name)
        super().__init__(name, shape[0], shape[1], np.dtype(array.dtype))
        chunk = array.chunks[0] if array.chunks else 1
        wanted = max(1, READ_VALUES // self.n_features)
        self._step = chunk * max(1, wanted // chunk)

    @abstractmethod
    def _opened(self) -> AbstractContextManager[Any]:
        """The array, for as long as the context lasts."""

    def pieces(self) -> Generator[Piece, None, None]:
        """Blocks of whole chunks."""
        with self._opened() as array:
            for first in range(0, self.n_samples, self._step):
                yield self._read(array, first, min(first + self._step, self.n_samples)), None

    def take(self, indices: np.ndarray) -> np.ndarray:
        """Rows with these indices; chunks that hold none of them are not read."""
        out = np.empty((len(indices), self.n_features), self.dtype)
        blocks = np.asarray(indices) // self._step
        with self._opened() as array:
            for block in np.unique(blocks):
                here = np.flatnonzero(blocks == block)
                low, high = int(indices[here].min()), int(indices[here].max()) + 1
                out[here] = self._read(array, low, high)[indices[here] - low]
        return out

    def _read(self, array: Any, first: int, last: int) -> np.ndarray:
        return np.asarray(array[first:last]).reshape(last - first, self.n_features)


class Hdf5Array(ChunkedArray):
    """A dataset of an HDF5 file.

    Parameters
    ----------
    path : Path
    key : str or None
        Its name; None: the only one of two dimensions.
    vector : bool
        It may be a single column.
    """

    def __init__(self, path: Path, key: str | None, *, vector: bool = False) -> None:
        self._file = WatchedFile(path)
        h5py = needed("h5py", "HDF5 files")
        with self._whole() as file:
            found: list[str] = []
            file.visititems(lambda name, item: found.append(name) if isinstance(item, h5py.Dataset) else None)
            if key is None:
                found = [name for name in found if len(file[name].shape) == 2]
            self._key = choose_key(str(path), found, key.strip("/") if key else None)
            super().__init__(str(path), file[self._key], vector=vector)

    @contextmanager
    def _whole(self) -> Iterator[Any]:
        try:
            file = needed("h5py", "HDF5 files").File(self._file.path, "r")
        except OSError as error:
            reason = " ".join(str(error).split()).rstrip(".")
            raise ValueError(f"{self._file.path} is not a valid HDF5 file: {reason}. Is it cut off?") from None
        with file:
            yield file

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        self._file.check()
        with self._whole() as file:
            yield file[self._key]
        self._file.check()


class ZarrArray(ChunkedArray):
    """An array of a Zarr store.

    Parameters
    ----------
    path : Path
    key : str or None
        Its name in a group; None: the only one of two dimensions, or the store itself where it is an array.
    vector : bool
        It may be a single column.
    """

    def __init__(self, path: Path, key: str | None, *, vector: bool = False) -> None:
        zarr = needed("zarr", "Zarr stores")
        try:
            store = zarr.open(str(path), mode="r")
        except Exception as error:  # every version has errors of its own
            raise ValueError(f"{path} is not a valid Zarr store: {' '.join(str(error).split())}.") from None
        if isinstance(store, zarr.Array):
            if key is not None:
                raise ValueError(f"{path} is one array, so key={key!r} means nothing: leave it out.")
        else:
            arrays = {name.strip("/"): item for name, item in sorted(store.arrays())}
            names = [name for name, item in arrays.items() if key is not None or item.ndim == 2]
            store = arrays[choose_key(str(path), names, key.strip("/") if key else None)]
        self._array = store
        self._checksum: int | None = None
        super().__init__(str(path), store, vector=vector)

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        yield self._array

    def pieces(self) -> Generator[Piece, None, None]:
        """Blocks of whole chunks, compared with those of the first pass: a store has no one file to look at."""
        found = 0
        for rows, _ in super().pieces():
            found = checksum(rows, found)
            yield rows, None
        if self._checksum is None:
            self._checksum = found
        elif found != self._checksum:
            raise ValueError(
                f"{self.name} has changed between two passes: leave it alone while it is read, and open it again."
            )
