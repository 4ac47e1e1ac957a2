"""Coresets in files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from .container import read, write
from .parameters import decode_number
from .schema import Array, check_arrays

#: Arrays of a coreset; points have the type of the data they were drawn from.
ARRAYS = {
    "coreset.indices": Array("int64", ("points",)),
    "coreset.points": Array(None, ("points", "features")),
    "coreset.weights": Array("float64", ("points",)),
}
#: Those that every coreset has: one that was merged has no indices.
REQUIRED = ("coreset.points", "coreset.weights")


class WeightedPoints(Protocol):
    """What is written of a coreset, of whatever class it is."""

    @property
    def points(self) -> np.ndarray:
        """Of shape (N', D)."""
        ...

    @property
    def weights(self) -> np.ndarray:
        """Of shape (N',), float64."""
        ...

    @property
    def indices(self) -> np.ndarray | None:
        """Of shape (N',), int64."""
        ...


class Given(Protocol):
    """A coreset that a fit was given in place of rows, as far as it is more than its points and weights."""

    @property
    def indices(self) -> np.ndarray | None:
        """Of shape (N',), int64."""
        ...

    @property
    def n_samples(self) -> int | None:
        """Rows that it stands for."""
        ...


@dataclass(frozen=True)
class StoredCoreset:
    """A coreset as it is in a file; attributes as in `vcgmm.Coreset`."""

    points: np.ndarray
    weights: np.ndarray
    indices: np.ndarray | None
    n_samples: int | None


def write_coreset(path: str | os.PathLike[str], coreset: StoredCoreset) -> None:
    """Write a coreset to a file, as a whole or not at all."""
    write(path, "coreset", {"n_samples": coreset.n_samples}, coreset_tensors(coreset))


def read_coreset(path: str | os.PathLike[str]) -> StoredCoreset:
    """Read a coreset that `write_coreset` wrote.

    Raises
    ------
    ValueError
        If the file holds something else, or is damaged.
    """
    content = read(path, "coreset")
    check_arrays(path, content.tensors, ARRAYS, required=REQUIRED)
    return coreset_from(path, content.header, content.tensors)


def coreset_tensors(coreset: WeightedPoints) -> dict[str, np.ndarray]:
    """The arrays of a coreset under the names they have in files."""
    tensors = {"coreset.points": coreset.points, "coreset.weights": coreset.weights}
    return tensors if coreset.indices is None else {"coreset.indices": coreset.indices, **tensors}


def coreset_from(path: object, values: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> StoredCoreset:
    """A coreset from checked arrays and a header; refuses those that cannot be one."""
    indices = tensors.get("coreset.indices")
    points, weights = tensors["coreset.points"], tensors["coreset.weights"]
    usable = np.isfinite(weights).all() and (weights >= 0).all() and (indices is None or (indices >= 0).all())
    if points.size == 0 or not usable:
        raise ValueError(f"{path} holds no valid coreset: it is empty, or a weight or an index is negative.")
    n_samples = values.get("n_samples")  # files of the first version say nothing of it
    try:
        known = None if n_samples is None else int(decode_number(n_samples, int))
    except TypeError as error:
        raise ValueError(f"{path} is not what vcgmm wrote (n_samples: {error}). Get a new copy of it.") from None
    return StoredCoreset(points, weights, indices, known)
