"""Sample weights beside Dask collections: cut like the rows, and checked where they lie."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import Any

import dask
import dask.array as da
import numpy as np

from ..validation import blame, check_kind, check_weights
from .partitions import Compute, with_known_lengths


@dataclass(frozen=True)
class WeightFacts:
    """Of the weights of one partition, or of all.

    Attributes
    ----------
    largest, total : float
    n_positive : int
    bad : (int, float) or None
        The first one that is not valid: row and value.
    """

    largest: float
    total: float
    n_positive: int
    bad: tuple[int, float] | None


def align_weights(sample_weight: Any, array: da.Array, compute: Compute) -> da.Array | None:
    """Weights as a float64 Dask array (N,) in the chunks of the rows; None where none are given.

    Parameters
    ----------
    sample_weight : Dask array or series, array-like, number or None
    array : dask array (N, D) with known chunks
    compute : callable
    """
    if sample_weight is None:
        return None
    n_samples, chunks = array.shape[0], (array.chunks[0],)
    if isinstance(sample_weight, numbers.Real):
        return da.full(n_samples, float(sample_weight), chunks=chunks, dtype=np.float64)
    if not dask.is_dask_collection(sample_weight):
        return da.from_array(check_weights(sample_weight, n_samples), chunks=chunks)
    weights = sample_weight.to_dask_array() if hasattr(sample_weight, "to_dask_array") else sample_weight
    with blame("sample_weight", "Give one non-negative number per row."):
        check_kind(weights)
    if weights.ndim == 1:
        weights = with_known_lengths(weights, compute)
    if weights.shape != (n_samples,):
        raise ValueError(
            f"sample_weight has shape {weights.shape}, but X has {n_samples} rows: give one weight per row."
        )
    return weights.astype(np.float64).rechunk(chunks)


def check_partition(weights: np.ndarray) -> WeightFacts:
    """Facts of the weights of one partition."""
    bad = ~np.isfinite(weights) | (weights < 0)
    if bad.any():
        row = int(np.argmax(bad))
        return WeightFacts(0.0, 0.0, 0, (row, float(weights[row])))
    with np.errstate(over="ignore"):
        total = float(weights.sum())
    return WeightFacts(float(weights.max(initial=0.0)), total, int(np.count_nonzero(weights)), None)


def check_all(weights: da.Array, compute: Compute) -> WeightFacts:
    """Facts of all weights; refuses those that are not valid, by the row in the whole collection."""
    check = dask.delayed(check_partition, pure=False)
    parts: list[WeightFacts] = compute([check(block) for block in weights.to_delayed().ravel()])
    for first, part in zip(np.cumsum([0, *weights.chunks[0]]), parts, strict=False):
        if part.bad is not None:
            row, value = part.bad
            raise ValueError(
                f"sample_weight[{first + row}]={value} is not valid: weights are finite and not negative. "
                f"Use 0 for a row that should not count."
            )
    facts = WeightFacts(
        max(part.largest for part in parts),
        math.fsum(part.total for part in parts) if all(math.isfinite(part.total) for part in parts) else math.inf,
        sum(part.n_positive for part in parts),
        None,
    )
    if not facts.n_positive:
        raise ValueError("sample_weight is zero for every row: give a positive weight to at least one row.")
    if not math.isfinite(facts.total):
        raise ValueError("sample_weight sums to infinity: divide the weights by their largest value.")
    return facts
