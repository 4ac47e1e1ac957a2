"""Sources of rows by what they are called: `vcgmm.open`."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from .archives import open_npz
from .arrow import ARROW, PARQUET, IpcTable, ParquetTable
from .chunked import HDF5, Hdf5Array, ZarrArray
from .columns import Columns
from .memory import MemorySource
from .objects import ObjectSource
from .records import BINS, VECS, RecordFile, map_npy, open_bin, open_npy, open_raw, open_vecs
from .shards import ShardedSource
from .source import Source
from .tables import TextTable
from .weighted import WeightedSource

#: Kinds of files in which arrays have names, and in which columns have.
NAMED_ARRAYS = (".npz", *HDF5, ".zarr")
TABLES = (".csv", ".tsv", *PARQUET, *ARROW)

#: What can be opened by its name.
SUFFIXES = (".npy", ".npz", ".csv", ".tsv", *PARQUET, *ARROW, *VECS, *BINS, *HDF5, ".zarr")


@dataclass(frozen=True)
class Choice:
    """What to take of a file; names as in `open_rows`.  `vector`: an array of one dimension will do."""

    key: str | None = None
    columns: Columns = None
    dtype: Any = None
    shape: Any = None
    vector: bool = False


def open_rows(
    source: Any,
    *,
    key: str | None = None,
    columns: Columns = None,
    weights: Any = None,
    dtype: Any = None,
    shape: Any = None,
) -> Source:
    """Open a source of rows: a file, several files, or an object that yields blocks.

    Nothing is read now but what is needed to know the width.

    Parameters
    ----------
    source : path-like, iterable of blocks, or callable that returns one
        By its suffix: `.npy`; `.npz`; a table of numbers as text, `.csv` or `.tsv`, with or without a line of
        names; `.parquet`; `.arrow` or `.feather`; `.fvecs`, `.bvecs`; `.fbin`, `.u8bin`; HDF5 (`.h5`); Zarr
        (`.zarr`).  A folder, or a pattern such as `parts/*.npy`: the files in it, in the order of their names.
        With `dtype` and `shape`: any file, as raw binary.  An object that yields (n, D) arrays, or pairs of them
        and their weights, the same ones each time it is gone through.
    key : str, optional
        Which array of an `.npz` or HDF5 file or a Zarr group; `file.npz:key` says the same. Needed where there are
        several.
    columns : str, int or sequence of them, optional
        Which columns of a table, by name or number; `file.csv:x,y` says the same. One column of lists holds
        vectors; by default the only one there is, else all columns.
    weights : str, path-like or array, optional
        One weight for each row: the column of a table, or array of an `.npz` or HDF5 file or Zarr group, of that
        name; or a file; or an array.
    dtype, shape : optional
        Of raw binary: (rows, columns), with -1 for as many rows as there are.

    Returns
    -------
    Source
        For `fit`, `predict` and all other functions that take rows. It has `shape`, `dtype` and `columns`;
        `numpy.asarray` reads it whole.

    Raises
    ------
    ValueError
        If the file is of a kind that is not known, damaged, or does not hold rows of real numbers.
    OSError
        If it is not there, or may not be read.
    ImportError
        If the package that reads it is not installed; it names what to install.

    Examples
    --------
    >>> import numpy as np, tempfile, vcgmm
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for i in range(3):
    ...         np.save(f"{folder}/part{i}.npy", np.full((4, 2), i, np.uint8))
    ...     rows = vcgmm.open(f"{folder}/part*.npy")
    ...     print(rows.shape, rows.dtype, np.asarray(rows)[[0, 4, 8], 0])
    (12, 2) uint8 [0 1 2]
    """
    choice = Choice(key, columns, dtype, shape)
    if not isinstance(source, str | os.PathLike):
        rows = _open_object(source, choice)
        return rows if weights is None else WeightedSource(rows, _weights(weights))
    text = os.fspath(source)
    if key is None and columns is None and _names_part(text):
        text, _, part = text.rpartition(":")
        if _suffix(text) in TABLES:
            columns = tuple(name.strip() for name in part.split(","))
        choice = replace(choice, key=None if columns else part, columns=columns)
    rows = _open_path(text, choice)
    if weights is None:
        return rows
    suffix, is_name = _suffix(text), isinstance(weights, str) and not _is_file_of_rows(weights)
    if is_name and suffix in NAMED_ARRAYS:
        return WeightedSource(rows, _open_path(text, Choice(key=weights, vector=True)))
    if is_name and suffix in TABLES:
        if columns is None and rows.columns is not None:
            features = tuple(name for name in rows.columns if name != weights)
            rows = _open_path(text, replace(choice, columns=features))
        return WeightedSource(rows, _open_path(text, Choice(columns=weights)))
    return WeightedSource(rows, _weights(weights))


def _open_path(text: str, choice: Choice) -> Source:
    """A file, a folder, or a pattern."""
    path = Path(text)
    if path.is_dir() and not _is_zarr(path):
        files = sorted(file for file in path.iterdir() if file.name[0] not in "._")
        return _open_shards(text, files, choice)
    if path.exists():
        return _open_file(path, choice)
    if glob.has_magic(text):
        found = glob.glob(text)  # noqa: PTH207 (patterns may be absolute)
        return _open_shards(text, sorted(map(Path, found)), choice)
    raise FileNotFoundError(f"{path} does not exist: check the name.")


def _open_shards(name: str, files: list[Path], choice: Choice) -> Source:
    if not files:
        raise FileNotFoundError(f"{name} holds no files: check the name.")
    kinds = sorted({file.suffix.lower() for file in files})
    if len(kinds) > 1:
        raise ValueError(f"{name} holds files of several kinds, {', '.join(kinds)}: say which, as in *{kinds[0]}.")
    return ShardedSource([_open_file(file, choice) for file in files], name)


def _open_file(path: Path, choice: Choice) -> Source:
    suffix = path.suffix.lower()
    if (choice.dtype is None) != (choice.shape is None):
        raise ValueError(f"{path}: raw binary needs both dtype= and shape=; all other files need neither.")
    if choice.dtype is not None:
        return open_raw(path, choice.dtype, choice.shape)
    if _is_zarr(path):
        suffix = ".zarr"
    elif path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: give a file.")
    if suffix not in SUFFIXES:
        raise ValueError(
            f"{path} is of an unknown kind: its name should end in {', '.join(SUFFIXES)}; or give dtype= and "
            f"shape= of raw binary."
        )
    if choice.key is not None and suffix not in NAMED_ARRAYS:
        raise ValueError(f"{path} has no arrays by name, so key={choice.key!r} means nothing: leave it out.")
    if choice.columns is not None and suffix not in TABLES:
        raise ValueError(f"{path} is no table, so columns={choice.columns!r} means nothing: leave it out.")
    return _OPEN[suffix](path, choice)


_OPEN: dict[str, Callable[[Path, Choice], Source]] = {
    ".npy": lambda path, _: open_npy(path),
    ".npz": lambda path, choice: open_npz(path, choice.key, vector=choice.vector),
    ".csv": lambda path, choice: TextTable(path, None, choice.columns),
    ".tsv": lambda path, choice: TextTable(path, "\t", choice.columns),
    ".zarr": lambda path, choice: ZarrArray(path, choice.key, vector=choice.vector),
    **dict.fromkeys(PARQUET, lambda path, choice: ParquetTable(path, choice.columns)),
    **dict.fromkeys(ARROW, lambda path, choice: IpcTable(path, choice.columns)),
    **dict.fromkeys(VECS, lambda path, _: open_vecs(path)),
    **dict.fromkeys(BINS, lambda path, _: open_bin(path)),
    **dict.fromkeys(HDF5, lambda path, choice: Hdf5Array(path, choice.key, vector=choice.vector)),
}


def _open_object(blocks: Any, choice: Choice) -> Source:
    if choice != Choice():
        raise ValueError("key, columns, dtype and shape say what to take of a file: leave them out for an object.")
    if isinstance(blocks, Source):
        return blocks
    if isinstance(blocks, np.ndarray):
        if blocks.ndim != 2:
            raise ValueError(f"An array of shape {blocks.shape} holds no rows: give one of shape (N, D).")
        return MemorySource(blocks, "an array")
    if not callable(blocks) and not isinstance(blocks, Iterable):
        raise TypeError(f"{blocks!r} cannot be opened: give a file, or an object that yields blocks of rows.")
    return ObjectSource(blocks)


def _weights(weights: Any) -> Source:
    """Weights from a file or an array, as one column."""
    if isinstance(weights, str | os.PathLike):
        return open_vector(weights)
    array = np.asarray(weights)
    if array.ndim != 1:
        raise ValueError(f"weights has shape {array.shape}: give one weight per row, (N,).")
    return MemorySource(array[:, None], "weights")


def open_vector(path: str | os.PathLike[str]) -> Source:
    """One number per row from a file: a single column or row, or an array of one dimension."""
    file = Path(path)
    if file.suffix.lower() == ".npy" and file.is_file():
        array = map_npy(file)
        if array.ndim == 1 or (array.ndim == 2 and 1 in array.shape):
            return RecordFile(file, array.offset, (array.size, 1), array.dtype)
    return open_rows(path)


def _is_file_of_rows(text: str) -> bool:
    """Whether a text is the name of a file rather than of a column."""
    return Path(text).suffix.lower() in SUFFIXES and Path(text).exists()


def names_parts(text: str) -> bool:
    """Whether a file holds columns or arrays that have names."""
    return _suffix(text.rpartition(":")[0] if _names_part(text) else text) in (*NAMED_ARRAYS, *TABLES)


def _names_part(text: str) -> bool:
    """Whether the last part of a path is the name of an array, or of columns."""
    before, colon, _ = text.rpartition(":")
    return bool(colon) and _suffix(before) in (*NAMED_ARRAYS, *TABLES) and not Path(text).exists()


def _suffix(text: str) -> str:
    """Kind of a file; of the files in a folder or pattern."""
    path = Path(text)
    if path.is_dir() and not _is_zarr(path):
        return next((file.suffix.lower() for file in sorted(path.iterdir()) if file.name[0] not in "._"), "")
    return ".zarr" if _is_zarr(path) else path.suffix.lower()


def _is_zarr(path: Path) -> bool:
    return path.suffix.lower() == ".zarr" or any(
        (path / name).is_file() for name in ("zarr.json", ".zarray", ".zgroup")
    )
