"""Several sources, one after the other, as one."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import accumulate

import numpy as np

from .source import Fill, Source


class ShardedSource(Source):
    """The rows of several sources.

    Parameters
    ----------
    shards : sequence of Source
        Of the same width, type and, where they have any, names of columns.
    name : str
    """

    def __init__(self, shards: Sequence[Source], name: str) -> None:
        first = shards[0]
        for shard in shards[1:]:
            for what, ours, theirs in (
                ("features", shard.n_features, first.n_features),
                ("values of type", shard.dtype, first.dtype),
                ("columns named", shard.columns, first.columns),
            ):
                if ours != theirs:
                    raise ValueError(
                        f"{shard.name} has {_listed(what, ours)}, but {first.name} has {_listed(what, theirs)}: "
                        f"the files of {name} must be alike. Convert it, or move it elsewhere."
                    )
        super().__init__(name, None, first.n_features, first.dtype, first.columns)
        self.shards = list(shards)
        self._known_starts: list[int] | None = None

    @property
    def _starts(self) -> list[int]:
        """Index of every shard's first row, and the number of all rows."""
        if self._known_starts is None:
            self._known_starts = [0, *accumulate(shard.n_samples for shard in self.shards)]
        return self._known_starts

    def _count(self) -> int:
        return self._starts[-1]

    @contextmanager
    def cursor(self) -> Iterator[Fill]:
        """Begin a pass over all rows."""
        waiting = iter(self.shards)
        with ExitStack() as stack:
            current: Fill | None = None
            shard: Source | None = None
            given = 0

            def fill(rows: np.ndarray, weights: np.ndarray | None) -> int:
                nonlocal current, shard, given
                n = 0
                while n < len(rows):
                    if current is None:
                        shard = next(waiting, None)
                        if shard is None:
                            break
                        current, given = stack.enter_context(shard.cursor()), 0
                    more = current(rows[n:], None if weights is None else weights[n:])
                    n, given = n + more, given + more
                    if n < len(rows):
                        stack.close()  # its file, and with it the last look at whether it has changed
                        if shard is not None:
                            shard.check_count(given)
                        current = None
                return n

            yield fill

    def take(self, indices: np.ndarray) -> np.ndarray:
        """Rows with these indices."""
        out = np.empty((len(indices), self.n_features), self.dtype)
        places = np.searchsorted(self._starts, indices, side="right") - 1
        for place in np.unique(places):
            here = places == place
            out[here] = self.shards[place].take(np.asarray(indices)[here] - self._starts[place])
        return out

    def locate(self, row: int) -> str:
        """A row in words: of which shard, and of all."""
        place = bisect_right(self._starts, row) - 1
        shard = self.shards[place]
        return f"{shard.name}, {shard.locate(row - self._starts[place])} (row {row} of all)"


def _listed(what: str, value: object) -> str:
    if value is None:
        return "no names of columns"
    if what == "features":
        return f"{value} features"
    return f"{what} {', '.join(value) if isinstance(value, tuple) else value}"
