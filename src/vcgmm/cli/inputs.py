"""Input files: rows, weights, and rows that are a coreset."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import typer

import vcgmm
from vcgmm.data import Source
from vcgmm.data.opening import names_parts, open_vector
from vcgmm.data.records import check_rows_shape
from vcgmm.data.streams import read_stream
from vcgmm.persistence import kind_of

STANDARD_INPUT = "-"


@dataclass(frozen=True)
class Rows:
    """Rows to work on.

    Attributes
    ----------
    array : (N, D) array, or source of rows
    weights : (N,) array or None
        None also where a source has weights of its own.
    coreset : Coreset or None
        What they are the points of, where they stand for more rows than they are.
    """

    array: np.ndarray | Source
    weights: np.ndarray | None
    coreset: vcgmm.Coreset | None

    def total_weight(self) -> float:
        """Sum of all weights; the number of rows, where they have none."""
        if self.weights is not None:
            return float(self.weights.sum())
        if isinstance(self.array, Source) and self.array.weighted:
            return float(sum(weights.sum() for weights in self.array.weight_blocks()))
        return float(len(self.array))


def read_rows(data: str, *, weights: str | None = None, verbose: bool = False) -> np.ndarray | Source:
    """Rows from a file, or from standard input; tells of them on stderr where asked to.

    Parameters
    ----------
    data : str
    weights : str, optional
        Name of the column, or array, in the same file that holds their weights.
    verbose : bool
    """
    rows: np.ndarray | Source
    if data == STANDARD_INPUT:
        rows = _standard_input()
        check_rows_shape(rows.shape, "standard input")
    else:
        rows = vcgmm.open(data, weights=weights)
    if verbose:
        typer.echo(f"{data}: {in_words(rows)}", err=True)
    return rows


def in_words(rows: np.ndarray | Source) -> str:
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
    if weights is not None and weights != STANDARD_INPUT and not Path(weights).exists() and names_parts(data):
        return Rows(read_rows(data, weights=weights, verbose=verbose), None, None)
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
    array = _standard_input() if weights == STANDARD_INPUT else np.asarray(open_vector(weights))
    if array.ndim == 2 and 1 in array.shape:
        array = array.ravel()
    return array


def _standard_input() -> np.ndarray:
    if sys.stdin.isatty():
        raise ValueError("standard input is a terminal: give a file, or send rows through a pipe.")
    return read_stream(sys.stdin.buffer)
