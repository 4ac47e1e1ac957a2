"""Where benchmark sets lie: a folder with prepared `.npy` files, or with the original ones."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

#: A file or folder as users give it; None: $VCGMM_DATA, or ~/.cache/vcgmm where that is unset.
Folder = str | os.PathLike[str] | None


def data_folder(folder: Folder = None) -> Path:
    """The folder in which sets are looked for."""
    if folder is None:
        folder = os.environ.get("VCGMM_DATA") or "~/.cache/vcgmm"
    return Path(folder).expanduser()


def load_prepared(name: str, folder: Folder = None, *, n_features: int | None = None) -> np.ndarray:
    """Rows of a prepared file NAME.npy, (N, D), in the type that it has.

    Parameters
    ----------
    name : str
    folder : path-like, optional
        Default: $VCGMM_DATA, or ~/.cache/vcgmm.
    n_features : int, optional
        The width it must have.

    Raises
    ------
    FileNotFoundError
        If it is not there.
    ValueError
        If it does not hold rows of numbers of that width.
    """
    path = data_folder(folder) / f"{name}.npy"
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} is missing: save the set there as an (N, D) array with numpy.save, or set VCGMM_DATA to the "
            f"folder that holds it."
        )
    rows: np.ndarray = np.load(path)
    if rows.ndim != 2 or not len(rows) or rows.dtype.kind not in "fiu":
        raise ValueError(
            f"{path} holds an array of shape {rows.shape} and type {rows.dtype}: save rows of numbers."
        )
    if n_features is not None and rows.shape[1] != n_features:
        raise ValueError(
            f"{path} has {rows.shape[1]} columns, but {name} has {n_features}: save the features alone."
        )
    return rows


def prepared_or_none(name: str, folder: Folder, n_features: int) -> np.ndarray | None:
    """Rows of the prepared file, or None where there is none."""
    if (data_folder(folder) / f"{name}.npy").is_file():
        return load_prepared(name, folder, n_features=n_features)
    return None


def find_file(folder: Folder, names: Sequence[str], title: str, where: str) -> Path:
    """The first of the files that is there; the error says what it is and where to get it."""
    place = data_folder(folder)
    for name in names:
        if (place / name).is_file():
            return place / name
    raise FileNotFoundError(
        f"{place / names[0]} is missing: get {title} from {where} and put the file there, or set VCGMM_DATA to "
        f"the folder that holds it."
    )


def check_rows(path: Path, n_rows: int, expected: int) -> None:
    """Refuse a file that is cut off, or is another one."""
    if n_rows != expected:
        raise ValueError(
            f"{path} has {n_rows:,} rows, but the set has {expected:,}: it is cut off or another. Get it again."
        )
