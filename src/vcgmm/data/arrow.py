"""Parquet, Arrow and Feather files: numeric columns as features, or a column of lists as vectors."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from .columns import Columns, as_list, choose_columns
from .files import WatchedFile
from .needed import needed
from .source import READ_VALUES, Piece, SequentialSource

PARQUET = (".parquet", ".pq")
ARROW = (".arrow", ".feather", ".ipc")


class ArrowTable(SequentialSource):
    """A file of record batches.

    Parameters
    ----------
    path : Path
    columns : columns, optional
        One column of lists, all of one length, or numeric columns.  None: the only column of lists where there is
        one, else all columns, which must be numeric.
    """

    def __init__(self, path: Path, columns: Columns = None) -> None:
        name = str(path)
        self._file = WatchedFile(path)
        with self._explained(name), self._opened() as (schema, n_samples, batches):
            self._chosen = _choose(name, schema, as_list(columns))
            self._is_list = len(self._chosen) == 1 and _is_list(schema.field(self._chosen[0]).type)
            if self._is_list:
                width, dtype = _list_width(name, schema.field(self._chosen[0]), self._chosen[0], batches)
                names = None
            else:
                width = len(self._chosen)
                dtype = np.result_type(*(_numpy_type(name, schema.field(i)) for i in self._chosen))
                names = tuple(schema.names[i] for i in self._chosen)
        super().__init__(name, n_samples, width, dtype, names)

    @abstractmethod
    def _opened(self, columns: list[int] | None = None, step: int = 1) -> Any:
        """Context that gives schema, number of rows, and an iterator over batches of the chosen columns alone."""

    def pieces(self) -> Generator[Piece, None, None]:
        """Blocks."""
        self._file.check()
        step, at = max(1, READ_VALUES // self.n_features), 0
        with self._explained(self.name), self._opened(self._chosen, step) as (_, _, batches):
            for batch in batches:
                yield (self._vectors(batch, at) if self._is_list else self._features(batch, at)), None
                at += batch.num_rows
        self._file.check()

    def _features(self, batch: Any, at: int) -> np.ndarray:
        out = np.empty((batch.num_rows, self.n_features), self.dtype)
        for place in range(self.n_features):
            column = batch.column(place)
            self._refuse_missing(column, batch.schema.names[place], at)
            out[:, place] = column.to_numpy(zero_copy_only=False)
        return out

    def _vectors(self, batch: Any, at: int) -> np.ndarray:
        column, name = batch.column(0), batch.schema.names[0]
        self._refuse_missing(column, name, at)
        values = column.flatten()
        if len(values) != len(column) * self.n_features or _ragged(column, self.n_features):
            lengths = [len(item) for item in column]
            row = next(i for i, length in enumerate(lengths) if length != self.n_features)
            raise ValueError(
                f"{self.name} has {lengths[row]} values in row {at + row} of column {name!r}, but "
                f"{self.n_features} in its first: all vectors must be equally long."
            )
        if values.null_count:
            row = int(np.argmax(values.is_null().to_numpy(zero_copy_only=False))) // self.n_features
            self._refuse_row(at + row, name)
        return np.asarray(values.to_numpy(zero_copy_only=False)).reshape(-1, self.n_features)

    def _refuse_missing(self, column: Any, name: str, at: int) -> None:
        if column.null_count:
            self._refuse_row(at + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False))), name)

    def _refuse_row(self, row: int, name: str) -> None:
        raise ValueError(
            f"{self.name} lacks a value in row {row} of column {name!r}: fill it in, or drop the row."
        )

    @staticmethod
    @contextmanager
    def _explained(name: str) -> Iterator[None]:
        pa = needed("pyarrow", "Parquet and Arrow files")
        try:
            yield
        except pa.ArrowException as error:
            text = " ".join(str(error).split()).rstrip(".")
            raise ValueError(f"{name} cannot be read: {text}. Is it cut off, or of another kind?") from None
        except OSError as error:
            if error.errno is not None:  # the file system's own words
                raise
            raise ValueError(f"{name} cannot be read: {error}. Is it cut off, or of another kind?") from None


class ParquetTable(ArrowTable):
    """A Parquet file."""

    @contextmanager
    def _opened(self, columns: list[int] | None = None, step: int = 1) -> Iterator[tuple[Any, int, Any]]:
        parquet = needed("pyarrow.parquet", "Parquet files")
        # Read as they are decoded: pre_buffer would hold whole groups of rows.
        with parquet.ParquetFile(self._file.path, pre_buffer=False, buffer_size=1 << 20) as file:
            schema = file.schema_arrow
            names = None if columns is None else [schema.names[i] for i in columns]
            batches = file.iter_batches(step, columns=names, use_threads=False)
            yield schema, file.metadata.num_rows, _in_order(batches, names)


class IpcTable(ArrowTable):
    """An Arrow or Feather file, in the file format of Arrow's inter-process communication."""

    @contextmanager
    def _opened(self, columns: list[int] | None = None, step: int = 1) -> Iterator[tuple[Any, int | None, Any]]:  # noqa: ARG002
        pa = needed("pyarrow", "Arrow and Feather files")
        with pa.OSFile(str(self._file.path)) as file, pa.ipc.open_file(file) as reader:
            names = None if columns is None else [reader.schema.names[i] for i in columns]
            batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
            yield reader.schema, None, _in_order(batches, names)


