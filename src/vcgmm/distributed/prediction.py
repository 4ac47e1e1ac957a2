"""Fitted means applied to Dask collections: lazily, partition by partition."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any, cast

import dask
import dask.array as da
import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from ..estimator import VCGMM
from ..prediction import PREDICTIONS
from ..validation import check_choice, check_integer
from .partitions import check_collection, with_known_lengths
from .weights import align_weights, check_all


def each_partition(model: VCGMM, array: da.Array, called: str, empty: Any, **options: Any) -> da.Array:
    """A method of a local model on every chunk of an array.

    Parameters
    ----------
    model : VCGMM
        Fitted, and lean: it goes to the workers.
    array : dask array (N, D)
        All features in one chunk; the lengths of chunks need not be known.
    called : {"predict", "nearest", "predict_proba", "score_samples"}
        The method.  Where it returns a pair, both come side by side in one array.
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
    return array.map_blocks(on_chunk, sent, called=called, options=options, empty=empty, **kind, **shape)


def on_chunk(
    chunk: np.ndarray, model: VCGMM, called: str, options: dict[str, Any], empty: Any, block_id: Any = None
) -> Any:
    """A method of a local model on one chunk."""
    if not len(chunk):
        return empty
    try:
        result = getattr(model, called)(chunk, **options)
    except ValueError as error:
        raise ValueError(f"Partition {block_id[0]}: {error}") from None
    return np.hstack(result) if isinstance(result, tuple) else result


def refuse_output(output: str | os.PathLike[str] | None) -> None:
    """Results for a Dask collection are one themselves, which Dask can write."""
    if output is not None:
        raise ValueError(
            f"output={str(output)!r} is not offered for Dask collections: write what is returned without it, for "
            f"example with dask.array.to_zarr."
        )


