"""`vcgmm info`: what a file holds."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from vcgmm import VCGMM, load_coreset
from vcgmm.cli.errors import guarded
from vcgmm.cli.inputs import file_kind, read_rows
from vcgmm.cli.options import Debug, Json
from vcgmm.cli.results import file_size, show, tell
from vcgmm.persistence import read_header

EXAMPLE = "Example: vcgmm info model.vcgmm"

#: Iterations of a history that are shown; of more, these are taken evenly.
MOST_ITERATIONS = 12


@guarded
def run(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A model, a coreset, a checkpoint, or rows; - for rows on standard input.",
            show_default=False,
        ),
    ],
    as_json: Json = False,
    debug: Debug = False,  # noqa: ARG001 (for `guarded`)
) -> None:
    """Show what a file holds: shape and types, and of a model its parameters, history and versions."""
    kind = file_kind(file)
    if kind == "model":
        _model(file, as_json)
    elif kind == "coreset":
        _coreset(file, as_json)
    elif kind == "checkpoint":
        _checkpoint(file, as_json)
    else:
        _rows(file, as_json)


def _rows(file: str, as_json: bool) -> None:
    rows = read_rows(file)
    in_memory = isinstance(rows, np.ndarray)
    n_bytes = rows.nbytes if isinstance(rows, np.ndarray) else _n_bytes(file)
    names = None if isinstance(rows, np.ndarray) else rows.columns
    result = {
        "kind": "rows",
        "n_samples": rows.shape[0],
        "n_features": rows.shape[1],
        "dtype": rows.dtype.name,
        "columns": names,
        "in_memory": in_memory,
        "bytes": n_bytes,
    }
    table = {
        "kind": "rows",
        "shape": f"{rows.shape[0]:,} rows of {rows.shape[1]:,} features",
        "type": f"{rows.dtype.name}, {'read into memory' if in_memory else 'read in blocks'}",
        **({"columns": ", ".join(names)} if names else {}),
        "size": file_size(n_bytes),
    }
    tell(result, table, as_json=as_json, quiet=False)


def _n_bytes(file: str) -> int:
    """Size of a file, or of all files in a folder or of a pattern."""
    before = file.rpartition(":")[0]  # the file itself, without what to take of it
    text = before if before and not Path(file).exists() and Path(before).exists() else file
    found = [Path(text)] if Path(text).exists() else [Path(name) for name in glob.glob(text)]  # noqa: PTH207 (may be absolute)
    every = (inside for path in found for inside in ([path] if path.is_file() else path.rglob("*")))
    return sum(path.stat().st_size for path in every if path.is_file())


def _coreset(file: str, as_json: bool) -> None:
    coreset, header = load_coreset(file), read_header(file)
    result = {
        "kind": "coreset",
        "points": len(coreset),
        "n_features": coreset.points.shape[1],
        "dtype": coreset.points.dtype.name,
        "total_weight": coreset.total_weight,
        "n_samples": coreset.n_samples,
        "format_version": header["format_version"],
        "written_by": header["written_by"],
    }
    table = {
        "kind": "coreset",
        "points": f"{len(coreset):,} of {coreset.points.shape[1]:,} features, {coreset.points.dtype.name}",
        "weight": f"{coreset.total_weight:.8g} in all",
        **({} if coreset.n_samples is None else {"stands for": f"{coreset.n_samples:,} rows"}),
        "size": file_size(Path(file).stat().st_size),
        "versions": _versions(header["written_by"], header["format_version"]),
    }
    tell(result, table, as_json=as_json, quiet=False)


def _checkpoint(file: str, as_json: bool) -> None:
    header = read_header(file)
    snapshot, parameters = header["snapshot"], header["parameters"]
    settings, over = snapshot["settings"], snapshot["fit"]["converged"]
    seconds = snapshot["elapsed"]
    result = {
        "kind": "checkpoint",
        "n_samples": header["n_samples"],
        "n_components": settings["n_components"],
        "attempt": snapshot["attempt"] + 1,
        "n_init": settings["n_init"],
        "iteration": header["iteration"],
        "max_iter": settings["max_iter"],
        "converged": over,
        "seconds": seconds,
        "parameters": parameters,
        "state_version": header["state_version"],
        "format_version": header["format_version"],
        "written_by": header["written_by"],
    }
    table = {
        "kind": "checkpoint",
        "data": f"{header['n_samples']:,} rows",
        "clusters": f"{settings['n_components']:,}",
        "attempt": f"{snapshot['attempt'] + 1} of {settings['n_init']}",
        "iteration": f"{header['iteration']} of at most {settings['max_iter']}{', converged' if over else ''}",
        "time so far": f"{seconds:.2f} s",
        "size": file_size(Path(file).stat().st_size),
        "versions": _versions(header["written_by"], header["format_version"]),
    }
    tell(result, table, as_json=as_json, quiet=False)


def _model(file: str, as_json: bool) -> None:
    model, header = VCGMM.load(file), read_header(file)
    parameters = model.get_params()
    history = getattr(model, "history_", {"bound": model.lower_bounds_})
    training = header["training"]
    active = int(np.count_nonzero(model.counts_))
    n_clusters, n_features = model.means_.shape
    if as_json:
        result = {
            "kind": "model",
            "n_components": n_clusters,
            "n_features": n_features,
            "active_components": active,
            "variance": model.variance_,
            "lower_bound": model.lower_bound_,
            "n_iter": model.n_iter_,
            "converged": model.converged_,
            "parameters": {name: _parameter(value) for name, value in parameters.items()},
            "timings": model.timings_,
            "n_distance_evaluations": model.n_distance_evaluations_,
            "feature_names": getattr(model, "feature_names_in_", None),
            "has_coreset": hasattr(model, "coreset_"),
            "has_labels": hasattr(model, "labels_"),
            "history": history,
            "training": training,
            "format_version": header["format_version"],
            "written_by": header["written_by"],
        }
        tell(result, {}, as_json=True, quiet=False)
        return
    steps = ", ".join(f"{step} {seconds:.2f} s" for step, seconds in model.timings_.items())
    extras = [name for name in ("coreset_", "labels_", "feature_names_in_") if hasattr(model, name)]
    show(
        {
            "kind": "model",
            "clusters": f"{n_clusters:,} of {n_features:,} features, {active:,} active",
            "variance": f"{model.variance_:.6g}",
            "lower bound": f"{model.lower_bound_:.8g}",
            "iterations": f"{model.n_iter_}, {'converged' if model.converged_ else 'not converged'}",
            "time": steps,
            "also holds": ", ".join(extras) or "nothing of the data",
            "size": file_size(Path(file).stat().st_size),
        }
    )
    if training:
        show({name: _fact(value) for name, value in training.items()}, "Training")
    show({name: str(_parameter(value)) for name, value in parameters.items()}, "Parameters")
    n_iter = len(history["bound"])
    some = f" ({MOST_ITERATIONS} of {n_iter} iterations)" if n_iter > MOST_ITERATIONS else ""
    show(_history(history), f"History{some}")
    show({"written by": _versions(header["written_by"], header["format_version"])}, "Versions")


def _fact(value: Any) -> str:
    """Whatever a file says of its training."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {item}" for name, item in value.items())
    return f"{value:,}" if isinstance(value, int) else str(value)


def _parameter(value: Any) -> Any:
    """A parameter as it can be shown in a line."""
    return f"array of shape {value.shape}" if isinstance(value, np.ndarray) else value


def _history(history: dict[str, np.ndarray]) -> dict[str, str]:
    """Some iterations, a line each."""
    n = len(history["bound"])
    lines = {}
    for i in np.unique(np.linspace(0, n - 1, min(n, MOST_ITERATIONS)).round().astype(int)):
        line = f"F={history['bound'][i]:.8g}"
        if "seconds" in history:
            line += f"  change={history['change'][i]:.1e}  var={history['variance'][i]:.4g}"
            line += f"  {history['seconds'][i]:.2f} s"
        if "active" in history:
            line += f"  active={history['active'][i]:,}"
        lines[f"{i + 1}"] = line
    return lines


def _versions(written_by: dict[str, str], format_version: int) -> str:
    listed = ", ".join(f"{name} {version}" for name, version in written_by.items())
    return f"{listed}; format version {format_version}"
