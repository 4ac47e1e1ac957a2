"""Coresets in files."""

from __future__ import annotations

import os
from collections.abc import Mapping

import numpy as np

from ..algorithm.coreset import Coreset
from .container import read, write
from .schema import Array, check_arrays

#: Arrays of a coreset; points have the type of the data they were drawn from.
ARRAYS = {
    "coreset.indices": Array("int64", ("points",)),
    "coreset.points": Array(None, ("points", "features")),
    "coreset.weights": Array("float64", ("points",)),
}


def save_coreset(coreset: Coreset, path: str | os.PathLike[str]) -> None:
    """Write a coreset to a file.

    Parameters
    ----------
    coreset : Coreset
        From `lightweight_coreset`, or `coreset_` of a model.
    path : path-like
        Replaced if it exists, as a whole or not at all; `.vcgmm` is a good suffix.

    Examples
    --------
    >>> import numpy as np, tempfile, pathlib
    >>> from vcgmm import lightweight_coreset, load_coreset, save_coreset
    >>> coreset = lightweight_coreset(np.arange(2000.0).reshape(-1, 2), 100, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_coreset(coreset, pathlib.Path(folder) / "core.vcgmm")
    ...     again = load_coreset(pathlib.Path(folder) / "core.vcgmm")
    >>> bool((again.points == coreset.points).all())
    True
    """
    write(path, "coreset", {}, coreset_tensors(coreset))


def load_coreset(path: str | os.PathLike[str]) -> Coreset:
    """Read a coreset that `save_coreset` or `vcgmm coreset` wrote.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    Coreset

    Raises
    ------
    ValueError
        If the file holds something else, or is damaged.
    """
    tensors = read(path, "coreset").tensors
    check_arrays(path, tensors, ARRAYS, required=tuple(ARRAYS))
    return coreset_from(path, tensors)


def coreset_tensors(coreset: Coreset) -> dict[str, np.ndarray]:
    """The arrays of a coreset under the names they have in files."""
    return {
        "coreset.indices": coreset.indices,
        "coreset.points": coreset.points,
        "coreset.weights": coreset.weights,
    }


def coreset_from(path: object, tensors: Mapping[str, np.ndarray]) -> Coreset:
    """A coreset from checked arrays; refuses those that cannot be one."""
    indices, points, weights = (tensors[name] for name in ARRAYS)
    if points.size == 0 or not (np.isfinite(weights).all() and (weights >= 0).all() and (indices >= 0).all()):
        raise ValueError(f"{path} holds no valid coreset: it is empty, or a weight or an index is negative.")
    return Coreset(indices, points, weights)
