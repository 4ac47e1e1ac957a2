"""Snapshots of a running fit as JSON and arrays.

Names are those of `algorithm.snapshot`.  Numbers stand in the header, arrays beside it, those of a part behind its
name ("fit.means").  A search says itself what its state is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, get_type_hints

import numpy as np

from ..algorithm.coreset.lightweight import Coreset
from ..algorithm.em import Fit
from ..algorithm.estep import State
from ..algorithm.models.mixture import Mixture
from ..algorithm.settings import Settings
from ..algorithm.snapshot import STEPS, Attempt, Costs, Problem, Snapshot
from .coreset import ARRAYS as CORESET_ARRAYS
from .coreset import coreset_tensors
from .frame import frame_from, frame_parts
from .parameters import decode_number, encode_scalar
from .schema import Array

_FIT = {
    "means": Array("float64", ("components", "features")),
    "masses": Array("float64", ("components",)),
}

#: What a mixture has beside means.
_OWN = {"variances": Array("float64", ("components", "variances")), "weights": Array("float64", ("components",))}

#: Arrays of every snapshot …
ARRAYS = {
    **CORESET_ARRAYS,
    "frame.origin": Array("float64", ("features",)),
    "means": Array("float64", ("components", "features")),
    **{f"fit.{name}": array for name, array in _FIT.items()},
    "fit.bounds": Array("float64", ("iterations",)),
    "search.winners": Array("int32", ("points", "winners")),
    "search.neighbors": Array("int32", ("components", "neighbors")),
}
#: … of some …
OPTIONAL = {
    "settings.init": Array("float64", ("components", "features")),
    "fit.moves": Array("float64", ("components", "features")),
    **{f"best.{name}": array for name, array in _FIT.items()},
    "best.bounds": Array("float64", ("iterations of the best attempt",)),
    "best.neighbors": Array("int32", ("components", "neighbors")),
}
#: … of those in which clusters have weights and variances of their own …
OWN = {
    **{f"{part}mixture.{name}": array for part in ("", "fit.", "best.") for name, array in _OWN.items()},
    "fit.sown": Array("bool", ("components",)),
}
#: … and of each kind of search, with the types of the numbers in its state.
SEARCHES: dict[str, tuple[dict[str, Array], dict[str, type[float] | type[int]]]] = {
    "blocked": (
        {
            "search.rows": Array("int64", ("points",)),
            "search.nearest": Array("int32", ("components", "nearest clusters")),
            "search.candidates": Array("int32", ("components", "candidates")),
        },
        {"misplaced": int, "start_error": float, "n_updates": int},
    ),
    "pointwise": ({}, {"n_searches": int}),
}


def encode_snapshot(snapshot: Snapshot) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and arrays of a snapshot."""
    problem, fit, best = snapshot.problem, snapshot.fit, snapshot.best
    settings, tensors = _encode_settings(problem.settings)
    frame, tensors["frame.origin"] = frame_parts(problem.frame)
    tensors |= coreset_tensors(problem.coreset)
    means = np.asarray(snapshot.means, np.float64)
    tensors |= {"means": means, **_fit_tensors("fit", fit), **_mixture_tensors("", snapshot.mixture)}
    if best is not None:
        tensors |= {**_fit_tensors("best", best.fit), "best.neighbors": best.neighbors}
    search = {}
    for name, value in snapshot.search.items():
        if isinstance(value, np.ndarray):
            tensors[f"search.{name}"] = value
        else:
            search[name] = encode_scalar(name, value)
    header = {
        "settings": settings,
        "frame": frame,
        "weight_unit": encode_scalar("weight_unit", problem.weight_unit),
        "variance_floor": encode_scalar("variance_floor", problem.variance_floor),
        "seconds": {step: encode_scalar(step, value) for step, value in snapshot.costs.seconds.items()},
        "n_evaluations": {step: encode_scalar(step, n) for step, n in snapshot.costs.n_evaluations.items()},
        "elapsed": encode_scalar("elapsed", snapshot.costs.elapsed),
        "attempt": snapshot.attempt,
        "variance": encode_scalar("variance", snapshot.variance),
        "fit": _encode_fit(fit),
        "best": None if best is None else _encode_fit(best.fit),
        "search": search,
    }
    return header, tensors


