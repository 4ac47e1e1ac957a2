"""DaskVCGMM, the scikit-learn face of fits over Dask collections."""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self, cast

import dask
import dask.array as da
import numpy as np
from distributed import Client, default_client
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ..data import ArrayRows
from ..estimator import VCGMM
from ..parallel import Workers
from ..progress import Callback, History, check_callbacks, make_progress
from ..validation import check_choice, check_flag, check_integer, check_threads, check_verbosity
from .fitting import make_collection, run
from .partitions import check_collection, with_known_lengths
from .prediction import each_partition
from .weights import align_weights, check_all

EMS = ("gathered", "distributed")

#: Parameters that `VCGMM` does not have, and their defaults.
OWN = {"client": None, "em": EMS[0], "seeding_size": "auto"}


class DaskVCGMM(VCGMM):
    """`VCGMM` for Dask arrays and dataframes.

    Statistics and coreset are made where the partitions lie.  EM runs on the client, on the gathered coreset, or
    on the workers.  Same data, seed and settings give the same model as `VCGMM`, up to the rounding of sums.  A
    worker that dies during a fit costs time, not the result, where Dask can compute the data again.

    Fits need a `distributed.Client`; predictions are lazy and run wherever Dask computes them.

    Parameters
    ----------
    n_components : int, default=8
        And all other parameters of `VCGMM`.  `n_threads` are those of the client, and with em="distributed" of
        every worker too, where None means as many as the worker has.
    client : distributed.Client or None, default=None
        None: the current one.
    em : {"gathered", "distributed"}, default="gathered"
        Where EM runs.  "gathered": on the client, which holds the coreset.  "distributed": on the workers, which
        hold it; means go out and sums come back.  For coresets too large for one machine, or for all points; not
        with search="pointwise" or a checkpoint.
    seeding_size : "auto" or int, default="auto"
        With em="distributed", points brought to the client to seed the means on: a coreset of the coreset where
        they are fewer.  "auto": all, up to 4 GiB of them.

    Attributes
    ----------
    coreset_ : Coreset
        With em="distributed" its `points` are a lazy Dask array.
    labels_ : (N,) dask array of int32
        With compute_labels=True, lazy.
    means_ : (C, D) float64
        And all other attributes of `VCGMM`.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from vcgmm.distributed import DaskVCGMM
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     X = da.random.default_rng(0).normal(size=(10_000, 4), chunks=(1_000, 4))
    ...     model = DaskVCGMM(n_components=10, random_state=0).fit(X)
    ...     labels = model.predict(X)  # lazy
    ...     labels.compute().shape
    (10000,)
    """

    def __init__(
        self,
        n_components: int = 8,
        *,
        client: Client | None = None,
        em: str = EMS[0],
        seeding_size: Any = "auto",
        **parameters: Any,
    ) -> None:
        super().__init__(n_components, **parameters)
        self.client = client
        self.em = em
        self.seeding_size = seeding_size

    # scikit-learn reads the parameters off the signature: those of VCGMM, whatever they are, and our own.
    _inherited = inspect.signature(VCGMM.__init__)
    __init__.__signature__ = _inherited.replace(  # type: ignore[attr-defined]
        parameters=[
            *_inherited.parameters.values(),
            *(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=OWN[name]) for name in OWN),
        ]
    )
    del _inherited

    def __sklearn_clone__(self) -> Self:
        """An unfitted copy that uses the same client, which cannot be copied."""
        parameters = self.get_params(deep=False)
        client = parameters.pop("client")
        return type(self)(**{name: clone(value, safe=False) for name, value in parameters.items()}, client=client)

    def __getstate__(self) -> dict[str, Any]:
        """Without the client: where a pickle is read, there is another one."""
        state: dict[str, Any] = super().__getstate__()
        return {**state, "client": None}

    # ------------------------------------------------------------------------------------------------ fitting

    def _fit(self, X: Any, sample_weight: Any) -> None:
        callbacks = check_callbacks(self.callbacks)
        distributed = self._check_own()
        client = self._client()
        array = with_known_lengths(check_collection(self, X, reset=True), self._compute)
        weights = align_weights(sample_weight, array, self._compute)
        facts = None if weights is None else check_all(weights, self._compute)
        collection = make_collection(client, array, weights, facts)
        rows = cast("ArrayRows", collection.partitions)  # as much of it as is asked for here
        settings = self._settings(rows)
        check_verbosity(self.verbose)
        check_flag("warm_start", self.warm_start)
        check_flag("compute_labels", self.compute_labels)
        history = History()
        keep = self._unfitted()._checkpointing(rows, history)
        threads, size = check_threads(self.n_threads), self._check_seeding_size()
        with (
            client.as_current(),
            Workers(threads) as workers,
            make_progress(self.verbose, settings.tol) as progress,
        ):
            told: tuple[Callback, ...] = (*callbacks, history)
            result = run(collection, settings, distributed, size, threads, told, progress, workers, keep)
            self._take_over(result, history, rows.n_samples, rows.dtype)
        if self.compute_labels:
            self.labels_ = self.predict(X)
            self.inertia_ = self._error(array, weights)
        self._warn_of_the_end(result, stacklevel=4)

    def _check_own(self) -> bool:
        """Check the parameters that VCGMM does not have; whether EM is distributed."""
        distributed = check_choice("em", self.em, EMS) == "distributed"
        if distributed and self.search == "pointwise":
            raise ValueError(
                "search='pointwise' is not offered with em='distributed': its neighbours depend on the points of "
                "all workers. Use search='blocked', or em='gathered'."
            )
        if distributed and self.checkpoint is not None:
            raise ValueError(
                f"checkpoint={str(self.checkpoint)!r} is not offered with em='distributed': it would hold all of "
                f"the coreset, which is not on one machine. Use checkpoint=None, or em='gathered'."
            )
        return distributed

    def _check_seeding_size(self) -> int | None:
        if isinstance(self.seeding_size, str) and self.seeding_size == "auto":
            return None
        return check_integer("seeding_size", self.seeding_size, 1)

    def _client(self) -> Client:
        """The client of a fit."""
        if self.client is not None:
            return self.client
        try:
            return default_client()
        except ValueError:
            raise ValueError(
                "There is no Dask client: make one with distributed.Client(), or give it as client=."
            ) from None

    def _compute(self, collections: Sequence[Any]) -> list[Any]:
        """Results of Dask objects: by the client that was given, or as Dask is set up."""
        if self.client is not None:
            results: list[Any] = self.client.gather(self.client.compute(list(collections)))
            return results
        return list(dask.compute(*collections))

    # ------------------------------------------------------------------------------------------------ using

    def predict(self, X: Any) -> Any:
        """Nearest of all means for every row, compared in the fit's `dtype`.

        Parameters
        ----------
        X : dask array (N, D) or dask dataframe
            Arrays in memory are predicted at once, as by `VCGMM`.

        Returns
        -------
        (N,) dask array of int32, lazy, in the partitions of X
        """
        if not dask.is_dask_collection(X):
            return super().predict(X)
        return each_partition(self._lean(), self._check(X), "predict", np.empty(0, np.int32))

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

    def score_samples(self, X: Any) -> Any:
        """Exact log density of every row under the mixture, over all components.

        Parameters
        ----------
        X : dask array (N, D) or dask dataframe

        Returns
        -------
        (N,) dask array of float64, lazy
        """
        if not dask.is_dask_collection(X):
            return super().score_samples(X)
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

    # ------------------------------------------------------------------------------------------------ keeping

    def to_local(self) -> VCGMM:
        """The same model as a `VCGMM`: what Dask holds, a distributed coreset or labels, is left out."""
        check_is_fitted(self)
        model = self._unfitted()
        for name, value in vars(self).items():
            fitted = name.endswith("_") or name in ("_frame", "_training")
            held_by_dask = dask.is_dask_collection(getattr(value, "points", value))
            if fitted and not held_by_dask:
                setattr(model, name, value)
        return model

    def save(self, path: str | os.PathLike[str], *, coreset: bool = False) -> None:
        """Write the fitted model to a file that `VCGMM.load` and `DaskVCGMM.load` read.

        Parameters
        ----------
        path : path-like
            Replaced if it exists, as a whole or not at all.
        coreset : bool, default=False
            Write `coreset_` too, which is computed where it is on the workers.
        """
        model = self.to_local()
        if check_flag("coreset", coreset) and hasattr(self, "coreset_") and not hasattr(model, "coreset_"):
            points = self._compute([self.coreset_.points])[0]
            model.coreset_ = replace(self.coreset_, points=points)
        model.save(path, coreset=coreset)

    def _unfitted(self) -> VCGMM:
        """A VCGMM with the same parameters."""
        parameters = self.get_params(deep=False)
        model = VCGMM(**{name: value for name, value in parameters.items() if name not in OWN})
        if hasattr(self, "feature_names_in_"):
            model.feature_names_in_ = self.feature_names_in_
        return model

    def _lean(self) -> VCGMM:
        """The model as it goes to the workers: what predictions need; several tasks run on a worker at once."""
        model = self.to_local().set_params(n_threads=1, verbose=0, callbacks=None, init="two_level")
        for name in ("coreset_", "labels_", "history_", "feature_names_in_"):  # names have been compared by then
            vars(model).pop(name, None)
        return cast("VCGMM", model)
