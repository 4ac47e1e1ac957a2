"""Fitted models in files."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import numba
import numpy as np
import sklearn

from .._version import __version__
from ..algorithm.models.families import FAMILIES
from ..mixture_parameters import METRICS, MIXINGS
from ..progress.history import COLUMNS
from .container import read, write
from .coreset import ARRAYS as CORESET_ARRAYS
from .coreset import coreset_from, coreset_tensors
from .frame import frame_from, frame_parts
from .parameters import check_known, decode_number, decode_parameters, encode_parameters, encode_scalar
from .schema import Array, check_arrays
from .stream import decode_stream, encode_stream

#: Attributes that are arrays.
ARRAYS = {
    "means_": Array("float64", ("components", "features")),
    "weights_": Array("float64", ("components",)),
    "covariances_": Array("float64", None),  # by the kind of mixture: `_check_values`
    "counts_": Array("float64", ("components",)),
    "neighbors_": Array("int32", ("components", "neighbors")),
    "lower_bounds_": Array("float64", ("iterations",)),
    "refine_bounds_": Array("float64", ("passes",)),
    "labels_": Array("int32", ("rows",)),
}
#: Attributes that are numbers, and their types.
SCALARS: dict[str, type[float] | type[int] | type[bool]] = {
    "variance_": float,
    "lower_bound_": float,
    "inertia_": float,
    "n_iter_": int,
    "n_features_in_": int,
    "converged_": bool,
}
#: Attributes that are dicts of numbers by step.
BY_STEP: dict[str, type[float] | type[int]] = {"timings_": float, "n_distance_evaluations_": int}
#: Attributes with code of their own below.
SPECIAL = ("feature_names_in_", "history_", "coreset_")
#: Attributes that a fitted model may do without.
OPTIONAL = ("labels_", "inertia_", "refine_bounds_", *SPECIAL)

_SCHEMA = {
    **ARRAYS,
    **{f"history_.{name}": Array(np.dtype(kind).name, ("iterations",)) for name, kind in COLUMNS.items()},
    **CORESET_ARRAYS,
    "frame.origin": Array("float64", ("features",)),
    "parameters.init": Array(None, ("initial means", "initial features")),
    "parameters.random_state": Array("uint32", ("words",)),
}
_REQUIRED = (*(name for name in ARRAYS if name not in OPTIONAL), "frame.origin")


def training_facts(n_samples: int, dtype: np.dtype[Any], coreset_points: int) -> dict[str, Any]:
    """What a model remembers of its fit beside its attributes: the data's size, when it was, and by what."""
    return {
        "n_samples": n_samples,
        "dtype": dtype.name,
        "coreset_points": coreset_points,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {
            "vcgmm": __version__,
            "numpy": np.__version__,
            "numba": numba.__version__,
            "scikit-learn": sklearn.__version__,
        },
    }


def save_model(model: Any, path: str | os.PathLike[str], *, coreset: bool) -> None:
    """Write a fitted VCGMM.

    Parameters
    ----------
    model : VCGMM
        Fitted.
    path : path-like
    coreset : bool
        Whether to write `coreset_` too.
    """
    parameters, tensors = encode_parameters(model.get_params(deep=False))
    attributes: dict[str, Any] = {}
    for name in ARRAYS:
        if hasattr(model, name):
            tensors[name] = getattr(model, name)
    for name in SCALARS:
        if hasattr(model, name):
            attributes[name] = encode_scalar(name, getattr(model, name))
    for name in BY_STEP:
        attributes[name] = {step: encode_scalar(step, value) for step, value in getattr(model, name).items()}
    if hasattr(model, "feature_names_in_"):
        attributes["feature_names_in_"] = [str(name) for name in model.feature_names_in_]
    tensors |= {f"history_.{name}": column for name, column in getattr(model, "history_", {}).items()}
    if coreset:
        if not hasattr(model, "coreset_"):
            raise ValueError(
                "coreset=True, but this model has no coreset_: it was loaded from a file that holds none. "
                "Save it without."
            )
        tensors |= coreset_tensors(model.coreset_)
    frame, tensors["frame.origin"] = frame_parts(model._frame)
    header: dict[str, Any] = {
        "parameters": parameters,
        "attributes": attributes,
        "frame": frame,
        "training": dict(getattr(model, "_training", {})),
    }
    if coreset:
        header["coreset"] = {"n_samples": model.coreset_.n_samples}
        if hasattr(model, "_stream"):
            header["stream"] = encode_stream(model._stream)
    write(path, "model", header, tensors)


