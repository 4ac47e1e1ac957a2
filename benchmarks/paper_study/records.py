"""What came out: a file of JSON lines that grows by one line a run."""

from __future__ import annotations

import json
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from vcgmm.parallel import available_threads

from .plan import Entry


def machine() -> str:
    """The processor and the number of cores at hand."""
    model = platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [
            line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line
        ]
        model = names[0] if names else model
    return f"{model}, {available_threads()} cores"


def versions() -> str:
    """Of all that computes."""
    packages = ("vcgmm", "numpy", "numba", "scikit-learn")
    return ", ".join([f"Python {platform.python_version()}", *(f"{name} {version(name)}" for name in packages)])


class Records:
    """A file of JSON lines.

    Parameters
    ----------
    path : Path
        Made when the first line is written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: list[dict] = []
        if path.exists():
            self.lines = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]

    def add(self, kind: str, facts: dict) -> None:
        """Append a line, on disk before the next run starts."""
        when = datetime.now(UTC).isoformat(timespec="seconds")
        line = {"kind": kind, **facts, "when": when, "machine": machine(), "versions": versions()}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as stream:
            stream.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")
        self.lines.append(line)

    def of(self, kind: str) -> list[dict]:
        """All lines of a kind."""
        return [line for line in self.lines if line["kind"] == kind]

    def find(self, entry: Entry) -> dict | None:
        """What came out of a run, or None where it has not been made."""
        key = entry.key()
        for line in self.of("run"):
            if all(line[name] == value for name, value in key.items()):
                return line
        return None

    def repetitions(self, entry: Entry) -> list[dict]:
        """What came out of all runs that differ from this one by their seed alone."""
        key = {name: value for name, value in entry.key().items() if name != "seed"}
        return [line for line in self.of("run") if all(line[name] == value for name, value in key.items())]
