"""The parameters of `VCGMM` that say which mixture it is, and its attributes as one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .algorithm.models.families import FAMILIES
from .algorithm.models.mixture import Mixture
from .data import Rows, UnitRows
from .validation import check_choice, check_flag, check_integer, check_number

COVARIANCES = tuple(FAMILIES)
MIXINGS = ("equal", "learned")
METRICS = ("euclidean", "cosine")

#: The kind of the paper's model.
SHARED = {"covariance_type": "isotropic", "mixing": "equal"}

#: Smallest variances, relative to the data's, where none is given.  One that all clusters share is the mean of
#: very many squares and needs hardly any; one of a cluster's own may be that of few points.
SHARED_FLOOR = 1e-14
OWN_FLOOR = 1e-6


@dataclass(frozen=True)
class Kind:
    """Which mixture it is, checked.

    Attributes
    ----------
    covariance_type, mixing : str
    n_shared : int
    reg_covar : float
    reassign : bool
    metric : str
    """

    covariance_type: str
    mixing: str
    n_shared: int
    reg_covar: float
    reassign: bool
    metric: str

    @property
    def is_shared(self) -> bool:
        """The paper's model: one variance and equal weights."""
        return self.covariance_type == "isotropic" and self.mixing == "equal"


def check_kind(model: Any) -> Kind:
    """The parameters of a VCGMM that say which mixture it is; refuses what does not go together."""
    if model.covariance_type in ("full", "tied"):
        raise ValueError(
            f"covariance_type={model.covariance_type!r} is not offered: use sklearn.mixture.GaussianMixture for "
            f"it, or one of {', '.join(map(repr, COVARIANCES))} here."
        )
    covariance_type = check_choice("covariance_type", model.covariance_type, COVARIANCES)
    mixing = "equal" if covariance_type == "isotropic" else "learned"
    if model.mixing is not None:
        mixing = check_choice("mixing", model.mixing, MIXINGS)
    shared = covariance_type == "isotropic" and mixing == "equal"
    if model.reg_covar is None:
        reg_covar = SHARED_FLOOR if covariance_type == "isotropic" else OWN_FLOOR
    else:
        reg_covar = check_number("reg_covar", model.reg_covar, 0.0)
    n_shared = check_integer("n_shared", model.n_shared, 0)
    reassign = check_flag("reassign", model.reassign)
    metric = check_choice("metric", model.metric, METRICS)
    if not shared:
        what = f"covariance_type={covariance_type!r} with mixing={mixing!r}"
        if model.search == "pointwise":
            raise ValueError(
                f"search='pointwise' is the paper's, for one variance and equal weights, and does not know "
                f"{what}: use search='blocked'."
            )
        if metric == "cosine":
            raise ValueError(
                f"metric='cosine' is for one variance and equal weights, and does not know {what}: use "
                f"covariance_type='isotropic' with mixing='equal', or metric='euclidean'."
            )
    return Kind(covariance_type, mixing, n_shared, reg_covar, reassign, metric)


def in_metric(metric: str, rows: Rows) -> Rows:
    """Rows as a metric compares them: "cosine" scales them to length 1 as they are read."""
    return UnitRows(rows) if metric == "cosine" else rows


def attributes_of(covariance_type: str, mixture: Mixture) -> dict[str, np.ndarray]:
    """`weights_` and `covariances_` of a mixture in data coordinates."""
    covariances = FAMILIES[covariance_type].covariances(mixture.variances)
    return {"weights_": mixture.weights, "covariances_": np.ascontiguousarray(covariances)}


def fitted_kind(model: Any) -> tuple[str, str]:
    """`covariance_type` and `mixing` of a fitted VCGMM, whatever its parameters have become since."""
    facts = getattr(model, "_training", {})
    return facts.get("covariance_type", "isotropic"), facts.get("mixing", "equal")


def fitted_metric(model: Any) -> str:
    """`metric` of a fitted VCGMM, whatever its parameter has become since."""
    metric: str = getattr(model, "_training", {}).get("metric", "euclidean")
    return metric


def mixture_of(model: Any) -> Mixture:
    """A fitted VCGMM as a mixture in data coordinates; a cluster that was dropped has weight 0."""
    family = FAMILIES[fitted_kind(model)[0]]
    return Mixture(model.means_, family.from_covariances(model.covariances_, len(model.means_)), model.weights_)


def is_shared(model: Any) -> bool:
    """Whether a fitted VCGMM is the paper's model: one variance and equal weights."""
    return fitted_kind(model) == ("isotropic", "equal")


def n_parameters(model: Any) -> int:
    """Free parameters of a fitted VCGMM: means, variances, and weights unless they are fixed."""
    covariance_type, mixing = fitted_kind(model)
    n_clusters, n_features = model.means_.shape
    variances = FAMILIES[covariance_type].n_parameters(n_clusters, n_features)
    if fitted_metric(model) == "cosine":  # the length of a mean is no free parameter
        n_features -= 1
    return int(n_clusters * n_features) + variances + (n_clusters - 1 if mixing == "learned" else 0)