def load_model(make: Any, make_coreset: Callable[..., Any], path: str | os.PathLike[str]) -> Any:
    """Read a model that `save_model` wrote.

    Parameters
    ----------
    make : callable
        Makes an estimator from parameters: its class.
    make_coreset : callable
        Makes a coreset from points, weights, indices (or None) and the number of rows (or None).
    path : path-like

    Raises
    ------
    ValueError
        If the file holds something else, or is damaged.
    """
    content = read(path, "model")
    header, tensors = content.header, content.tensors
    check_arrays(path, tensors, _SCHEMA, _REQUIRED)
    try:
        for part in ("parameters", "attributes", "frame", "training"):
            if not isinstance(header[part], dict):
                raise TypeError(f"{part} is no table")
        parameters = decode_parameters(header["parameters"], tensors)
        attributes = _attributes(header["attributes"], tensors)
        frame = frame_from(header["frame"], tensors)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ValueError(f"{path} is not what vcgmm wrote ({error!r}). Get a new copy of it.") from None
    if "coreset.points" in tensors:
        stored = coreset_from(path, header.get("coreset", {}), tensors)
        attributes["coreset_"] = make_coreset(stored.points, stored.weights, stored.indices, stored.n_samples)
    if "stream" in header:
        try:
            attributes["_stream"] = decode_stream(header["stream"], len(tensors["coreset.points"]))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"{path} is not what vcgmm wrote ({error!r}). Get a new copy of it.") from None
    check_known(path, parameters, make().get_params(deep=False))
    _check_values(path, attributes, header["training"])
    model = make(**parameters)
    model.__dict__.update(attributes, _frame=frame, _training=header["training"])
    return model


def _attributes(values: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Attributes by name; raises anything where they are not what was written."""
    attributes: dict[str, Any] = {name: tensors[name] for name in ARRAYS if name in tensors}
    for name, kind in SCALARS.items():
        if name in values or name not in OPTIONAL:
            attributes[name] = decode_number(values[name], kind)
    for name, by_step in BY_STEP.items():
        attributes[name] = {str(step): decode_number(value, by_step) for step, value in values[name].items()}
    if "feature_names_in_" in values:
        attributes["feature_names_in_"] = np.array([str(name) for name in values["feature_names_in_"]], object)
    history = {name: tensors[f"history_.{name}"] for name in COLUMNS if f"history_.{name}" in tensors}
    if history:
        attributes["history_"] = history
    return attributes


def _check_values(path: object, attributes: Mapping[str, Any], training: Mapping[str, Any]) -> None:
    """Refuse numbers that no fit ends with and that would make nonsense, or worse, of predictions."""
    means, neighbors = attributes["means_"], attributes["neighbors_"]
    named = len(attributes.get("feature_names_in_", means.T)) == means.shape[1]
    covariances, weights = attributes["covariances_"], attributes["weights_"]
    kind, mixing = training.get("covariance_type", "isotropic"), training.get("mixing", "equal")
    if kind not in tuple(FAMILIES) or mixing not in MIXINGS:
        raise ValueError(
            f"{path} holds a mixture of covariance_type={kind!r} and mixing={mixing!r}, which this vcgmm does not "
            f"know: a newer one may read it."
        )
    if training.get("metric", "euclidean") not in METRICS:
        raise ValueError(
            f"{path} holds a mixture of metric={training['metric']!r}, which this vcgmm does not know: a newer "
            f"one may read it."
        )
    family = FAMILIES[kind]
    shape = family.covariances(np.empty((len(means), family.n_squares(means.shape[1])))).shape
    checks = {
        "means_ is empty or not finite": means.size and np.isfinite(means).all(),
        "n_features_in_ is not the width of means_": attributes["n_features_in_"] == means.shape[1] and named,
        "variance_ is not positive": 0.0 < attributes["variance_"] < math.inf,
        "neighbors_ names clusters that are not there": ((neighbors >= 0) & (neighbors < len(means))).all(),
        "n_iter_ is not the number of lower_bounds_": attributes["n_iter_"] == len(attributes["lower_bounds_"]),
        f"covariances_ is not of shape {shape}": covariances.shape == shape,
        "covariances_ is not positive": ((covariances > 0.0) & np.isfinite(covariances)).all(),
        "weights_ is negative or does not add up to 1": (weights >= 0.0).all() and abs(weights.sum() - 1) < 1e-6,
    }
    for wrong, good in checks.items():
        if not good:
            raise ValueError(f"{path} is not what vcgmm wrote: {wrong}. Get a new copy of it.")
