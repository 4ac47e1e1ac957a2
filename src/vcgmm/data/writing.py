"""Arrays to files, in the format that the name's suffix says."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .atomic import replacing
from .needed import needed

#: What can be written; `.fvecs` holds rows of float32 only.
SUFFIXES = (".npy", ".csv", ".tsv", ".parquet", ".fvecs")


def write_array(path: str | os.PathLike[str], array: np.ndarray, names: Sequence[str]) -> None:
    """Write an array, as a whole or not at all.

    Parameters
    ----------
    path : path-like
        Ends in one of `SUFFIXES`; replaced if it exists.
    array : (n,) or (n, D) array
        (n, D) for `.fvecs`.
    names : sequence of str
        Of the D columns (1 for a vector), in formats that have names: `.csv`, `.tsv` and `.parquet`.

    Raises
    ------
    ImportError
        For `.parquet` without pyarrow.
    """
    suffix = Path(path).suffix.lower()
    with replacing(path) as temporary:
        if suffix == ".npy":
            with temporary.open("wb") as file:
                np.save(file, array, allow_pickle=False)
        elif suffix == ".fvecs":
            _write_fvecs(temporary, array)
        elif suffix == ".parquet":
            _write_parquet(temporary, array, names)
        elif suffix in (".csv", ".tsv"):
            _write_text(temporary, array, names, "\t" if suffix == ".tsv" else ",")
        else:
            raise ValueError(f"{path} is of an unknown kind: its name should end in {', '.join(SUFFIXES)}.")


def _write_fvecs(path: Path, array: np.ndarray) -> None:
    """Every row as its length, int32, and its values, float32; all little-endian."""
    out = np.empty((len(array), array.shape[1] + 1), "<f4")
    out[:, 0] = np.array(array.shape[1], "<i4").view("<f4")
    out[:, 1:] = array
    out.tofile(path)


def _write_parquet(path: Path, array: np.ndarray, names: Sequence[str]) -> None:
    pa, parquet = needed("pyarrow", "Parquet files"), needed("pyarrow.parquet", "Parquet files")
    columns = np.ascontiguousarray(array.reshape(len(array), -1).T)
    parquet.write_table(pa.table([pa.array(column) for column in columns], names=list(names)), path)


def _write_text(path: Path, array: np.ndarray, names: Sequence[str], delimiter: str) -> None:
    """A line of names, then the shortest digits from which the same numbers are read again."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(delimiter.join(_quote(name, delimiter) for name in names) + "\n")
        for row in array.reshape(len(array), -1):
            file.write(delimiter.join(map(repr, row.tolist())) + "\n")


def _quote(name: str, delimiter: str) -> str:
    if any(mark in name for mark in (delimiter, '"', "\n", "\r")):
        return '"' + name.replace('"', '""') + '"'
    return name
