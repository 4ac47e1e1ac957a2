"""DaskVCGMM, the scikit-learn face of fits over Dask collections."""

from __future__ import annotations

import inspect
import os
from dataclasses import replace
from typing import Any, NoReturn, Self, cast

from distributed import Client, default_client
from sklearn.base import clone

from ..backends import check_device
from ..coreset import coreset_of
from ..data import Rows
from ..estimator import VCGMM
from ..mixture_parameters import check_kind
from ..parallel import Workers
from ..parameters import settings_of
from ..progress import Callback, History, check_callbacks, make_progress
from ..validation import check_choice, check_flag, check_integer, check_threads, check_verbosity
from .fitting import make_collection, run
from .partitions import check_collection, in_unit_length, with_known_lengths
from .prediction import DaskPredictions
from .weights import align_weights, check_all

EMS = ("gathered", "distributed")

#: Parameters that `VCGMM` does not have, and their defaults.
OWN = {"client": None, "em": EMS[0], "seeding_size": "auto"}


class DaskVCGMM(DaskPredictions):
    """`VCGMM` for Dask arrays and dataframes.

    Statistics and coreset are made where the partitions lie.  EM runs on the client, on the gathered coreset, or
    on the workers.  Same data, seed and settings give the same model as `VCGMM`, up to the rounding of sums.  A
    worker that dies during a fit costs time, not the result, where Dask can compute the data again.

    Fits need a `distributed.Client`; predictions are lazy and run wherever Dask computes them.

    Parameters
    ----------
    n_components : int, default=8
        And all other parameters of `VCGMM`, but `refine`.  `n_threads` are those of the client, and with
        em="distributed" of every worker too, where None means as many as the worker has.
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
        scaled = in_unit_length(array) if check_kind(self).metric == "cosine" else array
        collection = make_collection(client, scaled, weights, facts)
        rows = cast("Rows", collection.partitions)  # as much of it as is asked for here
        settings = settings_of(self, rows)
        self._check_enough(rows)
        check_verbosity(self.verbose)
        check_flag("warm_start", self.warm_start)
        check_flag("compute_labels", self.compute_labels)
        history = History()
        keep = self.unfitted()._checkpointing(rows, history, None)
        threads, size = check_threads(self.n_threads), self._check_seeding_size()
        with (
            client.as_current(),
            Workers(threads) as workers,
            make_progress(self.verbose, settings.tol) as progress,
        ):
            told: tuple[Callback, ...] = (*callbacks, history)
            result = run(collection, settings, distributed, size, threads, told, progress, workers, keep)
            self._take_over(result, history, rows.n_samples, array.dtype)
            self.coreset_ = coreset_of(result.coreset, rows.n_samples, None)
        if self.compute_labels:
            self.labels_ = self.predict(X)
            self.inertia_ = self._error(array, weights)
        self._warn_of_the_end(result, stacklevel=4)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> NoReturn:
        """Not offered: partitions are blocks already."""
        raise NotImplementedError(
            "DaskVCGMM has no partial_fit: fit reads a collection partition by partition. For a stream of blocks "
            "use VCGMM.partial_fit."
        )

    def _check_own(self) -> bool:
        """Check the parameters that VCGMM does not have; whether EM is distributed."""
        distributed = check_choice("em", self.em, EMS) == "distributed"
        if check_integer("refine", self.refine, 0):
            raise ValueError(
                f"refine={self.refine} is not offered for Dask collections. Use refine=0 and a larger "
                f"coreset_size, or coreset_size=None with em='distributed': EM then runs on all rows."
            )
        if check_device(self)[0] not in ("cpu", "auto"):
            raise ValueError(
                f"device={self.device!r} is not offered for Dask collections: use device='cpu', or VCGMM on the "
                f"rows of one machine."
            )
        if distributed and self.search == "pointwise":
            raise ValueError(
                "search='pointwise' is not offered with em='distributed': its neighbours depend on the points of "
                "all workers. Use search='blocked', or em='gathered'."
            )
        kind = check_kind(self)
        if distributed and not kind.is_shared:
            raise ValueError(
                f"covariance_type={kind.covariance_type!r} with mixing={kind.mixing!r} is not offered yet with "
                f"em='distributed': use em='gathered', or covariance_type='isotropic' with mixing='equal'."
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

    # ------------------------------------------------------------------------------------------------ keeping

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
