"""Parameters of an estimator as JSON and arrays.

Numbers, strings, flags and None are themselves. What JSON has no words for:

- arrays (`init`) become a tensor;
- a type (`dtype`) becomes its name, and a path (`checkpoint`) its text, which mean the same to the estimator;
- a NumPy `RandomState` becomes its state, if it is the Mersenne Twister that it usually is;
- `callbacks` are code. A file holds none: they are not written, and a loaded model has none.
"""

from __future__ import annotations

import math
import numbers
import os
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from .._version import __version__

#: Never written.
DROPPED = ("callbacks",)

_KEY = "parameters.random_state"


def encode_parameters(parameters: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Parameters for a file.

    Parameters
    ----------
    parameters : mapping
        As from `get_params`.

    Returns
    -------
    values : dict
        JSON.
    tensors : dict of arrays

    Raises
    ------
    TypeError
        If a parameter is something that a file cannot hold.
    """
    values: dict[str, Any] = {}
    tensors: dict[str, np.ndarray] = {}
    for name, value in parameters.items():
        if name in DROPPED:
            continue
        if name == "random_state" and not isinstance(value, numbers.Integral | None):
            values[name] = _encode_random_state(value, tensors)
        elif name == "dtype" and value is not None:
            values[name] = np.dtype(value).name
        elif name == "checkpoint" and value is not None:
            values[name] = os.fsdecode(value)
        elif name == "init" and not isinstance(value, str):
            tensors["parameters.init"] = np.asarray(value)
            values[name] = {"tensor": "parameters.init"}
        else:
            values[name] = encode_scalar(name, value)
    return values, tensors


def decode_parameters(values: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Parameters from a file; raises KeyError, TypeError or ValueError where they are not what was written."""
    parameters: dict[str, Any] = {}
    for name, value in values.items():
        if not isinstance(value, dict):
            parameters[name] = value
        elif "tensor" in value:
            parameters[name] = tensors[value["tensor"]]
        elif "random_state" in value:
            parameters[name] = _decode_random_state(value["random_state"], tensors)
        else:
            parameters[name] = float(value["float"])
    return parameters


def encode_scalar(name: str, value: Any) -> Any:
    """A single value as JSON: NumPy's become Python's, and infinities get words."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        number = float(value)
        return number if math.isfinite(number) else {"float": repr(number)}
    raise TypeError(f"{name}={value!r} cannot be written to a file: set it to a number, a string or None first.")


def decode_number(value: Any, kind: type[float] | type[int] | type[bool]) -> float:
    """A number of the right type from what `encode_scalar` made of it, and nothing else: else a TypeError."""
    if kind is float:
        return float(value["float"]) if isinstance(value, dict) else float(value)
    if type(value) is not kind:
        raise TypeError(f"{value!r} is no {kind.__name__}")
    number: float = kind(value)
    return number


def check_known(path: object, parameters: Mapping[str, Any], known: Iterable[str]) -> None:
    """Refuse a file with a parameter that this version does not know."""
    unknown = [name for name in parameters if name not in known]
    if unknown:
        raise ValueError(
            f"{path} has the parameter {unknown[0]!r}, which this vcgmm ({__version__}) does not know: upgrade it."
        )


def _encode_random_state(random_state: Any, tensors: dict[str, np.ndarray]) -> Any:
    """The state of a Mersenne Twister; None, with a warning, for any other source of random numbers."""
    if isinstance(random_state, np.random.RandomState):
        state: Any = random_state.get_state(legacy=False)
        if state["bit_generator"] == "MT19937":
            tensors[_KEY] = np.asarray(state["state"]["key"], np.uint32)
            rest = {"pos": int(state["state"]["pos"]), "has_gauss": int(state["has_gauss"])}
            return {"random_state": {**rest, "gauss": encode_scalar("gauss", state["gauss"])}}
    warnings.warn(
        f"random_state={random_state!r} cannot be written to a file: the loaded model has random_state=None.",
        UserWarning,
        stacklevel=5,
    )
    return None


def _decode_random_state(rest: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> np.random.RandomState:
    key = tensors[_KEY]
    if not 0 <= rest["pos"] <= len(key):
        raise ValueError("the random state is not valid.")
    random_state = np.random.RandomState()
    random_state.set_state(("MT19937", key, rest["pos"], rest["has_gauss"], float(rest["gauss"])))
    return random_state
