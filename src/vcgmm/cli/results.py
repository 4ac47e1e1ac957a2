"""Results of commands: a table for people, or one JSON object for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import typer
from rich.table import Table
from rich.text import Text

from vcgmm.progress.display import make_console


def tell(result: Mapping[str, Any], rows: Mapping[str, str], *, as_json: bool, quiet: bool) -> None:
    """Print a result on standard output.

    Parameters
    ----------
    result : mapping
        For programs.
    rows : mapping
        The same for people: names and texts.
    as_json, quiet : bool
    """
    if as_json:
        typer.echo(json.dumps(plain(result), allow_nan=False))
    elif not quiet:
        show(rows)


def show(rows: Mapping[str, str], title: str = "") -> None:
    """Print names and texts side by side, under a title where there is one."""
    console = make_console(stderr=False)
    if title:
        console.print()
        console.print(Text(title, style="bold cyan"))
    if not console.is_terminal:  # whole lines, however long, and no blanks at their ends
        width = max(map(len, rows), default=0)
        for name, text in rows.items():
            typer.echo(f"{name:<{width}}  {text}")
        return
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in rows.items():
        table.add_row(Text(name), Text(text))
    console.print(table)


def plain(value: Any) -> Any:
    """Anything of a model as JSON: arrays become lists, and numbers that are not finite null."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else repr(value)


def file_size(n_bytes: int) -> str:
    """Bytes in a unit that suits them."""
    size = float(n_bytes)
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 999.5:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:,.3g} TB"
