"""A file that must stay as it is while it is read."""

from __future__ import annotations

from pathlib import Path


class WatchedFile:
    """A file and what it was when it was opened.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp = self._look()

    @property
    def size(self) -> int:
        """Bytes, when it was opened."""
        return self._stamp[0]

    def check(self) -> None:
        """Refuse a file that is no longer what it was: passes over it would not see the same rows."""
        if self._look() != self._stamp:
            raise ValueError(
                f"{self.path} has changed since it was opened: leave it alone while it is read, and open it again."
            )

    def _look(self) -> tuple[int, int]:
        facts = self.path.stat()
        return facts.st_size, facts.st_mtime_ns
