"""Fitted models as objects of other libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .mixture_parameters import fitted_kind, fitted_metric, mixture_of
from .validation import check_choice

if TYPE_CHECKING:
    from sklearn.mixture import GaussianMixture
    from sklearn.pipeline import Pipeline

INDEXES = ("flat", "ivf")


def for_sklearn(model: Any) -> GaussianMixture | Pipeline:
    """scikit-learn's GaussianMixture of a fitted VCGMM; for the cosine metric, one that scales rows first."""
    mixture = gaussian_mixture(model)
    if fitted_metric(model) != "cosine":
        return mixture
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import Normalizer

    scaling = Normalizer()
    scaling.n_features_in_ = model.n_features_in_
    if hasattr(model, "feature_names_in_"):
        scaling.feature_names_in_ = mixture.feature_names_in_
        del mixture.feature_names_in_  # scaled rows have no names
    return make_pipeline(scaling, mixture)


def gaussian_mixture(model: Any) -> GaussianMixture:
    """scikit-learn's spherical or diagonal GaussianMixture with the parameters of a fitted VCGMM."""
    from sklearn.mixture import GaussianMixture  # takes a while, and few need it

    ours = mixture_of(model)
    diagonal = fitted_kind(model)[0] in ("diag", "tied_diag")
    mixture = GaussianMixture(
        n_components=len(model.means_),
        covariance_type="diag" if diagonal else "spherical",
        tol=model.tol,
        max_iter=model.max_iter,
        n_init=model.n_init,
        random_state=model.random_state,
    )
    # A cluster that was dropped has no weight, of which there is no logarithm.
    mixture.weights_ = np.maximum(ours.weights, np.finfo(np.float64).tiny)
    mixture.means_ = model.means_.copy()
    mixture.covariances_ = (ours.variances if diagonal else ours.variances[:, 0]).copy()
    mixture.precisions_ = 1.0 / mixture.covariances_
    mixture.precisions_cholesky_ = np.sqrt(mixture.precisions_)
    mixture.converged_ = model.converged_
    mixture.n_iter_ = model.n_iter_
    # Ours is a sum over the data's weight, scikit-learn's a mean.
    total_weight = model.counts_.sum()
    mixture.lower_bounds_ = (model.lower_bounds_ / total_weight).tolist()
    mixture.lower_bound_ = float(model.lower_bound_ / total_weight)
    mixture.n_features_in_ = model.n_features_in_
    if hasattr(model, "feature_names_in_"):
        mixture.feature_names_in_ = model.feature_names_in_.copy()
    return mixture


def faiss_index(means: np.ndarray, kind: str, metric: str = "euclidean") -> Any:
    """A faiss index over centres.

    Parameters
    ----------
    means : (C, D) float64
        Of length 1 for metric="cosine": then the nearest is the one with the largest inner product, however long
        the vector is that is looked up.
    kind : {"flat", "ivf"}
    metric : {"euclidean", "cosine"}

    Raises
    ------
    ImportError
        If faiss is not installed.
    """
    check_choice("kind", kind, INDEXES)
    try:
        import faiss
    except ImportError:
        raise ImportError("to_faiss needs faiss, which is not installed: pip install faiss-cpu") from None
    n_clusters, n_features = means.shape
    inner = metric == "cosine"
    quantizer = faiss.IndexFlatIP(n_features) if inner else faiss.IndexFlatL2(n_features)
    quantizer.add(np.ascontiguousarray(means, dtype=np.float32))
    if kind == "flat":
        return quantizer
    measure = faiss.METRIC_INNER_PRODUCT if inner else faiss.METRIC_L2
    index = faiss.IndexIVFFlat(quantizer, n_features, n_clusters, measure)
    # Its lists are our clusters: there is nothing left to train.
    index.is_trained = True
    return index
