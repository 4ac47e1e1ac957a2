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
        self._stacks = [np.empty((workers.n_threads, *shape)) for shape in shapes]
        self._begun = [False] * workers.n_threads

    def of(self, thread: int) -> list[np.ndarray]:
        """Those of a thread, float64, which are 0 when it first asks."""
        sums: list[np.ndarray] = [stack[thread] for stack in self._stacks]
        if not self._begun[thread]:
            for array in sums:
                array[:] = 0.0
            self._begun[thread] = True
        return sums

    def total(self) -> list[np.ndarray]:
        """All of them together, in arrays of their own; to be asked for once."""
        if not any(self._begun):
            self.of(0)
        begun = [thread for thread, has_begun in enumerate(self._begun) if has_begun]
        stacks, self._stacks = self._stacks, []
        if len(self._begun) == 1:
            return [stack[0] for stack in stacks]
        totals = [np.empty(stack.shape[1:]) for stack in stacks]

        def add(_thread: int, first: int, last: int) -> None:
            for stack, total in zip(stacks, totals, strict=True):
                # At one go, where all have begun: between two calls of NumPy threads wait for each other.
                terms = stack[:, first:last] if len(begun) == len(stack) else stack[begun, first:last]
                np.add.reduce(terms, axis=0, out=total[first:last])

        self.workers.run(add, len(totals[0]), MOVING * len(begun) * sum(total.size for total in totals))
        return totals
