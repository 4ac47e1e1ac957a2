"""The page of results: tables between their marks are renewed, figures are drawn anew."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from .costs import costs_table
from .figures import draw
from .records import Records
from .remarks import threshold_table, warm_up_table
from .scale import scale_table
from .tables import defaults_table, first_table, ratios_table, target_rows

TABLES: dict[str, Callable[[Records], str]] = {
    "targets": target_rows,
    "table1": first_table,
    "baselines": ratios_table,
    "defaults": defaults_table,
    "warm-up": warm_up_table,
    "threshold": threshold_table,
    "costs": costs_table,
    "table2": scale_table,
}


def renew(text: str, name: str, table: str) -> str:
    """The page with what stands between the marks of a table replaced."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    if begin not in text or end not in text:
        raise ValueError(f"The page has no marks {begin} and {end}: put them where the table belongs.")
    return re.sub(f"{begin}.*?{end}", lambda _: f"{begin}\n{table}\n{end}", text, flags=re.DOTALL)


def show(records: Records, page: Path, pictures: Path) -> None:
    """Print all tables, renew them in the page, draw the figures."""
    text = page.read_text() if page.exists() else "".join(f"<!-- begin {n} --><!-- end {n} -->\n" for n in TABLES)
    for name, make in TABLES.items():
        table = make(records)
        print(f"\n{name}\n\n{table}")
        text = renew(text, name, table)
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(text)
    for path in draw(records, pictures):
        print(path)