def _in_order(batches: Any, names: list[str] | None) -> Iterator[Any]:
    """Batches with the chosen columns alone, in the order in which they were asked for."""
    for batch in batches:
        if batch.num_rows:
            yield batch if names is None else batch.select(names)


def _choose(name: str, schema: Any, columns: list[str | int] | None) -> list[int]:
    """Numbers of the columns to read."""
    if len(set(schema.names)) < len(schema.names):
        raise ValueError(f"{name} has several columns of one name: rename them.")
    lists = [i for i, field in enumerate(schema) if _is_list(field.type)]
    if columns is None and len(lists) > 1:
        raise ValueError(
            f"{name} has several columns of vectors, {', '.join(schema.names[i] for i in lists)}: choose one with "
            f"columns=."
        )
    chosen = lists if columns is None and lists else choose_columns(name, schema.names, len(schema.names), columns)
    if len(chosen) > 1 and any(i in lists for i in chosen):
        raise ValueError(f"{name}: choose one column of vectors, or columns of numbers, not both.")
    return chosen


def _is_list(kind: Any) -> bool:
    types = needed("pyarrow", "Parquet and Arrow files").types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _numpy_type(name: str, field: Any, kind: Any = None) -> np.dtype[Any]:
    kind = field.type if kind is None else kind
    types = needed("pyarrow", "Parquet and Arrow files").types
    if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
        raise ValueError(
            f"{name} has a column {field.name!r} of {kind}, but real numbers are needed: choose others, with "
            f"columns=."
        )
    dtype: np.dtype[Any] = np.dtype(kind.to_pandas_dtype())
    return dtype


def _list_width(name: str, field: Any, place: int, batches: Any) -> tuple[int, np.dtype[Any]]:
    """Length of the vectors in a column, and their type."""
    dtype = _numpy_type(name, field, field.type.value_type)
    if needed("pyarrow", "Parquet and Arrow files").types.is_fixed_size_list(field.type):
        return field.type.list_size, dtype
    first = next(iter(batches), None)
    if first is None:
        raise ValueError(f"{name} holds no rows. Give at least one.")
    value = first.column(place)[0]
    return (len(value) if value.is_valid else 0), dtype


def _ragged(column: Any, width: int) -> bool:
    """Whether lists in a column differ in length."""
    types = needed("pyarrow", "Parquet and Arrow files").types
    if types.is_fixed_size_list(column.type):
        return False
    return bool((np.diff(column.offsets.to_numpy()) != width).any())
