"""Columns of a table, by name or by number."""

from __future__ import annotations

from collections.abc import Sequence

Columns = str | int | Sequence[str | int] | None


def as_list(columns: Columns) -> list[str | int] | None:
    """One or several columns as a list; None for all."""
    if columns is None:
        return None
    return [columns] if isinstance(columns, str | int) else list(columns)


def choose_columns(name: str, names: Sequence[str] | None, n_columns: int, columns: Columns) -> list[int]:
    """Numbers of the columns that are asked for, in the order in which they are.

    Parameters
    ----------
    name : str
        The file, for error messages.
    names : sequence of str or None
        Of all columns, where they have any.
    n_columns : int
    columns : str, int, sequence of them, or None
        None: all.

    Raises
    ------
    ValueError
        If there is no such column.
    """
    wanted = as_list(columns)
    if wanted is None:
        return list(range(n_columns))
    listed = f"columns 0 to {n_columns - 1}" if names is None else f"the columns {', '.join(names)}"
    chosen = []
    for column in wanted:
        if isinstance(column, str):
            if names is None or column not in names:
                raise ValueError(f"{name} has no column {column!r}: it has {listed}. Choose from these.")
            if list(names).count(column) > 1:
                raise ValueError(f"{name} has several columns {column!r}: rename them, or choose by number.")
            chosen.append(list(names).index(column))
        elif 0 <= column < n_columns:
            chosen.append(column)
        else:
            raise ValueError(f"{name} has no column {column}: it has {listed}. Choose from these.")
    return chosen
