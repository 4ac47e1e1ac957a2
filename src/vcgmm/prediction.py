"""A fitted mixture at work: labels, posteriors, densities, errors, samples."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .algorithm.coreset.frame import Frame
from .algorithm.models.families import FAMILIES
from .algorithm.passes.routing import finds_its_way
from .backends import Backend, like, on_host, predicting_backend_of, rows_of
from .coreset import unpack
from .data import ArrayRows, Rows
from .data.appending import appending
from .evaluation import FEW_COMPONENTS, gathered
from .mixture_parameters import fitted_kind, fitted_metric, in_metric, is_shared, mixture_of, n_parameters
from .parallel import Workers
from .progress import Progress, make_progress
from .validation import check_choice, check_integer, check_threads, check_weights_of

PREDICTIONS = ("exact", "approximate")

#: What a fit computes only where it is asked for, and what gives it later.
ON_DEMAND = {"labels_": "predict(X)", "inertia_": "quantization_error(X)"}


class FittedMixture(DensityMixin, BaseEstimator):
    """What a mixture does once it has been fitted; `VCGMM` adds the fitting, and says what the attributes are."""

    truncation: int
    random_state: Any
    n_threads: int | None
    device: str
    verbose: int
    means_: np.ndarray
    variance_: float
    covariances_: np.ndarray
    counts_: np.ndarray
    neighbors_: np.ndarray
    _frame: Frame

    def _check_fitted(self) -> None:
        """Refuse to be used before there is a model."""
        if not hasattr(self, "means_") and hasattr(self, "_stream"):
            raise NotFittedError(
                f"This VCGMM has seen {self.coreset_.n_samples} rows, and fewer than n_components="
                f"{self.n_components} different ones: give partial_fit more rows, or ask for fewer components."
            )
        check_is_fitted(self)

    def __sklearn_is_fitted__(self) -> bool:
        """A stream of too few rows has attributes, but no model yet."""
        return hasattr(self, "means_")

    if not TYPE_CHECKING:  # or every name would be one

        def __getattr__(self, name: str) -> Any:
            """Say how to come by what is computed on demand."""
            if name in ON_DEMAND and hasattr(self, "means_"):
                raise AttributeError(
                    f"This {type(self).__name__} was fitted without {name}: set compute_labels=True before the "
                    f"fit, or call {ON_DEMAND[name]}."
                )
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def cluster_centers_(self) -> np.ndarray:
        """Another name for `means_`, so that code written for KMeans works."""
        return self.means_

    @property
    def precisions_(self) -> np.ndarray:
        """Reciprocals of `covariances_`."""
        precisions: np.ndarray = 1.0 / self.covariances_
        return precisions

    @property
    def active_(self) -> np.ndarray:
        """Clusters that hold any weight, (C,) bool."""
        active: np.ndarray = self.counts_ > 0.0
        return active

    @property
    def device_(self) -> str:
        """Where the model was fitted: "cpu", or "cuda:0" and the like."""
        device: str = getattr(self, "_training", {}).get("device", "cpu")
        return device

    @overload
    def predict(self, X: Any, method: str = ...) -> np.ndarray: ...

    @overload
    def predict(self, X: Any, method: str = ..., *, output: str | os.PathLike[str]) -> None: ...

    def predict(
        self, X: Any, method: str = "exact", *, output: str | os.PathLike[str] | None = None
    ) -> np.ndarray | None:
        """The cluster with the largest posterior for every row.

        With one variance and equal weights that is the nearest of all means, compared in the fit's `dtype`; for
        other models joints are compared, in float64.

        Parameters
        ----------
        X : array-like of shape (N, D), source or tensor
        method : {"exact", "approximate"}, default="exact"
            "approximate": every row goes from a landmark to nearer and nearer means, along the neighbours of each,
            at a cost that does not grow with `n_components`.  Most rows end at the nearest mean, the others near
            it; which do may depend on the rows they come with.  The first call builds what it needs, later ones
            use it again.  Up to 2,048 components (4,096 from 16 features on) are all compared, so that the result
            is exact.  Where clusters have weights or variances of their own, that is up to 1,024, and rows go on
            from there to larger and larger joints.
        output : path-like, optional
            A file to write the labels to, part by part, instead of returning them: `.npy`, `.parquet`, `.csv` or
            `.tsv`.  It is there as a whole or not at all; an existing one is replaced.

        Returns
        -------
        (N,) int32, or None with `output`; a tensor where X is one
        """
        rows = self._check_predict(X)
        check_choice("method", method, PREDICTIONS)
        with self._evaluate("predict", rows) as evaluator:
            if method == "exact" or self._compares_all():
                pieces = evaluator.label_pieces(rows)
            else:
                pieces = evaluator.near_label_pieces(rows, evaluator.routing(self, self.neighbors_))
            if output is None:
                labels: np.ndarray = like(X, gathered(pieces, np.empty(rows.n_samples, np.int32)))
                return labels
            with appending(output, rows.n_samples, np.dtype(np.int32), "label") as append:
                for piece in pieces:
                    append(piece)
        return None

    def _compares_all(self) -> bool:
        """Whether all components are compared, whatever the method: where they are few that takes no longer."""
        n_components, n_features = self.means_.shape
        if is_shared(self):
            return not finds_its_way(n_components, n_features)
        return bool(n_components <= FEW_COMPONENTS)

    def nearest(self, X: Any, k: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """The k nearest of all means for every row, compared in the fit's `dtype`.

        Parameters
        ----------
        X : array-like of shape (N, D), or source
        k : int, default=1
            More than there are components means all of them.

        Returns
        -------
        distances : (N, k) float64, Euclidean, ascending; with metric="cosine" between rows and means of length 1,
            d = sqrt(2 (1 - cosine))
        ids : (N, k) int32
        """
        rows = self._check_predict(X)
        k = min(check_integer("k", k, 1), len(self.means_))
        with self._evaluate("nearest", rows) as evaluator:
            ids, distances = evaluator.k_nearest(rows, k)
        return np.sqrt(distances), ids

    def predict_proba(self, X: Any) -> sparse.csr_array:
        """Truncated posteriors s_c(n) (Eq. 3) over the `truncation` clusters with the largest.

        Parameters
        ----------
        X : array-like of shape (N, D), or source

        Returns
        -------
        (N, C) sparse CSR array with `truncation` entries a row, each row summing to 1
        """
        rows = self._check_predict(X)
        k = min(check_integer("truncation", self.truncation, 1), len(self.means_))
        with self._evaluate("predict", rows) as evaluator:
            if not is_shared(self):
                ids, differences = evaluator.largest(rows, k)
            else:
                ids, distances = evaluator.k_nearest(rows, k)
                differences = (distances[:, :1] - distances) / (2 * self.variance_)
        k = ids.shape[1]  # fewer where clusters have been dropped
        shares = np.exp(differences)
        shares /= shares.sum(axis=1, keepdims=True)
        order = np.argsort(ids, axis=1)
        ids = np.take_along_axis(ids, order, axis=1)
        shares = np.take_along_axis(shares, order, axis=1)
        starts = np.arange(0, rows.n_samples * k + 1, k)
        return sparse.csr_array((shares.ravel(), ids.ravel(), starts), shape=(rows.n_samples, len(self.means_)))

    @overload
    def score_samples(self, X: Any) -> np.ndarray: ...

    @overload
    def score_samples(self, X: Any, *, output: str | os.PathLike[str]) -> None: ...

    def score_samples(self, X: Any, *, output: str | os.PathLike[str] | None = None) -> np.ndarray | None:
        """Exact log density of every row under the mixture (Eq. 1), over all components.

        With metric="cosine" it is that of the Gaussians at the row scaled to length 1: a density in all of space,
        which ranks rows as one on the sphere does.

        Parameters
        ----------
        X : array-like of shape (N, D), or source
        output : path-like, optional
            A file to write them to instead, as in `predict`.

        Returns
        -------
        (N,) float64, or None with `output`; a tensor where X is one
        """
        rows = self._check_predict(X)
        with self._evaluate("score", rows) as evaluator:
            pieces = (densities for _, densities in evaluator.log_density_parts(rows, self.variance_))
            if output is None:
                result: np.ndarray = like(X, gathered(pieces, np.empty(rows.n_samples)))
                return result
            with appending(output, rows.n_samples, np.dtype(np.float64), "log_density") as append:
                for densities in pieces:
                    append(densities)
        return None

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:  # noqa: ARG002
        """Mean log density of the rows, weighted where weights are given.

        Parameters
        ----------
        X : array-like of shape (N, D), source or Coreset
        y : ignored
        sample_weight : array-like of shape (N,), optional

        Returns
        -------
        float
        """
        X, sample_weight = unpack(X, sample_weight, there=self.device != "cpu")
        rows = self._check_predict(X)
        weights = check_weights_of(rows, on_host(sample_weight))
        with self._evaluate("score", rows) as evaluator:
            return float(evaluator.mean_log_density(rows, self.variance_, weights))

    def quantization_error(self, X: Any, sample_weight: Any = None) -> float:
        """Weighted sum of squared distances to the nearest mean, in float64.

        With metric="cosine" it is 2 (1 - cosine) that is summed.

        Parameters
        ----------
        X : array-like of shape (N, D), source or Coreset
        sample_weight : array-like of shape (N,), optional

        Returns
        -------
        float
        """
        X, sample_weight = unpack(X, sample_weight, there=self.device != "cpu")
        rows = self._check_predict(X)
        weights = check_weights_of(rows, on_host(sample_weight))
        with self._evaluate("error", rows) as evaluator:
            return float(evaluator.error(rows, weights))

    def sample(self, n_samples: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Draw points from the mixture; with metric="cosine" they are scaled to length 1, as rows are.

        Parameters
        ----------
        n_samples : int, default=1

        Returns
        -------
        X : (n_samples, D) float64
        labels : (n_samples,) int32, the component of each
        """
        self._check_fitted()
        n_samples = check_integer("n_samples", n_samples, 1)
        rng = check_random_state(self.random_state)
        mixture = mixture_of(self)
        if is_shared(self):
            labels = rng.randint(len(self.means_), size=n_samples).astype(np.int32)
        else:
            labels = rng.choice(len(self.means_), size=n_samples, p=mixture.weights).astype(np.int32)
        noise = rng.standard_normal((n_samples, self.means_.shape[1]))
        drawn = self.means_[labels] + np.sqrt(mixture.variances[labels]) * noise
        return in_metric(fitted_metric(self), ArrayRows(drawn)).all(), labels

    def bic(self, X: Any) -> float:
        """Bayesian information criterion on X; lower is better."""
        densities = self.score_samples(X)
        return float(self._n_parameters() * math.log(len(densities)) - 2 * densities.sum())

    def aic(self, X: Any) -> float:
        """Akaike information criterion on X; lower is better."""
        densities = self.score_samples(X)
        return float(2 * self._n_parameters() - 2 * densities.sum())

    def _n_parameters(self) -> int:
        """Free parameters: the means, the variances, and mixing proportions unless they are fixed."""
        return n_parameters(self)

    def _check_predict(self, X: Any) -> Rows:
        self._check_fitted()
        return in_metric(fitted_metric(self), rows_of(self, X, reset=False, on_gpu=self.device != "cpu"))

    @contextmanager
    def _evaluate(self, step: str, rows: Rows) -> Iterator[Any]:
        """The fitted means ready for exact searches, with threads and progress."""
        with Workers(check_threads(self.n_threads)) as workers, make_progress(self.verbose) as progress:
            backend = predicting_backend_of(self)
            progress.note(backend.remark)
            progress.start(step, rows.n_samples)
            yield self._evaluator(backend, workers, progress)
            progress.finish()

    def _evaluator(self, backend: Backend, workers: Workers, progress: Progress) -> Any:
        if is_shared(self):
            return backend.evaluator(self.means_, self._frame, workers, progress.advance)
        family = FAMILIES[fitted_kind(self)[0]]
        return backend.joint_evaluator(mixture_of(self), family, self._frame, workers, progress.advance)
