"""Checkpoints: a running fit in a file, to go on with.

A model file is for keeping, a checkpoint is not: its state is that of the algorithm's inside, which may change
with any version.  So it has a version of its own, and another one is refused.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from .._version import __version__
from ..algorithm.snapshot import Snapshot
from ..progress import Iteration
from ..progress.history import COLUMNS, as_columns, from_columns
from .container import Content, check_types, read, write
from .coreset import Given
from .parameters import check_known, decode_number, decode_parameters, encode_parameters
from .schema import Array, check_arrays
from .snapshot import ARRAYS, OPTIONAL, OWN, SEARCHES, decode_snapshot, encode_snapshot
from .snapshot_checks import check_snapshot

#: Raised with every change of what a snapshot holds or means.
STATE_VERSION = 4

#: What goes on with other versions of these may end with other last bits.
VERSIONS = {"vcgmm": __version__, "numpy": np.__version__, "numba": numba.__version__}

_HISTORY = {f"history.{name}": Array(np.dtype(kind).name, ("told",)) for name, kind in COLUMNS.items()}
_PARAMETERS = {
    "parameters.init": Array(None, ("initial means", "initial features")),
    "parameters.random_state": Array("uint32", ("words",)),
}
_GIVEN = {"given.indices": Array("int64", ("given points",))}


@dataclass(frozen=True)
class Origin:
    """What does not change while a fit runs, ready to be written.

    Attributes
    ----------
    header : dict
    tensors : dict of arrays
    """

    header: dict[str, Any]
    tensors: dict[str, np.ndarray]


@dataclass(frozen=True)
class GivenCoreset:
    """What a fit to a coreset remembers of it: the rows that its points are, and how many it stands for."""

    indices: np.ndarray | None
    n_samples: int | None


@dataclass(frozen=True)
class Checkpoint:
    """A running fit.

    Attributes
    ----------
    parameters : dict
        Of the estimator, as from `get_params`.
    n_samples : int
        Rows of the data.
    feature_names : list of str or None
    given : GivenCoreset or None
        Where the rows are the points of a coreset.
    history : list of Iteration
        All that were told, of all attempts.
    snapshot : Snapshot
    """

    parameters: dict[str, Any]
    n_samples: int
    feature_names: list[str] | None
    given: GivenCoreset | None
    history: list[Iteration]
    snapshot: Snapshot


def make_origin(
    parameters: Mapping[str, Any], n_samples: int, feature_names: Sequence[str] | None, given: Given | None
) -> Origin:
    """Parameters and facts of the data, encoded once for all checkpoints of a fit."""
    values, tensors = encode_parameters(parameters)
    check_types(tensors)  # before the work, not at the first checkpoint
    names = None if feature_names is None else [str(name) for name in feature_names]
    header = {
        "state_version": STATE_VERSION,
        "versions": VERSIONS,
        "parameters": values,
        "n_samples": n_samples,
        "feature_names": names,
        "given": None if given is None else {"n_samples": given.n_samples},
    }
    if given is not None and given.indices is not None:
        tensors["given.indices"] = given.indices
    return Origin(header, tensors)


def save_checkpoint(
    path: str | os.PathLike[str], origin: Origin, history: Sequence[Iteration], snapshot: Snapshot
) -> None:
    """Write a checkpoint, as a whole or not at all.

    Parameters
    ----------
    path : path-like
        Replaced if it exists.
    origin : Origin
    history : sequence of Iteration
    snapshot : Snapshot

    Raises
    ------
    OSError
        If it cannot be written.
    """
    header, tensors = encode_snapshot(snapshot)
    told = {f"history.{name}": column for name, column in as_columns(history).items()}
    header = {**origin.header, "iteration": len(snapshot.fit.bounds), "snapshot": header}
    write(path, "checkpoint", header, {**origin.tensors, **tensors, **told}, token="writing")


def load_checkpoint(path: str | os.PathLike[str], known: Sequence[str]) -> Checkpoint:
    """Read a checkpoint.

    Parameters
    ----------
    path : path-like
    known : sequence of str
        Names of the parameters that the estimator has.

    Raises
    ------
    ValueError
        If the file holds something else, comes from another version, or is damaged.
    """
    content = read(path, "checkpoint")
    header, tensors = content.header, content.tensors
    _check_versions(path, header)
    check_arrays(path, tensors, *_schema(path, content))
    try:
        checkpoint = Checkpoint(
            decode_parameters(header["parameters"], tensors),
            int(decode_number(header["n_samples"], int)),
            None if header["feature_names"] is None else [str(name) for name in header["feature_names"]],
            _decode_given(header["given"], tensors),
            from_columns({name: tensors[f"history.{name}"] for name in COLUMNS if f"history.{name}" in tensors}),
            decode_snapshot(header["snapshot"], tensors),
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ValueError(f"{path} is not what vcgmm wrote ({error!r}). Get a new copy of it.") from None
    check_snapshot(path, checkpoint.snapshot)
    n_points, n_features = checkpoint.snapshot.problem.coreset.points.shape
    given = checkpoint.given
    if given is not None and given.indices is not None:
        rows = checkpoint.snapshot.problem.coreset.indices
        if len(given.indices) != checkpoint.n_samples or rows.max(initial=0) >= len(given.indices):
            raise ValueError(f"{path} is not what vcgmm wrote: it tells of another coreset. Get a new copy of it.")
    if checkpoint.n_samples < n_points or len(checkpoint.feature_names or range(n_features)) != n_features:
        raise ValueError(f"{path} is not what vcgmm wrote: it tells of other data. Get a new copy of it.")
    check_known(path, checkpoint.parameters, known)
    return checkpoint


def _decode_given(values: Mapping[str, Any] | None, tensors: Mapping[str, np.ndarray]) -> GivenCoreset | None:
    if values is None:
        return None
    n_samples = values["n_samples"]
    known = None if n_samples is None else int(decode_number(n_samples, int))
    return GivenCoreset(tensors.get("given.indices"), known)


def _check_versions(path: object, header: Mapping[str, Any]) -> None:
    """Refuse another state; warn where the same state may lead to other last bits."""
    theirs, written_by = header.get("state_version"), header["written_by"].get("vcgmm")
    if theirs != STATE_VERSION:
        raise ValueError(
            f"{path} is a checkpoint of vcgmm {written_by} with state version {theirs!r}, but this vcgmm "
            f"({__version__}) goes on from version {STATE_VERSION} only: use the vcgmm that wrote it, or fit anew."
        )
    before = header.get("versions")
    if before != VERSIONS:
        warnings.warn(
            f"{path} was written with {_in_words(before)}, and the fit goes on with {_in_words(VERSIONS)}: it may "
            f"end with other last bits than it would have.",
            UserWarning,
            stacklevel=4,
        )


def _in_words(versions: object) -> str:
    if not isinstance(versions, dict):
        return "unknown versions"
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def _schema(path: object, content: Content) -> tuple[dict[str, Array], list[str]]:
    """Arrays that may be there, and those that must."""
    try:
        search = content.header["snapshot"]["settings"]["search"]
        best = content.header["snapshot"]["best"]
        arrays, _ = SEARCHES[search]
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path} is not what vcgmm wrote ({error!r}). Get a new copy of it.") from None
    known = {**ARRAYS, **arrays, **OPTIONAL, **OWN, **_HISTORY, **_PARAMETERS, **_GIVEN}
    required = [*ARRAYS, *arrays, *(name for name in _HISTORY if name != "history.active")]
    if best is not None:
        required += [name for name in OPTIONAL if name.startswith("best.")]
    return known, required
