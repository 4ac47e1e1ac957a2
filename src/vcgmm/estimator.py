"""VCGMM, the scikit-learn face: validate, run, keep."""

from __future__ import annotations

import os
import warnings
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .algorithm.pipeline import Result
from .algorithm.streams.online import Model
from .backends import Backend, backend_of, on_host, predicting_backend_of, rows_of
from .coreset import Coreset, coreset_of, unpack
from .data import ArrayRows, Rows
from .keeping import KeptMixture
from .mixture_parameters import SHARED, attributes_of, check_kind, in_metric
from .parallel import Workers
from .parameters import settings_of
from .persistence import (
    Checkpoint,
    Checkpointing,
    check_checkpoint,
    load_checkpoint,
    make_origin,
    training_facts,
)
from .progress import History, Progress, check_callbacks, make_progress
from .streaming import absorb_rows
from .validation import (
    check_flag,
    check_number,
    check_threads,
    check_verbosity,
    check_weights_of,
)


class VCGMM(KeptMixture):
    """Gaussian mixture with very many components, fitted by variational EM on a coreset.

    The model is a mixture of `n_components` Gaussians: isotropic ones with equal weights and one shared variance,
    or, as `covariance_type` and `mixing` say, with weights and variances of their own.  A fit draws a weighted
    sample of the data, seeds the means on it, and improves them by truncated variational EM, whose cost per
    iteration does not grow with the number of components.

    Parameters
    ----------
    n_components : int, default=8
        Number of clusters, C.
    coreset_size : "auto", int, float or None, default="auto"
        Points drawn for the fit, N'.  A float in (0, 1) is a share of the data, None means all points, "auto"
        256 points per component and at least 65,536, or all points where the data have no more than four times
        as many.  Not smaller than the data: all points.
    covariance_type : {"isotropic", "spherical", "diag", "tied_diag"}, default="isotropic"
        "isotropic": one variance for all clusters; "spherical": one for each; "diag": one for each cluster and
        feature; "tied_diag": one for each feature, shared by all clusters.
    metric : {"euclidean", "cosine"}, default="euclidean"
        "cosine": rows are scaled to length 1 as they are read, here and in all other methods, and means have
        length 1 (spherical k-means, softened).  Distances are then those on the sphere, ||y - mu||^2 =
        2 (1 - cosine); rows of zeros are refused.  Only with one variance and equal weights.
    mixing : {"equal", "learned"} or None, default=None
        Weights of the clusters.  None: equal for "isotropic", learned for the others.
    n_shared : int, default=5
        Iterations with one variance and equal weights for all clusters, before they get what `covariance_type` and
        `mixing` allow.  Nothing else for "isotropic" with equal weights.
    reassign : bool, default=False
        A cluster whose weight or variance collapses is dropped: no point searches it any more, and `active_` says
        so.  True: it gets one new start, in the cluster whose points have the worst bound.  Nothing is dropped
        where all clusters share one variance and equal weights.
    truncation : int, default=5
        Clusters with a non-zero posterior per point, C'.
    n_neighbors : int, default=5
        Clusters known as near to each cluster (itself included), G.
    n_explore : int, default=0
        Random clusters added to each search space (pointwise), or to each cluster's list (blocked).
    search : {"blocked", "pointwise"}, default="blocked"
        "blocked": the points of a cluster share a list of candidates and one matrix product.  "pointwise": each
        point searches the neighbourhoods of its own winners, exactly as in the paper.
    n_candidates : int, default=128
        Length of the shared lists of the blocked search; at least `truncation` and `n_neighbors`.
    init : {"two_level", "afkmc2", "k-means++", "random"} or array of shape (C, D), default="two_level"
        How the means are seeded.  "two_level": coarse cells, clusters inside each, and then some clusters moved
        from where they are missed least to where more are needed (by the blocked search, with a `truncation` of at
        least 2).  With the others seeds stay where they are drawn.
    chain_length : int, default=10
        Markov chain length of init="afkmc2".
    n_warmup : int, default=0
        E-steps before the first one that counts, to find winners and the initial variance.
    tol : float, default=1e-4
        Converged when the relative change of the lower bound falls below it.
    max_iter : int, default=200
        Most EM iterations.
    relaxation : float in (0, 2), default=1.8
        How far an M-step moves the means at most, as a multiple of the way to the weighted means of Eq. (6).
        Above 1 EM needs fewer iterations where clusters overlap; the bound rises all the same.  1: plain EM, as
        in the paper.
    n_init : int, default=1
        Fits from different seeds on one coreset, of which the best lower bound is kept.  One where the means are
        given.
    refine : int, default=0
        Passes over all rows after EM on the coreset, each an EM step of the same kind, at a cost that hardly grows
        with the number of components.  They take away most of the error that a coreset costs.
    reg_covar : float or None, default=None
        Smallest variance, relative to the data's: to each feature's own for "diag" and "tied_diag", else to their
        mean.  None: 1e-14 for "isotropic", 1e-6 for the others.
    warm_start : bool, default=False
        Begin at the means of the last fit, with its mean variance.
    compute_labels : bool, default=False
        Also compute `labels_` and `inertia_` of all rows at the end of a fit.
    random_state : int, RandomState instance or None, default=None
    n_threads : int or None, default=None
        None: all available CPUs.  Results do not depend on it.
    dtype : {None, "float32", "float64"}, default=None
        Type to compute in.  None: float64 for float64 data, else float32.  A GPU computes in float32.
    device : {"cpu", "cuda", "cuda:1", ..., "auto"}, default="cpu"
        Where to fit and predict.  "cuda" is the current GPU, and needs torch: `pip install 'vcgmm[gpu]'`.  Where
        there is none it raises an error; "auto" takes one if there is one that offers what is asked for, else the
        CPU: `device_` says which, and with `verbose` a line also why.  X may be a torch tensor, which is used
        where it lies.  A GPU does not offer yet: search="pointwise", `partial_fit`, dtype="float64".
    precision : {"tf32", "fp32", "bf16"}, default="tf32"
        What a GPU computes products of coordinates in, about the centre of each cluster.  "bf16" is the fastest
        for wide rows, and rows from the host are stored in it too: half the memory.  Rows of fewer than 64
        features are multiplied in "tf32" even then.  The CPU does not mind it.
    verbose : int, default=0
        1: a progress line per step on stderr; 2 or more: also a line per EM iteration.
    callbacks : callable, sequence of callables or None, default=None
        Each is called with an `Iteration` after every EM iteration, and stops the fit by returning True.  Passes
        of refinement count on as iterations, with the bound of all rows.
    checkpoint : path-like or None, default=None
        A file to which a fit writes where it is, from its first iteration to its last, for `VCGMM.resume`; a
        checkpoint of before is replaced.  It holds the coreset, which is a sample of the data, and stays when the
        fit has ended: remove it when you have saved the model.  Passes of `refine` are not in it.
    checkpoint_every : float, default=60.0
        Seconds between two checkpoints; 0: one after every iteration.  Longer where writing one takes long: it
        takes no more than a tenth of the time.

    Attributes
    ----------
    means_ : (C, D) float64
        Cluster centres; `cluster_centers_` is another name for it.  With metric="cosine" of length 1.
    variance_ : float
        The shared variance sigma^2; where clusters or features have their own, the mean over all points and
        features.
    weights_ : (C,) float64
        Mixing proportions; 0 for a cluster that was dropped.
    covariances_ : (C,), (C, D) or (D,) float64
        Variances: by cluster ("isotropic", "spherical"), by cluster and feature ("diag"), or by feature
        ("tied_diag").  `precisions_` are their reciprocals.
    counts_ : (C,) float64
        Weight of the data in every cluster (sum of responsibilities); 0 for a cluster that lost all its points or
        was dropped.  `active_`, (C,) bool, says which hold any.
    lower_bound_ : float
        F after the last E-step: a lower bound of the (coreset's) log-likelihood.
    lower_bounds_ : (n_iter_,) float64
        F after each E-step.
    history_ : dict of (n_iter_,) arrays
        What a callback is told of each iteration: "iteration", "bound", "change", "variance", "seconds" since the
        fit began, and "active", the clusters that hold any weight, where they are counted.
    refine_bounds_ : (refine,) float64
        F of all rows in each pass of refinement, with the parameters it began with; they do not compare with
        `lower_bounds_`, which are the coreset's.
    n_iter_ : int
        Iterations of EM on the coreset.
    converged_ : bool
    coreset_ : Coreset
        The weighted sample that EM ran on: `points`, `weights`, `indices`.  Where all points are used, `points` is
        X itself (with metric="cosine" a copy, scaled).  After `partial_fit` all that is kept of the stream.
    neighbors_ : (C, G) int32
        Near clusters of each cluster, itself first.
    labels_ : (N,) int32
        With compute_labels=True: what `predict` says of every row.
    inertia_ : float
        With compute_labels=True: the quantization error.
    n_distance_evaluations_ : dict
        Distances computed in "coreset", "seeding" and "em", with refine > 0 also in "refine".
    timings_ : dict
        Seconds spent in them.
    n_features_in_ : int
    feature_names_in_ : (D,) array of str
        Where X has names for all its features.

    Examples
    --------
    >>> import numpy as np
    >>> from vcgmm import VCGMM
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(center, size=(500, 2)) for center in (-10, 0, 10)])
    >>> model = VCGMM(n_components=3, random_state=0).fit(X)
    >>> np.sort(model.means_[:, 0].round()).astype(int).tolist()
    [-10, 0, 10]
    """

    def __init__(
        self,
        n_components: int = 8,
        *,
        coreset_size: Any = "auto",
        covariance_type: str = "isotropic",
        mixing: str | None = None,
        metric: str = "euclidean",
        n_shared: int = 5,
        reassign: bool = False,
        truncation: int = 5,
        n_neighbors: int = 5,
        n_explore: int = 0,
        search: str = "blocked",
        n_candidates: int = 128,
        init: Any = "two_level",
        chain_length: int = 10,
        n_warmup: int = 0,
        tol: float = 1e-4,
        max_iter: int = 200,
        relaxation: float = 1.8,
        n_init: int = 1,
        refine: int = 0,
        reg_covar: float | None = None,
        warm_start: bool = False,
        compute_labels: bool = False,
        random_state: Any = None,
        n_threads: int | None = None,
        dtype: Any = None,
        device: str = "cpu",
        precision: str = "tf32",
        verbose: int = 0,
        callbacks: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 60.0,
    ) -> None:
        self.n_components = n_components
        self.coreset_size = coreset_size
        self.covariance_type = covariance_type
        self.mixing = mixing
        self.metric = metric
        self.n_shared = n_shared
        self.reassign = reassign
        self.truncation = truncation
        self.n_neighbors = n_neighbors
        self.n_explore = n_explore
        self.search = search
        self.n_candidates = n_candidates
        self.init = init
        self.chain_length = chain_length
        self.n_warmup = n_warmup
        self.tol = tol
        self.max_iter = max_iter
        self.relaxation = relaxation
        self.n_init = n_init
        self.refine = refine
        self.reg_covar = reg_covar
        self.warm_start = warm_start
        self.compute_labels = compute_labels
        self.random_state = random_state
        self.n_threads = n_threads
        self.dtype = dtype
        self.device = device
        self.precision = precision
        self.verbose = verbose
        self.callbacks = callbacks
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every

    # ------------------------------------------------------------------------------------------------ fitting

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:  # noqa: ARG002
        """Fit the mixture.

        Interrupting a fit leaves the estimator as it was before.

        Parameters
        ----------
        X : array-like of shape (N, D), source or Coreset
            Any real dtype and memory order, memory maps included; no full-size copy in a wider type is made.  A
            source (`vcgmm.open`) is read twice, and only the coreset is kept in memory.  Of a coreset all points
            are taken, with their weights: coreset_size="auto" means all of them, and a smaller number draws from
            them.  A torch tensor is used where it lies: on the host, or with device="cuda" on that GPU.
        y : ignored
        sample_weight : array-like of shape (N,), optional
            Weight w counts like w copies of a row.  A coreset has weights of its own.

        Returns
        -------
        self
        """
        before = dict(self.__dict__)
        try:
            self._fit(X, sample_weight)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:  # noqa: ARG002
        """Go on with a block of rows of a stream, in bounded memory.

        Up to four times `coreset_size` rows are kept as they come ("auto": 256 per component, at least 65,536).
        Of more, a few coresets are kept, each of twice `coreset_size` points, their number growing with the
        logarithm of the stream; all of it is `coreset_`.  With coreset_size=None every row is kept.

        The model is usable after every block, and comes close to a fit to all rows.  A block moves the means by an
        EM step of its own; EM runs on all that is kept whenever the error of all rows has grown by half since it
        ran last.  `lower_bound_`, `history_`, `timings_` and the like tell of that run.

        Until there are `n_components` different rows, they are kept, and there is no model yet.  After `fit` it
        goes on from `coreset_`; `fit` begins anew.  `refine`, `compute_labels`, `warm_start` and `checkpoint` have
        no effect here: rows are gone when the call ends.

        Parameters
        ----------
        X : array-like of shape (N, D), source or Coreset
            It may be overwritten afterwards.  A source is taken as the blocks in which it is read.
        y : ignored
        sample_weight : array-like of shape (N,), optional

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from vcgmm import VCGMM
        >>> rng = np.random.default_rng(0)
        >>> model = VCGMM(n_components=3, random_state=0)
        >>> for _ in range(20):
        ...     model = model.partial_fit(rng.choice([-10, 0, 10], (500, 1)) + rng.normal(size=(500, 1)))
        >>> np.sort(model.means_.ravel().round()).astype(int).tolist(), model.coreset_.n_samples
        ([-10, 0, 10], 10000)
        """
        before = dict(self.__dict__)
        try:
            result = absorb_rows(self, X, sample_weight)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        if result is not None:
            self._warn_of_the_end(result, stacklevel=3)
        return self

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Fit, and return the cluster of every row, (N,) int32."""
        fitted = self.fit(X, y, sample_weight)
        return fitted.predict(unpack(X, sample_weight, there=self.device != "cpu")[0])

    def _fit(self, X: Any, sample_weight: Any) -> None:
        callbacks = check_callbacks(self.callbacks)
        given = X if isinstance(X, Coreset) else None
        backend = backend_of(self)
        X, sample_weight = unpack(X, sample_weight, there=backend.name != "cpu")
        rows = rows_of(self, X, reset=True, on_gpu=backend.name != "cpu")
        weights = check_weights_of(rows, on_host(sample_weight))
        dtype, rows = rows.dtype, in_metric(check_kind(self).metric, rows)
        settings = settings_of(self, rows, drawn=given is not None)
        self._check_enough(rows)
        check_verbosity(self.verbose)
        check_flag("warm_start", self.warm_start)
        check_flag("compute_labels", self.compute_labels)
        history = History()
        keep = self._checkpointing(rows, history, given, backend.name)
        with (
            Workers(check_threads(self.n_threads)) as workers,
            make_progress(self.verbose, settings.tol) as progress,
        ):
            progress.note(backend.remark)
            result = backend.fit(rows, weights, settings, (*callbacks, history), progress, workers, keep)
            self._take_over(result, history, rows.n_samples, dtype, backend)
            self.__dict__.pop("_stream", None)
            self.coreset_ = coreset_of(result.coreset, rows.n_samples, given, on_host)
            if self.compute_labels:
                self._label(rows, weights, workers, progress)
        self._warn_of_the_end(result, stacklevel=4)

    def _checkpointing(
        self, rows: Rows, history: History, given: Coreset | None, where: str = "cpu"
    ) -> Checkpointing | None:
        """What writes checkpoints; None where none are asked for."""
        every = check_number("checkpoint_every", self.checkpoint_every, 0.0)
        if self.checkpoint is None:
            return None
        path = check_checkpoint(self.checkpoint, rows.dtype)
        names = getattr(self, "feature_names_in_", None)
        parameters = self.get_params(deep=False)
        if self.device == "auto":  # it goes on where it began
            parameters["device"] = where
        origin = make_origin(parameters, rows.n_samples, names, given)
        return Checkpointing(path, every, origin, history)

    def _check_enough(self, rows: Rows) -> None:
        """Refuse fewer rows than clusters."""
        if rows.n_samples < self.n_components:
            raise ValueError(
                f"n_samples={rows.n_samples} is fewer than n_components={self.n_components}: ask for fewer "
                f"components, or give more data."
            )

    def _take_step(self, model: Model) -> None:
        """Means and variance as they are after a block of a stream."""
        self.means_, self.variance_, self.counts_ = model.means, model.variance, model.masses
        self.covariances_ = np.full(len(model.means), model.variance)
        self.weights_ = np.full(len(model.means), 1.0 / len(model.means))
        self._training = {**getattr(self, "_training", {}), **SHARED}
        self.neighbors_ = model.neighbors

    def _take_over(
        self,
        result: Result,
        history: History,
        n_samples: int,
        dtype: np.dtype[Any],
        backend: Backend | None = None,
    ) -> None:
        """Turn a finished fit to `n_samples` rows of a type into attributes; without a backend by the CPU."""
        self.means_ = result.means
        self.variance_ = result.variance
        self.weights_ = np.full(len(result.means), 1.0 / len(result.means))
        self.covariances_ = np.full(len(result.means), result.variance)
        checked = check_kind(self)
        kind = {"covariance_type": checked.covariance_type, "mixing": checked.mixing, "metric": checked.metric}
        if result.mixture is not None:
            self.__dict__.update(attributes_of(checked.covariance_type, result.mixture))
        self.counts_ = result.masses
        self.lower_bounds_ = np.array(result.bounds)
        self.lower_bound_ = result.bounds[-1]
        self.refine_bounds_ = np.array(result.refine_bounds, np.float64)
        self.n_iter_ = len(result.bounds)
        self.converged_ = result.converged
        self.neighbors_ = result.neighbors
        self.timings_ = result.timings
        self.n_distance_evaluations_ = result.n_evaluations
        self.history_ = history.of(result.bounds)
        self._frame = result.frame
        where = {"device": "cpu" if backend is None else backend.name}
        self._training = {**training_facts(n_samples, dtype, len(result.coreset)), **kind, **where}
        for name in ("labels_", "inertia_"):
            self.__dict__.pop(name, None)

    def _label(self, rows: Rows, weights: np.ndarray | None, workers: Workers, progress: Progress) -> None:
        """What `predict` says of every row, and the error."""
        progress.start("labels", rows.n_samples)
        evaluator = self._evaluator(predicting_backend_of(self), workers, progress)
        self.labels_, self.inertia_ = evaluator.labels_and_error(rows, weights)
        progress.finish()

    def _warn_of_the_end(self, result: Result, stacklevel: int) -> None:
        """Say so where a fit ended for want of iterations."""
        if not result.converged and not result.stopped:
            warnings.warn(
                f"The fit ended after max_iter={self.max_iter} iterations before the lower bound changed by less "
                f"than tol={self.tol:g} (relative). Raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=stacklevel,
            )

    # ------------------------------------------------------------------------------------------------ keeping

    @classmethod
    def resume(
        cls,
        path: str | os.PathLike[str],
        *,
        callbacks: Any = None,
        verbose: int = 0,
        n_threads: int | None = None,
    ) -> Self:
        """Go on with a fit from its last checkpoint, to the same result, bit by bit, that it would have had.

        The data are not needed: the coreset is in the file.  Only the times in `timings_` and `history_` differ.
        A fit that a callback stopped goes on as if it had not been; of one that has ended the model is returned.
        Further checkpoints are written to the same file.

        Parameters
        ----------
        path : path-like
            What was given as `checkpoint`.
        callbacks, verbose, n_threads : as for a fit
            A fit goes on with all other parameters as they were.

        Returns
        -------
        VCGMM
            Fitted.  Where `compute_labels` was asked for and the coreset is not all of the data, `labels_` and
            `inertia_` are missing, and a warning says so.

        Raises
        ------
        ValueError
            If the file holds something else, comes from another version, or has been changed or cut off.

        Examples
        --------
        >>> import numpy as np, tempfile, pathlib
        >>> from vcgmm import VCGMM
        >>> X = np.random.default_rng(0).normal(size=(1000, 2))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "run.ckpt"
        ...     stopped = VCGMM(5, random_state=0, checkpoint=path, callbacks=lambda _: True).fit(X)
        ...     model = VCGMM.resume(path)
        >>> stopped.n_iter_, bool((model.means_ == VCGMM(5, random_state=0).fit(X).means_).all())
        (1, True)
        """
        saved = load_checkpoint(path, list(cls().get_params(deep=False)))
        given = {"callbacks": callbacks, "verbose": verbose, "n_threads": n_threads, "checkpoint": path}
        model = cls(**{**saved.parameters, **given})
        model._go_on(saved, path)
        return model

    def _go_on(self, saved: Checkpoint, path: str | os.PathLike[str]) -> None:
        """Fit from a checkpoint on."""
        problem, backend = saved.snapshot.problem, backend_of(self)
        rows = ArrayRows(problem.coreset.points)
        self.n_features_in_ = rows.n_features
        if saved.feature_names is not None:
            self.feature_names_in_ = np.array(saved.feature_names, object)
        callbacks = check_callbacks(self.callbacks)
        check_verbosity(self.verbose)
        history = History()
        for facts in saved.history:
            history(facts)
        every = check_number("checkpoint_every", self.checkpoint_every, 0.0)
        origin = make_origin(self.get_params(deep=False), saved.n_samples, saved.feature_names, saved.given)
        keep = Checkpointing(path, every, origin, history)
        with (
            Workers(check_threads(self.n_threads)) as workers,
            make_progress(self.verbose, problem.settings.tol) as progress,
        ):
            result = backend.resume(
                saved.snapshot,
                (*callbacks, history),
                progress,
                workers,
                keep,
                complete=rows.n_samples == saved.n_samples,
            )
            self._take_over(result, history, saved.n_samples, rows.dtype, backend)
            self.coreset_ = coreset_of(result.coreset, saved.n_samples, saved.given, on_host)
            complete = rows.n_samples == saved.n_samples
            if problem.settings.refine > 0 and not complete:
                warnings.warn(
                    f"refine={self.refine}, but a checkpoint holds the coreset only, {rows.n_samples:,} of "
                    f"{saved.n_samples:,} rows: the model is not refined. Fit with warm_start=True to refine it.",
                    UserWarning,
                    stacklevel=3,
                )
            if self.compute_labels and complete:
                self._label(rows, result.coreset.weights, workers, progress)
            elif self.compute_labels:
                warnings.warn(
                    f"compute_labels=True, but a checkpoint holds the coreset only, {rows.n_samples:,} of "
                    f"{saved.n_samples:,} rows: the model has no labels_ and inertia_. Use predict and "
                    f"quantization_error.",
                    UserWarning,
                    stacklevel=3,
                )
        self._warn_of_the_end(result, stacklevel=4)
