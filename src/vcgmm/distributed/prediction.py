"""Fitted means applied to Dask collections: lazily, partition by partition."""

from __future__ import annotations

from typing import Any

import dask
import dask.array as da
import numpy as np

from ..estimator import VCGMM


def each_partition(model: VCGMM, array: da.Array, method: str, empty: Any, **options: Any) -> da.Array:
    """A method of a local model on every chunk of an array.

    Parameters
    ----------
    model : VCGMM
        Fitted, and lean: it goes to the workers.
    array : dask array (N, D)
        All features in one chunk; the lengths of chunks need not be known.
    method : {"predict", "nearest", "predict_proba", "score_samples"}
        Where it returns a pair, both come side by side in one array.
    empty : array of shape (0,) or (0, k)
        The result for no rows, which tells Dask its kind.
    options : keyword arguments of the method

    Returns
    -------
    dask array (N,) or (N, k), lazy, in chunks of as many rows
    """
    shape = {"drop_axis": 1} if empty.ndim == 1 else {"chunks": (array.chunks[0], (empty.shape[1],))}
    # As a task of its own the model is sent once, not with every chunk.
    sent = dask.delayed(model, pure=True)
    kind = {"dtype": empty.dtype, "meta": empty}
    return array.map_blocks(on_chunk, sent, method=method, options=options, empty=empty, **kind, **shape)


def on_chunk(
    chunk: np.ndarray, model: VCGMM, method: str, options: dict[str, Any], empty: Any, block_id: Any = None
) -> Any:
    """A method of a local model on one chunk."""
    if not len(chunk):
        return empty
    try:
        result = getattr(model, method)(chunk, **options)
    except ValueError as error:
        raise ValueError(f"Partition {block_id[0]}: {error}") from None
    return np.hstack(result) if isinstance(result, tuple) else result
