"""What a fit's settings say of its model."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..coreset.frame import Frame
from ..estep import Steps
from ..random import generator
from ..settings import Settings
from .families import FAMILIES
from .own import Rules
from .shared import SharedModel
from .sphere import Sphere, SphereModel

#: What the random numbers of this file are for, beside those of `attempts`.
SOWING = 16

#: Variances, in local coordinates, whose reciprocals and their multiples can be computed with.
SMALLEST_VARIANCES = {"float32": 1e-30, "float64": 1e-150}

#: A feature varies if its variance is more than this share of its mean square: less is rounding.
ROUNDING = 1e-12


def shared_model(
    settings: Settings, search: Steps, total_weight: float, variance_floor: float, frame: Frame
) -> SharedModel:
    """One variance and equal weights: the model of a fit, or what clusters share before they have their own.

    Parameters
    ----------
    settings : Settings
    search : Steps
    total_weight : float
    variance_floor : float
        `reg_covar` times the data's variance per feature.
    frame : Frame
    """
    others = (search, total_weight, variance_floor, settings.relaxation, frame.log_scale)
    return SphereModel(Sphere.of(frame), *others) if settings.metric == "cosine" else SharedModel(*others)


def rules_of(
    settings: Settings,
    variance_floor: float,
    sums: np.ndarray,
    squares: np.ndarray,
    total_weight: float,
    dtype: np.dtype[Any],
) -> Rules:
    """What the mixture of a fit may become.

    Parameters
    ----------
    settings : Settings
    variance_floor : float
        `reg_covar` times the data's variance per feature.
    sums, squares : (D,) float64
        sum_n gamma y_d and sum_n gamma y_d^2.
    total_weight : float
    dtype : float32 or float64
        Type computed in.
    """
    family = FAMILIES[settings.covariance_type]
    floor = np.array([variance_floor])
    if family.by_feature:
        floor = feature_floor(sums / total_weight, squares / total_weight, settings.reg_covar, variance_floor)
    smallest = SMALLEST_VARIANCES[dtype.name]
    seed = int(generator(settings.seed, SOWING).integers(1 << 62))
    return Rules(family, settings.mixing == "learned", np.maximum(floor, smallest), settings.reassign, seed)


def feature_floor(
    means: np.ndarray, mean_squares: np.ndarray, reg_covar: float, for_constants: float
) -> np.ndarray:
    """Smallest variance of every feature, (D,), relative to its own; `for_constants` where it has none."""
    variances = mean_squares - means**2
    return np.where(variances > ROUNDING * mean_squares, reg_covar * variances, for_constants)
