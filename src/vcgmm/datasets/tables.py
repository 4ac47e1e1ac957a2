"""Tables of numbers in text, read block by block with checks of every line's width."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TextIO

import numpy as np

#: Lines that are turned into numbers at a time.
LINES = 1 << 14


def read_table(path: Path, n_columns: int, delimiter: str | None, n_skipped: int) -> np.ndarray:
    """All columns of a table but the first few, (N, n_columns - n_skipped) float32.

    Parameters
    ----------
    path : Path
        Compressed where its name ends in `.gz`.
    n_columns : int
        Every line must have so many.
    delimiter : str or None
        Between columns; None: any white space.
    n_skipped : int
        Columns at the front that are no features.
    """
    pieces = []
    with open_text(path) as lines:
        for first, block in blocks_of(lines):
            pieces.append(parse(path, first, block, n_columns, delimiter)[:, n_skipped:].astype(np.float32))
    return np.concatenate(pieces) if pieces else np.empty((0, n_columns - n_skipped), np.float32)


def open_text(path: Path) -> TextIO:
    """A file of text, compressed or not."""
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="ascii")
    return path.open(encoding="ascii")


def blocks_of(lines: TextIO) -> Iterator[tuple[int, list[str]]]:
    """Lines that are not blank, some at a time, with the number of the first in the file."""
    first = 0
    while block := list(islice(lines, LINES)):
        yield first, block
        first += len(block)


def parse(path: Path, first: int, lines: list[str], n_columns: int, delimiter: str | None) -> np.ndarray:
    """Numbers of some lines, (n, n_columns) float64; the error names the line."""
    fields = [line.split(delimiter) for line in lines if not line.isspace()]
    if all(len(row) == n_columns for row in fields):
        try:
            return np.array(fields, np.float64).reshape(len(fields), n_columns)
        except ValueError:
            pass  # found again below, with its line
    for number, line in enumerate(lines, first + 1):
        row = line.split(delimiter)
        if line.isspace():
            continue
        if len(row) != n_columns:
            raise ValueError(
                f"{path}, line {number}, has {len(row)} columns, but the set has {n_columns}: the file is damaged "
                f"or another one. Get it again."
            )
        try:
            [float(text) for text in row]
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: {error}. The file is damaged: get it again.") from None
    raise ValueError(f"{path}: lines {first + 1} to {first + len(lines)} hold no table of numbers: get it again.")
