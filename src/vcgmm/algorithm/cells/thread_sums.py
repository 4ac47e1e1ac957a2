"""Sums that every thread adds to by itself, and that are added up in the end.

They are exact (`kernels.parts.exact_sums`), so how threads share what is added does not matter.  With many threads
and many clusters there is much of them: each thread sets its own to 0 when it first adds something, all of them
together add up, and a thread that has nothing to do costs nothing.
"""

from __future__ import annotations

import numpy as np

from ...parallel import MOVING, Workers


class ThreadSums:
    """Sums over the same clusters, of some shapes.

    Parameters
    ----------
    workers : Workers
    *shapes : (C, ...) each
    """

    def __init__(self, workers: Workers, *shapes: tuple[int, ...]) -> None:
        self.workers = workers
        self._begun = [False] * workers.n_threads
        # Of two threads the first takes over what the second has, and its memory is given back.
        n = workers.n_threads
        self._sums = [np.empty((n, *shape)) if n > 2 else [np.empty(shape) for _ in range(n)] for shape in shapes]

    def of(self, thread: int) -> list[np.ndarray]:
        """Those of a thread, float64, which are 0 when it first asks."""
        own: list[np.ndarray] = [sums[thread] for sums in self._sums]
        if not self._begun[thread]:
            for array in own:
                array[:] = 0.0
            self._begun[thread] = True
        return own

    def total(self) -> list[np.ndarray]:
        """All of them together; to be asked for once."""
        begun = [thread for thread, has_begun in enumerate(self._begun) if has_begun] or [0]
        totals = self.of(begun[0])
        of_all, self._sums = self._sums, []
        if len(begun) == 1:
            return totals
        if len(self._begun) > 2:
            totals = [np.empty_like(total) for total in totals]

        def add(_thread: int, first: int, last: int) -> None:
            for total, sums in zip(totals, of_all, strict=True):
                if isinstance(sums, list):
                    total[first:last] += sums[1][first:last]
                else:  # at one go, where all have begun: between two calls of NumPy threads wait for each other
                    terms = sums[:, first:last] if len(begun) == len(sums) else sums[begun, first:last]
                    np.add.reduce(terms, axis=0, out=total[first:last])

        self.workers.run(add, len(totals[0]), MOVING * len(begun) * sum(total.size for total in totals))
        return totals
