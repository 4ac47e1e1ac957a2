"""Input files: rows, weights, and rows that are a coreset."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import typer

import vcgmm
from vcgmm.data.opening import check_rows_shape, read_array, read_stream
from vcgmm.persistence import kind_of

STANDARD_INPUT = "-"


@dataclass(frozen=True)
class Rows:
    """Rows to work on.

    Attributes
    ----------
    array : (N, D) array
    weights : (N,) array or None
    coreset : Coreset or None
        What they are the points of, where they stand for more rows than they are.
    """

    array: np.ndarray
    weights: np.ndarray | None
    coreset: vcgmm.Coreset | None


def read_rows(data: str, *, verbose: bool = False) -> np.ndarray:
    """Rows from a file, or from standard input; tells of them on stderr where asked to."""
    if data == STANDARD_INPUT:
        rows = check_rows_shape(_standard_input(), "standard input")
    else:
        rows = vcgmm.open(data)
    if verbose:
        typer.echo(f"{data}: {in_words(rows)}", err=True)
    return rows


def in_words(rows: np.ndarray) -> str:
    """Shape and type of rows."""
    return f"{rows.shape[0]:,} rows of {rows.shape[1]:,} features, {rows.dtype}"


def read_weighted_rows(data: str, weights: str | None, *, verbose: bool = False) -> Rows:
    """Rows with weights: from a file of weights, or from the coreset that the rows are."""
    if weights == STANDARD_INPUT and data == STANDARD_INPUT:
        raise ValueError("standard input cannot be both the rows and the weights: give a file for one of them.")
    kind = None if data == STANDARD_INPUT else _file_kind(data)
    if kind == "checkpoint":
        raise ValueError(f"{data} is a checkpoint, not rows: go on from it with vcgmm fit --resume {data}")
    if kind == "coreset":
        if weights is not None:
            raise ValueError(f"{data} is a coreset, which has weights of its own: leave --weights out.")
        coreset = vcgmm.load_coreset(data)
        if verbose:
            typer.echo(f"{data}: a coreset, {in_words(coreset.points)}", err=True)
        return Rows(coreset.points, coreset.weights, coreset)
    rows = read_rows(data, verbose=verbose)
    return Rows(rows, None if weights is None else _read_weights(weights), None)


def file_kind(path: str) -> str:
    """What a file is: "model", "coreset", "checkpoint" or "rows"."""
    kind = None if path == STANDARD_INPUT else _file_kind(path)
    # A file that is called like ours but does not look so is a damaged one: reading it will say how.
    return kind or ("model" if Path(path).suffix == ".vcgmm" else "rows")


def _file_kind(path: str) -> str | None:
    return kind_of(path) if Path(path).is_file() else None


def _read_weights(weights: str) -> np.ndarray:
    array = _standard_input() if weights == STANDARD_INPUT else read_array(weights)
    if array.ndim == 2 and 1 in array.shape:
        array = array.ravel()
    return array


def _standard_input() -> np.ndarray:
    if sys.stdin.isatty():
        raise ValueError("standard input is a terminal: give a file, or send rows through a pipe.")
    return read_stream(sys.stdin.buffer)
