"""Results as they come: a CSV that grows line by line, so that a study goes on where it stopped."""

from __future__ import annotations

import csv
from pathlib import Path


class Results:
    """A CSV that grows line by line.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[dict[str, str]] = []
        if path.exists():
            with path.open(newline="") as stream:
                self.rows = list(csv.DictReader(stream))

    def add(self, row: dict[str, str]) -> None:
        """Append a line, on disk before the next fit starts."""
        new = not self.path.exists()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", newline="") as stream:
            writer = csv.DictWriter(stream, list(row))
            if new:
                writer.writeheader()
            writer.writerow(row)
        self.rows.append(row)

    def find(self, **values: object) -> list[dict[str, str]]:
        """Lines that have these values in these columns."""
        return [row for row in self.rows if all(row[name] == str(value) for name, value in values.items())]
