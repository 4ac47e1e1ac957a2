"""Tables of numbers as text: CSV, TSV and the like.

Read with pyarrow where it is installed, about three times as fast, else with NumPy; both take and refuse the same
tables.
"""

from __future__ import annotations

import csv
import importlib.util
import io
from collections.abc import Sequence
from typing import BinaryIO

import numpy as np

#: What fields may be divided by: the one that makes most fields of the first line, the first of these on a tie.
DELIMITERS = (",", "\t", ";")

#: Bytes that pyarrow reads at a time; a row must fit into them.
_CHUNK = 1 << 24
_MARK = b"\xef\xbb\xbf"  # of UTF-8, with which some programs begin a file


def read_table(file: BinaryIO, name: str, delimiter: str | None = None) -> np.ndarray:
    """A table of numbers.

    The first line is a header if none of its fields is a number. Every other field must be one: an empty field, or
    any other text, is an error that names its line and column.

    Parameters
    ----------
    file : binary file
        Seekable.
    name : str
        What error messages call it.
    delimiter : str, optional
        Between fields; None: a comma, a tab or a semicolon, whichever makes most fields of the first line.

    Returns
    -------
    (n, D) float64

    Raises
    ------
    ValueError
    """
    first, begin = _first_line(file, name)
    delimiters = DELIMITERS if delimiter is None else (delimiter,)
    ways = [(next(csv.reader([first], delimiter=one)), one) for one in delimiters]
    fields, delimiter = max(ways, key=lambda way: len(way[0]))
    if not any(_is_number(field) for field in fields):
        begin = file.tell()
    file.seek(begin)
    if not file.read(1):
        raise ValueError(f"{name} holds no rows of numbers. Give at least one.")
    file.seek(begin)
    with_arrow = importlib.util.find_spec("pyarrow") is not None
    try:
        if with_arrow:
            return _read_with_pyarrow(file, delimiter, len(fields), max(_CHUNK, 4 * len(first)))
        return _read_with_numpy(file, delimiter)
    except (ValueError, UnicodeDecodeError) as error:  # pyarrow's errors are ValueErrors too
        file.seek(begin)
        reason = _first_mistake(file, delimiter, fields) or f"is not a table of numbers: {error}"
        raise ValueError(f"{name} {reason}") from None


def _first_line(file: BinaryIO, name: str) -> tuple[str, int]:
    """The first line with anything on it, and where it begins."""
    begin = len(_MARK) if file.read(len(_MARK)) == _MARK else 0
    file.seek(begin)
    while line := file.readline():
        if line.strip():
            if b"\0" in line:
                raise ValueError(f"{name} is not a table of text: it holds a zero byte.")
            try:
                return line.decode("utf-8").rstrip("\r\n"), begin
            except UnicodeDecodeError:
                raise ValueError(f"{name} is not a table of text in UTF-8. Convert it first.") from None
        begin = file.tell()
    raise ValueError(f"{name} is empty: give a table with at least one row of numbers.")


def _read_with_pyarrow(file: BinaryIO, delimiter: str, n_columns: int, chunk: int) -> np.ndarray:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    names = [f"f{i}" for i in range(n_columns)]
    table = arrow_csv.read_csv(
        file,
        arrow_csv.ReadOptions(column_names=names, block_size=chunk),
        arrow_csv.ParseOptions(delimiter=delimiter),
        # Nothing stands for a missing value: fits refuse them, so a table had better not have any.
        arrow_csv.ConvertOptions(column_types=dict.fromkeys(names, pa.float64()), null_values=[]),
    )
    out = np.empty((table.num_rows, n_columns))
    for i in range(n_columns):
        out[:, i] = table.column(i).to_numpy()
    return out


def _read_with_numpy(file: BinaryIO, delimiter: str) -> np.ndarray:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    try:
        return np.loadtxt(text, delimiter=delimiter, comments=None, quotechar='"', ndmin=2)
    finally:
        text.detach()  # or it would close a file that is not its own


def _first_mistake(file: BinaryIO, delimiter: str, first: Sequence[str]) -> str | None:
    """What is wrong with the first field or line that is no good; None where nothing can be found."""
    before = file.tell()
    file.seek(0)
    skipped = file.read(before).count(b"\n")
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    reader = csv.reader(text, delimiter=delimiter)
    try:
        for fields in reader:
            if not "".join(fields).strip() and len(fields) < 2:
                continue
            line = skipped + reader.line_num
            if len(fields) != len(first):
                return f"has {len(fields)} fields in line {line}, but {len(first)} in its first: make them equal."
            for column, field in enumerate(fields, 1):
                if not _is_number(field):
                    what = f"{field!r}, not a number," if field.strip() else "an empty field"
                    return f"has {what} in line {line}, column {column}: fill it in, or remove line or column."
    except (UnicodeDecodeError, csv.Error) as error:
        return f"is not a table of text in UTF-8: {error}"
    finally:
        text.detach()
    return None


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return "_" not in field  # Python's own thousands separator
