"""How a table of text is written, and what is wrong with it."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import BinaryIO

#: What fields may be divided by: the one that makes most fields of the first line, the first of these on a tie.
DELIMITERS = (",", "\t", ";")

_MARK = b"\xef\xbb\xbf"  # of UTF-8, with which some programs begin a file


@dataclass(frozen=True)
class Dialect:
    """What the first line tells.

    Attributes
    ----------
    delimiter : str
    n_fields : int
    names : list of str or None
        Of the columns, where there is a header.
    begin : int
        Where the first row of numbers begins, in bytes.
    first_length : int
        Characters of the first line.
    """

    delimiter: str
    n_fields: int
    names: list[str] | None
    begin: int
    first_length: int


def sniff(file: BinaryIO, name: str, delimiter: str | None) -> Dialect:
    """Look at the beginning of a table.

    Parameters
    ----------
    file : binary file
        Seekable.
    name : str
        What error messages call it.
    delimiter : str or None
        None: a comma, a tab or a semicolon.

    Raises
    ------
    ValueError
        If it is empty, no text, or nothing but a header.
    """
    first, begin = _first_line(file, name)
    delimiters = DELIMITERS if delimiter is None else (delimiter,)
    ways = [(next(csv.reader([first], delimiter=one)), one) for one in delimiters]
    fields, delimiter = max(ways, key=lambda way: len(way[0]))
    names = None
    if not any(_is_number(field) for field in fields):
        begin = file.tell()
        names = [field.strip() for field in fields]
        names[0] = names[0].removeprefix("#").strip()  # as numpy.savetxt writes a header
    file.seek(begin)
    if not file.read(1):
        raise ValueError(f"{name} holds no rows of numbers. Give at least one.")
    return Dialect(delimiter, len(fields), names, begin, len(first))


def first_mistake(file: BinaryIO, dialect: Dialect) -> str | None:
    """What is wrong with the first field or line that is no good; None where nothing can be found."""
    file.seek(0)
    skipped = file.read(dialect.begin).count(b"\n")
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    reader = csv.reader(text, delimiter=dialect.delimiter)
    n_fields = dialect.n_fields
    try:
        for fields in reader:
            if not "".join(fields).strip() and len(fields) < 2:
                continue
            line = skipped + reader.line_num
            if len(fields) != n_fields:
                return f"has {len(fields)} fields in line {line}, but {n_fields} in its first: make them equal."
            for column, field in enumerate(fields, 1):
                if not _is_number(field):
                    what = f"{field!r}, not a number," if field.strip() else "an empty field"
                    return f"has {what} in line {line}, column {column}: fill it in, or remove line or column."
    except (UnicodeDecodeError, csv.Error) as error:
        return f"is not a table of text in UTF-8: {error}"
    finally:
        text.detach()
    return None


def _first_line(file: BinaryIO, name: str) -> tuple[str, int]:
    """The first line with anything on it, and where it begins."""
    file.seek(0)
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


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return "_" not in field  # Python's own thousands separator