class DaskPredictions(VCGMM):
    """What a fitted model does with Dask collections, and without Dask."""

    client: Any = None

    def _compute(self, collections: Sequence[Any]) -> list[Any]:
        """Results of Dask objects: by the client that was given, or as Dask is set up."""
        if self.client is not None:
            results: list[Any] = self.client.gather(self.client.compute(list(collections)))
            return results
        return list(dask.compute(*collections))

    def predict(self, X: Any, method: str = "exact", *, output: str | os.PathLike[str] | None = None) -> Any:
        """Nearest of all means for every row, compared in the fit's `dtype`.

        Parameters
        ----------
        X : dask array (N, D) or dask dataframe
            Arrays in memory are predicted at once, as by `VCGMM`.
        method : {"exact", "approximate"}, default="exact"
        output : path-like, optional
            For rows in memory or in a file only, as for `VCGMM`.

        Returns
        -------
        (N,) dask array of int32, lazy, in the partitions of X
        """
        if not dask.is_dask_collection(X):
            return super().predict(X, method) if output is None else super().predict(X, method, output=output)
        refuse_output(output)
        check_choice("method", method, PREDICTIONS)
        return each_partition(self._lean(), self._check(X), "predict", np.empty(0, np.int32), method=method)

    def nearest(self, X: Any, k: int = 1) -> Any:
        """The k nearest of all means for every row.

        Parameters
        ----------
        X : dask array (N, D) or dask dataframe
        k : int, default=1

        Returns
        -------
        distances : (N, k) dask array of float64, Euclidean, ascending
        ids : (N, k) dask array of int32
            Lazy; computed together, rows are searched once.
        """
        if not dask.is_dask_collection(X):
            return super().nearest(X, k)
        array = self._check(X)
        k = min(check_integer("k", k, 1), len(self.means_))
        both = each_partition(self._lean(), array, "nearest", np.empty((0, 2 * k)), k=k)
        return both[:, :k], both[:, k:].astype(np.int32)

    def predict_proba(self, X: Any) -> Any:
        """Truncated posteriors over the `truncation` nearest means.

        Parameters
        ----------
        X : dask array (N, D) or dask dataframe

        Returns
        -------
        (N, C) dask array, lazy, of sparse CSR chunks
        """
        if not dask.is_dask_collection(X):
            return super().predict_proba(X)
        array = self._check(X)
        return each_partition(self._lean(), array, "predict_proba", sparse.csr_array((0, len(self.means_))))

    def score_samples(self, X: Any, *, output: str | os.PathLike[str] | None = None) -> Any:
        """Exact log density of every row under the mixture, over all components.

        Parameters
        ----------
        X : dask array (N, D) or dask dataframe
        output : path-like, optional
            For rows in memory or in a file only, as for `VCGMM`.

        Returns
        -------
        (N,) dask array of float64, lazy
        """
        if not dask.is_dask_collection(X):
            return super().score_samples(X) if output is None else super().score_samples(X, output=output)
        refuse_output(output)
        return each_partition(self._lean(), self._check(X), "score_samples", np.empty(0))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean log density of the rows, weighted where weights are given; computed at once.

        Parameters
        ----------
        X : dask array (N, D) or dask dataframe
        y : ignored
        sample_weight : Dask array or series, array-like, number or None

        Returns
        -------
        float
        """
        if not dask.is_dask_collection(X):
            return super().score(X, y, sample_weight)
        total, weight = self._density(X, sample_weight)
        return total / weight

    def quantization_error(self, X: Any, sample_weight: Any = None) -> float:
        """Weighted sum of squared distances to the nearest mean, computed at once.

        Parameters
        ----------
        X : dask array (N, D) or dask dataframe
        sample_weight : Dask array or series, array-like, number or None

        Returns
        -------
        float
        """
        if not dask.is_dask_collection(X):
            return super().quantization_error(X, sample_weight)
        array = with_known_lengths(self._check(X), self._compute)
        return self._error(array, align_weights(sample_weight, array, self._compute))

    def bic(self, X: Any) -> float:
        """Bayesian information criterion on X; lower is better."""
        if not dask.is_dask_collection(X):
            return super().bic(X)
        total, n_samples = self._density(X, None)
        return self._n_parameters() * math.log(n_samples) - 2 * total

    def aic(self, X: Any) -> float:
        """Akaike information criterion on X; lower is better."""
        if not dask.is_dask_collection(X):
            return super().aic(X)
        total, _ = self._density(X, None)
        return 2 * self._n_parameters() - 2 * total

    def _check(self, X: Any) -> da.Array:
        """A collection to predict, as an array."""
        check_is_fitted(self)
        return check_collection(self, X, reset=False)

    def _density(self, X: Any, sample_weight: Any) -> tuple[float, float]:
        """Weighted sum of the log densities, and the total weight."""
        array = with_known_lengths(self._check(X), self._compute)
        weights = align_weights(sample_weight, array, self._compute)
        densities = each_partition(self._lean(), array, "score_samples", np.empty(0))
        if weights is None:
            return float(self._compute([densities.sum()])[0]), float(array.shape[0])
        return float(self._compute([(weights * densities).sum()])[0]), check_all(weights, self._compute).total

    def _error(self, array: da.Array, weights: da.Array | None) -> float:
        """Quantization error of an array with known lengths."""
        distances = each_partition(self._lean(), array, "nearest", np.empty((0, 2)), k=1)[:, 0] ** 2
        if weights is not None:
            check_all(weights, self._compute)
            distances = weights * distances
        return float(self._compute([distances.sum()])[0])

    def to_local(self) -> VCGMM:
        """The same model as a `VCGMM`: what Dask holds, a distributed coreset or labels, is left out."""
        check_is_fitted(self)
        model = self.unfitted()
        for name, value in vars(self).items():
            fitted = name.endswith("_") or name in ("_frame", "_training")
            held_by_dask = dask.is_dask_collection(getattr(value, "points", value))
            if fitted and not held_by_dask:
                setattr(model, name, value)
        return model

    def unfitted(self) -> VCGMM:
        """A VCGMM with the same parameters."""
        parameters = self.get_params(deep=False)
        model = VCGMM(**{name: parameters[name] for name in VCGMM().get_params(deep=False)})
        if hasattr(self, "feature_names_in_"):
            model.feature_names_in_ = self.feature_names_in_
        return model

    def _lean(self) -> VCGMM:
        """The model as it goes to the workers: what predictions need; several tasks run on a worker at once."""
        model = self.to_local().set_params(n_threads=1, verbose=0, callbacks=None, init="two_level")
        for name in ("coreset_", "labels_", "history_", "feature_names_in_"):  # names have been compared by then
            vars(model).pop(name, None)
        return cast("VCGMM", model)
