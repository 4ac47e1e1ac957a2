"""Sums that every thread adds to by itself, and that are added up in the end.

They are exact (`kernels.exact_sums`), so how threads share what is added does not matter.  With many threads and
many clusters there is much of them: each thread sets its own to 0 when it first adds something, all of them
together add up, and a thread that has nothing to do costs nothing.
"""

from __future__ import annotations

import numpy as np

from ..parallel import MOVING, Workers


class ThreadSums:
    """Sums over the same clusters, of some shapes.

    Parameters
    ----------
    workers : Workers
    *shapes : (C, ...) each
    """

    def __init__(self, workers: Workers, *shapes: tuple[int, ...]) -> None:
        self.workers = workers
        self._arrays = [[np.empty(shape) for shape in shapes] for _ in range(workers.n_threads)]
        self._begun = [False] * workers.n_threads

    def of(self, thread: int) -> list[np.ndarray]:
        """Those of a thread, float64, which are 0 when it first asks."""
        if not self._begun[thread]:
            for array in self._arrays[thread]:
                array[:] = 0.0
            self._begun[thread] = True
        return self._arrays[thread]

    def total(self) -> list[np.ndarray]:
        """All of them together; to be asked for once, since they are added up in place."""
        begun = [arrays for arrays, has_begun in zip(self._arrays, self._begun, strict=True) if has_begun]
        sums, *others = begun or [self.of(0)]
        self._arrays = []

        def add(_thread: int, first: int, last: int) -> None:
            for other in others:
                for mine, its in zip(sums, other, strict=True):
                    mine[first:last] += its[first:last]

        if others:
            size = sum(array.size for array in sums)
            self.workers.run(add, len(sums[0]), MOVING * size * len(others))
        return sums
