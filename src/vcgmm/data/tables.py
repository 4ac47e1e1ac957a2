"""Tables of numbers as text: CSV, TSV and the like.

Read with pyarrow where it is installed, about three times as fast, else with NumPy; both take and refuse the same
tables.
"""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import numpy as np

from .columns import Columns, choose_columns
from .dialect import Dialect, first_mistake, sniff
from .files import WatchedFile
from .source import READ_VALUES, Piece, SequentialSource

#: Bytes that pyarrow reads at a time; a row must fit into them.
_CHUNK = 1 << 22


class TextTable(SequentialSource):
    """A file of rows of numbers as text.

    The first line is a header if none of its fields is a number. Every other field must be one: an empty field, or
    any other text, is an error that names its line and column.

    Parameters
    ----------
    path : Path
    delimiter : str or None
        Between fields; None: a comma, a tab or a semicolon, whichever makes most fields of the first line.
    columns : columns, optional
        Which ones, by name or by number; None: all.
    """

    def __init__(self, path: Path, delimiter: str | None = None, columns: Columns = None) -> None:
        self._file = WatchedFile(path)
        with path.open("rb") as file:
            self._dialect = sniff(file, str(path), delimiter)
        names = self._dialect.names
        self._chosen = choose_columns(str(path), names, self._dialect.n_fields, columns)
        chosen_names = None if names is None else tuple(names[i] for i in self._chosen)
        super().__init__(str(path), None, len(self._chosen), np.dtype(np.float64), chosen_names)
        with closing(self.pieces()) as pieces:
            next(pieces, None)  # most mistakes are in the first lines: told at once

    def pieces(self) -> Generator[Piece, None, None]:
        """Blocks of some megabytes of text each."""
        self._file.check()
        with self._file.path.open("rb") as file:
            for block in read_blocks(file, self.name, self._dialect, self._chosen):
                yield block, None
        self._file.check()

    def _count(self) -> int:
        """Lines with anything on them: those with mistakes are found when they are read."""
        with self._file.path.open("rb") as file:
            file.seek(self._dialect.begin)
            return sum(1 for line in file if line.strip())


def read_table(file: BinaryIO, name: str) -> np.ndarray:
    """A table of numbers as a whole, from a file that can seek, (n, D) float64."""
    dialect = sniff(file, name, None)
    return np.concatenate(list(read_blocks(file, name, dialect, list(range(dialect.n_fields)))))


def read_blocks(file: BinaryIO, name: str, dialect: Dialect, chosen: list[int]) -> Iterator[np.ndarray]:
    """Blocks (n, len(chosen)) float64 of a table."""
    file.seek(dialect.begin)
    read = _with_pyarrow if importlib.util.find_spec("pyarrow") is not None else _with_numpy
    with _explained(file, name, dialect):
        yield from read(file, dialect, chosen)


@contextmanager
def _explained(file: BinaryIO, name: str, dialect: Dialect) -> Iterator[None]:
    """What is wrong with a table, with line and column."""
    try:
        yield
    except ValueError as error:  # pyarrow's errors and those of decoding are ValueErrors too
        reason = first_mistake(file, dialect) or f"is not a table of numbers: {error}"
        raise ValueError(f"{name} {reason}") from None


def _with_pyarrow(file: BinaryIO, dialect: Dialect, chosen: list[int]) -> Iterator[np.ndarray]:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    names = [f"f{i}" for i in range(dialect.n_fields)]
    reader = arrow_csv.open_csv(
        pa.PythonFile(_Unowned(file), "r"),
        arrow_csv.ReadOptions(
            column_names=names, block_size=max(_CHUNK, 4 * dialect.first_length), use_threads=False
        ),
        arrow_csv.ParseOptions(delimiter=dialect.delimiter),
        # Nothing stands for a missing value: fits refuse them, so a table had better not have any. Columns that
        # are not chosen are converted too: a mistake is one whatever is asked for.
        arrow_csv.ConvertOptions(column_types=dict.fromkeys(names, pa.float64()), null_values=[]),
    )
    for batch in reader:
        out = np.empty((batch.num_rows, len(chosen)))
        for place, i in enumerate(chosen):
            out[:, place] = batch.column(i).to_numpy()
        yield out


class _Unowned(io.RawIOBase):
    """A file that pyarrow may close without closing it for us."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        return self._file.read(size)


def _with_numpy(file: BinaryIO, dialect: Dialect, chosen: list[int]) -> Iterator[np.ndarray]:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    step = max(1, READ_VALUES // dialect.n_fields)
    try:
        while lines := list(islice(text, step)):
            if filled := [line for line in lines if line.strip()]:
                block = np.loadtxt(filled, delimiter=dialect.delimiter, comments=None, quotechar='"', ndmin=2)
                if block.shape[1] != dialect.n_fields:
                    raise ValueError("lines of another length")
                yield block[:, chosen]
    finally:
        text.detach()  # or it would close a file that is not its own
