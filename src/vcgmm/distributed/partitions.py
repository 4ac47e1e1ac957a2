"""Dask collections as partitions of rows with known lengths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import dask
import dask.array as da
import numpy as np
from distributed import Client, Future, as_completed

from ..data import ArrayRows, UnitRows
from ..validation import check_rows


@dataclass(frozen=True)
class Partitions:
    """Rows in pieces, none of them empty, each on whichever worker Dask has put it or will compute it.

    Attributes
    ----------
    client : Client
    blocks : list of Delayed
        (n_i, D) arrays of real numbers.
    weights : list of Delayed or None
        (n_i,) float64 each.
    starts : (P + 1,) int64
        Partition i holds the rows starts[i] to starts[i + 1] - 1.
    ids : list of int
        Their places in the collection, for messages.
    n_features : int
    dtype : dtype
    """

    client: Client
    blocks: Sequence[Any]
    weights: Sequence[Any] | None
    starts: np.ndarray
    ids: Sequence[int]
    n_features: int
    dtype: np.dtype[Any]

    def __len__(self) -> int:
        """Number of partitions P."""
        return len(self.blocks)

    @property
    def n_samples(self) -> int:
        """Rows in all."""
        return int(self.starts[-1])

    def tasks(
        self, function: Callable[..., Any], *shared: Any, own: Sequence[tuple[Any, ...] | None] | None = None
    ) -> list[Future]:
        """function(block, weights, *own[i], *shared) of every partition, begun where it lies.

        Parameters
        ----------
        function : callable
        shared : arguments for all
            Large ones as futures.
        own : sequence of tuples, optional
            Arguments for each; None for a partition of which nothing is needed, which gets no task.
        """
        task = dask.delayed(function, pure=False)
        weights = [None] * len(self) if self.weights is None else self.weights
        calls = [
            task(block, weight, *one, *shared)
            for block, weight, one in zip(self.blocks, weights, own or [()] * len(self), strict=True)
            if one is not None
        ]
        futures: list[Future] = self.client.compute(calls)
        return futures

    def gather(self, futures: Sequence[Future], advance: Callable[[int], None] | None = None) -> list[Any]:
        """Results in order; `advance` is told the rows of each partition that is done."""
        if advance is not None:
            lengths = {future.key: length for future, length in zip(futures, np.diff(self.starts), strict=True)}
            for future in as_completed(futures):
                advance(int(lengths[future.key]))
        results: list[Any] = self.client.gather(list(futures))
        return results


def is_frame(X: Any) -> bool:
    """Whether X is a Dask dataframe."""
    return dask.is_dask_collection(X) and hasattr(X, "columns") and hasattr(X, "to_dask_array")


def check_collection(estimator: Any, X: Any, *, reset: bool) -> da.Array:
    """A Dask array or dataframe as a Dask array of real numbers with all features in one chunk.

    Nothing is computed: the estimator learns (reset=True) or compares the number and the names of features from
    what Dask knows of the collection.

    Parameters
    ----------
    estimator : estimator
    X : dask array (N, D) or dask dataframe
    reset : bool
    """
    if is_frame(X):
        for name, kind in X.dtypes.items():
            if kind.kind not in "fiub":
                raise ValueError(
                    f"X is not valid: its column {name!r} is of type {kind}, but real numbers are needed. Convert "
                    f"it, or leave it out."
                )
        dtype = check_rows(estimator, X._meta_nonempty, reset=reset).dtype
        array = X.astype(dtype).to_dask_array()
    elif isinstance(X, da.Array):
        if X.ndim == 2 and np.isnan(X.shape[1]):
            raise ValueError(
                "X is not valid: the number of its features is not known. Call X.compute_chunk_sizes() first."
            )
        if not isinstance(X._meta, np.ndarray):
            raise ValueError(
                f"X is not valid: its chunks are of type {type(X._meta).__name__}, but NumPy arrays are needed. "
                f"Convert them, for example with X.map_blocks(lambda chunk: chunk.toarray())."
            )
        stand_in = np.zeros([n if axis == 1 else min(1, n) for axis, n in enumerate(X.shape)], X.dtype)
        array = X.astype(check_rows(estimator, stand_in, reset=reset).dtype)
    else:
        raise ValueError(
            f"X is not valid: it is of type {type(X).__name__}, but a Dask array or dataframe is needed. Wrap it "
            f"with dask.array.from_array, or use vcgmm.VCGMM."
        )
    return array if array.numblocks[1] == 1 else array.rechunk({1: -1})


#: Computes Dask objects, all at once.
Compute = Callable[[Sequence[Any]], list[Any]]


def with_known_lengths(array: da.Array, compute: Compute) -> da.Array:
    """The same array with the length of every chunk known, computed where it is not."""
    if not np.isnan(array.shape[0]):
        return array
    length = dask.delayed(len, pure=False)
    lengths = compute([length(block) for block in array.to_delayed().ravel()])
    return da.Array(array.dask, array.name, (tuple(lengths), *array.chunks[1:]), meta=array._meta)


def in_unit_length(array: da.Array) -> da.Array:
    """The rows of an array with known lengths, each scaled to length 1 where and when it is computed."""
    dtype = UnitRows(ArrayRows(np.empty((0, 1), array.dtype))).dtype
    return array.map_blocks(_scale_chunk, dtype=dtype, meta=np.empty((0, 0), dtype))


class _Chunk(ArrayRows):
    """Rows that begin with number `first` of all."""

    first = 0

    def locate(self, row: int) -> str:
        """A row in words."""
        return f"row {self.first + row}"


def _scale_chunk(chunk: np.ndarray, block_info: Any = None) -> np.ndarray:
    rows = _Chunk(chunk)
    rows.first = int(block_info[0]["array-location"][0][0])
    return UnitRows(rows).all()


def make_partitions(client: Client, array: da.Array, weights: da.Array | None) -> Partitions:
    """Partitions of an array with known lengths; its weights, if any, are cut alike."""
    lengths = array.chunks[0]
    ids = [i for i, length in enumerate(lengths) if length]
    if not ids:
        raise ValueError(f"X is not valid: it has 0 rows in {len(lengths)} partition(s). Give at least one row.")
    blocks = array.to_delayed().ravel()
    weight_blocks = None if weights is None else weights.to_delayed().ravel()
    return Partitions(
        client,
        [blocks[i] for i in ids],
        None if weight_blocks is None else [weight_blocks[i] for i in ids],
        np.concatenate([[0], np.cumsum([lengths[i] for i in ids], dtype=np.int64)]),
        ids,
        int(array.shape[1]),
        array.dtype,
    )
