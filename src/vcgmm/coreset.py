"""Coresets: weighted points that stand for many rows, to be kept, merged, reduced and fitted to."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from .algorithm.coreset.lightweight import Coreset as Sample
from .algorithm.random import generator
from .algorithm.streams.merging import merge, reduce
from .parallel import Workers
from .persistence import Given, StoredCoreset, read_coreset, write_coreset
from .validation import (
    check_array_rows,
    check_finite,
    check_integer,
    check_threads,
    check_weights,
    draw_seed,
)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Coreset:
    """Weighted points that stand for many rows.

    It comes from `lightweight_coreset`, as `coreset_` of a model, from a file, or from points and weights of your
    own.  `VCGMM.fit` takes it in place of data.

    Parameters
    ----------
    points : array-like of shape (N', D)
        Any real dtype; an array is kept as it is.
    weights : array-like of shape (N',), optional
        How much of the data each point stands for; None: 1.
    indices : array-like of shape (N',), optional
        The rows that the points are.
    n_samples : int, optional
        How many rows they stand for.

    Attributes
    ----------
    points : (N', D) array
        In the data's own dtype.  Where all of a tensor on a GPU was fitted to, it is brought from there when it is
        first asked for (bf16 as float32); fits to the coreset use it where it lies.
    weights : (N',) float64
        They sum to the data's weight in expectation.
    indices : (N',) int64 or None
        Rows of the data, where the points are rows of one array.
    n_samples : int or None
        Rows that it stands for, where that is known.

    Examples
    --------
    Shards summarised where they lie, and fitted to together:

    >>> import numpy as np
    >>> from vcgmm import VCGMM, lightweight_coreset
    >>> rng = np.random.default_rng(0)
    >>> shards = [rng.normal(shift, size=(50_000, 3)) for shift in (0.0, 5.0)]
    >>> a, b = (lightweight_coreset(shard, 2_000, random_state=0) for shard in shards)
    >>> both = a.merge(b)
    >>> both.n_samples, len(both) == len(a) + len(b)
    (100000, True)
    >>> model = VCGMM(20, random_state=0).fit(both.reduce(3_000, random_state=0))
    """

    points: np.ndarray
    weights: np.ndarray
    indices: np.ndarray | None
    n_samples: int | None

    def __init__(self, points: Any, weights: Any = None, *, indices: Any = None, n_samples: Any = None) -> None:
        rows = check_array_rows("points", points)
        check_finite(rows)
        checked = check_weights(weights, rows.n_samples, "weights", "points")
        self._fill(
            rows.array,
            np.ones(rows.n_samples) if checked is None else checked,
            _check_indices(indices, rows.n_samples),
            None if n_samples is None else check_integer("n_samples", n_samples, 1),
        )

    @classmethod
    def of(
        cls,
        points: Any,
        weights: np.ndarray,
        indices: np.ndarray | range | None,
        n_samples: int | None,
        bring: Callable[[Any], np.ndarray] | None = None,
    ) -> Self:
        """A coreset of arrays that are known to be good: they are neither read nor checked.

        Points may be a tensor, of which `bring` makes an array when one is asked for.
        """
        coreset = cls.__new__(cls)
        coreset._fill(points, weights, indices, n_samples)
        if bring is not None and not isinstance(points, np.ndarray):
            del coreset.__dict__["points"]
            coreset.__dict__["_elsewhere"] = points, bring
        return coreset

    def _fill(self, points: Any, weights: Any, indices: Any, n_samples: int | None) -> None:
        """Weights that are 1 without an array of them, and indices that are a range, wait until they are used."""
        given = {"points": points, "weights": weights, "indices": indices, "n_samples": n_samples}
        if isinstance(indices, range):
            del given["indices"]
        if weights.strides == (0,) and (weights[:1] == 1.0).any():  # all are one number
            del given["weights"]
        for name, value in given.items():
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> np.ndarray:
        """Arrays that tell of all rows alike, or lie on a GPU: to make them takes longer than many a fit there."""
        value: np.ndarray
        if name == "points" and "_elsewhere" in self.__dict__:
            points, bring = self.__dict__["_elsewhere"]
            value = bring(points)
        elif name == "weights":
            value = np.ones(len(self))
        elif name == "indices":
            value = np.arange(len(self))
        else:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        object.__setattr__(self, name, value)
        return value

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: arrays, without those that are made when they are asked for."""
        return dict(self.on_host().__dict__)

    @property
    def there(self) -> Any:
        """The points where they lie: the array, or a tensor on a GPU where all of one was fitted to."""
        return self.__dict__["_elsewhere"][0] if "_elsewhere" in self.__dict__ else self.points

    def on_host(self) -> Coreset:
        """The same with its points in an array: itself where they are, else another, and no copy is kept here."""
        if "_elsewhere" not in self.__dict__:
            return self
        points, bring = self.__dict__["_elsewhere"]
        coreset = type(self).__new__(type(self))
        coreset.__dict__.update({"points": bring(points), **self.__dict__})
        del coreset.__dict__["_elsewhere"]
        return coreset

    def __len__(self) -> int:
        """Number of points N'."""
        return len(self.there)

    def __repr__(self) -> str:
        of = "" if self.n_samples is None else f" for {self.n_samples:,} rows"
        n_points, n_features = self.there.shape
        dtype = str(self.there.dtype).removeprefix("torch.")
        return (
            f"<Coreset: {n_points:,} points of {n_features:,} features, {dtype}, of weight "
            f"{self.total_weight:.8g}{of}>"
        )

    @property
    def n_features(self) -> int:
        """Number of features D."""
        return int(self.there.shape[1])

    @property
    def total_weight(self) -> float:
        """Sum of the weights."""
        return float(self.weights.sum())

    def merge(self, *others: Coreset) -> Coreset:
        """One coreset of the points of several: what it says of the data is the sum of what they say.

        Parameters
        ----------
        *others : Coreset
            Of other rows, with the same features.

        Returns
        -------
        Coreset
            All points with their weights, equal points included.  Its `indices` are None, since its points are
            no longer rows of one array; `n_samples` is the sum, where it is known of all.
        """
        for other in others:
            if not isinstance(other, Coreset):
                raise TypeError(f"merge was given a {type(other).__name__}: give coresets.")
            if other.n_features != self.n_features:
                raise ValueError(
                    f"coresets of {self.n_features} and of {other.n_features} features cannot be merged: give "
                    f"coresets with the same features."
                )
        every = (self, *others)
        sizes = [coreset.n_samples for coreset in every]
        known = [size for size in sizes if size is not None]
        points, weights = merge([(coreset.points, coreset.weights) for coreset in every])
        return Coreset.of(points, weights, None, sum(known) if len(known) == len(sizes) else None)

    def reduce(self, size: int, *, random_state: Any = None, n_threads: int | None = None) -> Coreset:
        """A smaller coreset of the same data: a lightweight coreset of the weighted points.

        Weighted sums over it are those over this one in expectation.

        Parameters
        ----------
        size : int
            Number of draws.  Points drawn more than once appear once, with their weights added.  Not smaller than
            the number of points: the coreset itself.
        random_state : int, RandomState or None
        n_threads : int or None

        Returns
        -------
        Coreset
        """
        size = check_integer("size", size, 1)
        if size >= len(self):
            return self
        with Workers(check_threads(n_threads)) as workers:
            drawn = reduce(self.points, self.weights, size, generator(draw_seed(random_state)), workers)
        return coreset_of(drawn, len(self), self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the coreset to a file that `load`, `vcgmm fit` and `vcgmm merge` read.

        Parameters
        ----------
        path : path-like
            Replaced if it exists, as a whole or not at all; `.vcgmm` is a good suffix.
        """
        given = self.on_host()
        write_coreset(path, StoredCoreset(given.points, given.weights, given.indices, given.n_samples))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a coreset that `save` or `vcgmm coreset` wrote.

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

        Examples
        --------
        >>> import numpy as np, tempfile, pathlib
        >>> from vcgmm import Coreset
        >>> coreset = Coreset(np.arange(6.0).reshape(3, 2), [1.0, 2.0, 7.0], n_samples=10)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     coreset.save(pathlib.Path(folder) / "core.vcgmm")
        ...     Coreset.load(pathlib.Path(folder) / "core.vcgmm")
        <Coreset: 3 points of 2 features, float64, of weight 10 for 10 rows>
        """
        stored = read_coreset(path)
        return cls.of(stored.points, stored.weights, stored.indices, stored.n_samples)


def save_coreset(coreset: Coreset, path: str | os.PathLike[str]) -> None:
    """Write a coreset to a file: `coreset.save(path)`."""
    coreset.save(path)


def load_coreset(path: str | os.PathLike[str]) -> Coreset:
    """Read a coreset from a file: `Coreset.load(path)`."""
    return Coreset.load(path)


def coreset_of(
    sample: Sample, n_rows: int, given: Given | None, bring: Callable[[Any], np.ndarray] | None = None
) -> Coreset:
    """What was drawn from rows, as the coreset that it is.

    Parameters
    ----------
    sample : algorithm.coreset.Coreset
    n_rows : int
        Rows that it was drawn from.
    given : Coreset or GivenCoreset, optional
        Where those rows were the points of a coreset already, that one: the new one speaks of the same data.
    bring : callable, optional
        What makes an array of points that are a tensor.
    """
    if given is None:
        every = range(len(sample)) if sample.rows is None else sample.indices
        return Coreset.of(sample.points, sample.weights, every, n_rows, bring)
    known = given.indices
    indices = known if known is None or sample.rows is None else known[sample.rows]
    return Coreset.of(sample.points, sample.weights, indices, given.n_samples, bring)


def unpack(X: Any, sample_weight: Any, *, there: bool = False) -> tuple[Any, Any]:
    """Rows and weights from what a method was given: a coreset brings weights of its own.

    Its points may be a tensor where those can be used (there=True); else they are an array.
    """
    if not isinstance(X, Coreset):
        return X, sample_weight
    if sample_weight is not None:
        raise ValueError("sample_weight is given, but X is a coreset, which has weights of its own: leave it out.")
    return X.there if there else X.points, X.weights


def _check_indices(indices: Any, n_points: int) -> np.ndarray | None:
    if indices is None:
        return None
    array = np.asarray(indices)
    if array.shape != (n_points,) or array.dtype.kind not in "iu" or (array < 0).any():
        raise ValueError(
            f"indices of shape {array.shape} and dtype {array.dtype} are not valid: give one row number from 0 on "
            f"for each of the {n_points} points, or None."
        )
    return array.astype(np.int64)