def decode_snapshot(header: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> Snapshot:
    """A snapshot from header and checked arrays; raises anything where they are not what was written."""
    settings = _decode_settings(header["settings"], tensors)
    problem = Problem(
        settings,
        Coreset(*(tensors[name] for name in CORESET_ARRAYS)),
        decode_number(header["weight_unit"], float),
        frame_from(header["frame"], tensors),
        decode_number(header["variance_floor"], float),
    )
    costs = Costs(
        {step: decode_number(header["seconds"][step], float) for step in STEPS},
        {step: int(decode_number(header["n_evaluations"][step], int)) for step in STEPS},
        decode_number(header["elapsed"], float),
    )
    best = header["best"]
    return Snapshot(
        problem,
        costs,
        int(decode_number(header["attempt"], int)),
        None if best is None else Attempt(_decode_fit("best", best, tensors), tensors["best.neighbors"]),
        _decode_fit("fit", header["fit"], tensors),
        tensors["means"],
        None if header["variance"] is None else decode_number(header["variance"], float),
        _decode_state(settings.search, header["search"], tensors),
        _decode_mixture("", tensors["means"], tensors),
    )


def _encode_settings(settings: Settings) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    values: dict[str, Any] = {}
    tensors: dict[str, np.ndarray] = {}
    for field in fields(Settings):
        value = getattr(settings, field.name)
        if isinstance(value, np.ndarray):
            values[field.name] = {"tensor": "settings.init"}
            tensors["settings.init"] = value
        else:
            values[field.name] = value.name if isinstance(value, np.dtype) else encode_scalar(field.name, value)
    return values, tensors


def _decode_settings(values: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> Settings:
    settings: dict[str, Any] = {}
    for name, kind in get_type_hints(Settings).items():
        value = values[name]
        if name == "dtype":
            settings[name] = np.dtype(value)
        elif name == "init" and isinstance(value, dict):
            settings[name] = tensors["settings.init"]
        elif isinstance(value, bool) is not (kind is bool) or not isinstance(value, kind):
            raise TypeError(f"{name}={value!r} is no {kind}")
        else:
            settings[name] = value
    return Settings(**settings)


def _fit_tensors(part: str, fit: Fit) -> dict[str, np.ndarray]:
    return {
        f"{part}.means": fit.means,
        f"{part}.masses": fit.masses,
        f"{part}.bounds": np.array(fit.bounds, np.float64),
        **({} if fit.moves is None else {f"{part}.moves": fit.moves}),
        **({} if fit.sown is None or part == "best" else {f"{part}.sown": fit.sown}),
        **_mixture_tensors(f"{part}.", fit.mixture),
    }


def _mixture_tensors(part: str, mixture: Mixture | None) -> dict[str, np.ndarray]:
    if mixture is None:
        return {}
    return {f"{part}mixture.variances": mixture.variances, f"{part}mixture.weights": mixture.weights}


def _decode_mixture(part: str, means: np.ndarray, tensors: Mapping[str, np.ndarray]) -> Mixture | None:
    names = (f"{part}mixture.variances", f"{part}mixture.weights")
    found = [tensors[name] for name in names if name in tensors]
    if not found:
        return None
    if len(found) == 1:
        raise ValueError(f"one of {names} is missing")
    return Mixture(means, *found)


def _encode_fit(fit: Fit) -> dict[str, Any]:
    numbers = ("variance", "converged", "stopped", "n_evaluations", "step", "n_shared")
    return {name: encode_scalar(name, getattr(fit, name)) for name in numbers}


def _decode_fit(part: str, values: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> Fit:
    return Fit(
        tensors[f"{part}.means"],
        decode_number(values["variance"], float),
        tensors[f"{part}.masses"],
        tensors[f"{part}.bounds"].tolist(),
        bool(decode_number(values["converged"], bool)),
        bool(decode_number(values["stopped"], bool)),
        int(decode_number(values["n_evaluations"], int)),
        decode_number(values["step"], float),
        tensors.get(f"{part}.moves"),
        _decode_mixture(f"{part}.", tensors[f"{part}.means"], tensors),
        None if values["n_shared"] is None else int(decode_number(values["n_shared"], int)),
        tensors.get(f"{part}.sown"),
    )


def _decode_state(search: str, values: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> State:
    _, numbers = SEARCHES[search]
    state: State = {name: decode_number(values[name], kind) for name, kind in numbers.items()}
    for name, tensor in tensors.items():
        if name.startswith("search."):
            state[name.removeprefix("search.")] = tensor
    return state
