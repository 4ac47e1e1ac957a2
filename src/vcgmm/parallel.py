"""Threads that run kernels over chunks of work, with BLAS held to one thread each."""

from __future__ import annotations

import math
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from itertools import islice
from types import TracebackType
from typing import TypeVar

from threadpoolctl import LibController, ThreadpoolController

#: Chunks per thread: enough that a slow one does not leave the others waiting, and the later, the smaller.
CHUNKS_PER_THREAD = 8

Task = TypeVar("Task")
Result = TypeVar("Result")

#: A thread is woken for work of this effort, some tenths of a millisecond: to wake it and to wait for it takes as
#: long, and several times as long where its CPU is busy.  Less than that the caller does alone.
WORTH_WAKING = 1 << 22

#: A chunk is worth this share of that: to take one and to call a kernel takes some hundredths of a millisecond.
WORTH_TAKING = 1 / 8

#: Effort for a number that is fetched, moved or added up by itself, and for one of many read in a row.
MOVING, READING = 8, 4

#: Tasks of `Workers.in_order` that are under way or done and not yet taken, beyond one per thread.
IN_HAND = 2

_blas_lock = threading.Lock()
_blas_users = 0
_blas_before: list[tuple[LibController, int]] = []
_blas_known: tuple[int, ThreadpoolController] | None = None


def _blas_libraries() -> ThreadpoolController:
    """The BLAS libraries of this process; to look for them takes milliseconds, so only after further imports."""
    global _blas_known
    if _blas_known is None or _blas_known[0] != len(sys.modules):
        libraries = ThreadpoolController()
        _blas_known = len(sys.modules), libraries
    return _blas_known[1]


def _hold_blas() -> None:
    """Limit BLAS to one thread, once for all fits that run at the same time in this process."""
    global _blas_users
    with _blas_lock:
        if _blas_users == 0:  # as `ThreadpoolController.limit` does it, which takes longer by all that it looks at
            for library in _blas_libraries().lib_controllers:
                if library.user_api == "blas":
                    _blas_before.append((library, library.get_num_threads()))
                    library.set_num_threads(1)
        _blas_users += 1


def _release_blas() -> None:
    global _blas_users
    with _blas_lock:
        _blas_users -= 1
        if _blas_users == 0:
            for library, n_threads in _blas_before:
                library.set_num_threads(n_threads)
            _blas_before.clear()


def available_threads() -> int:
    """Number of CPUs this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every platform
        return os.cpu_count() or 1


def _cuts(n_tasks: int, n_chunks: int) -> list[int]:
    """Where chunks begin, and the end of the last: each smaller than the one before, if there are enough tasks."""
    power = 2 if n_tasks >= n_chunks**2 else 1
    return [n_tasks - n_tasks * (n_chunks - chunk) ** power // n_chunks**power for chunk in range(n_chunks + 1)]


class Workers:
    """A few threads for the length of one call of the public API.

    Results must not depend on how many there are: work is cut into tasks by the data alone, each task writes to
    places of its own, and what is summed per thread is summed exactly (`kernels.parts.exact_sums`).

    Parameters
    ----------
    n_threads : int or None
        None: one per available CPU.
    """

    def __init__(self, n_threads: int | None = None) -> None:
        self.n_threads = n_threads or available_threads()
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> Workers:
        """Take the threads and hold BLAS to one thread."""
        _hold_blas()
        if self.n_threads > 1:
            self._pool = ThreadPoolExecutor(self.n_threads, thread_name_prefix="vcgmm")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give the threads back."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None
        _release_blas()

    @property
    def in_hand(self) -> int:
        """Tasks of `in_order` that are in memory at a time, unless more are asked for."""
        return self.n_threads + IN_HAND

    def run(self, work: Callable[[int, int, int], None], n_tasks: int, effort: float = math.inf) -> None:
        """Call work(thread, first, last) until all of range(n_tasks) is covered.

        Parameters
        ----------
        work : callable
            `thread` is below `n_threads` and never used by two calls at the same time.
        n_tasks : int
        effort : float
            Of all tasks: about how many products a kernel would form in that time, of which it forms some ten in a
            nanosecond.
        """
        n_others = self.n_threads - 1
        if effort < n_others * WORTH_WAKING:
            n_others = int(effort // WORTH_WAKING)
        if self._pool is None or n_tasks <= 1 or n_others == 0:
            if n_tasks > 0:
                work(0, 0, n_tasks)
            return
        n_chunks = min(n_tasks, (1 + n_others) * CHUNKS_PER_THREAD)
        if effort < n_chunks * WORTH_TAKING * WORTH_WAKING:
            n_chunks = int(effort / (WORTH_TAKING * WORTH_WAKING))
        cuts = _cuts(n_tasks, n_chunks)
        chunks = iter(range(len(cuts) - 1))
        held = [work]  # a call that was called off stays in a queue for a while, and is to keep no arrays
        lock = threading.Lock()
        stopped = threading.Event()

        def consume(thread: int) -> None:
            while True:
                with lock:
                    chunk = None if stopped.is_set() else next(chunks, None)
                if chunk is None:
                    return
                try:
                    held[0](thread, cuts[chunk], cuts[chunk + 1])
                except BaseException:
                    stopped.set()
                    raise

        # The caller works too: it is awake, which others take longer to become than many a task takes.
        others = [self._pool.submit(consume, thread) for thread in range(1, 1 + n_others)]
        try:
            consume(0)
        finally:
            stopped.set()  # after an error or an interruption, nobody takes another chunk
            others = [other for other in others if not other.cancel()]  # who has not begun, need not
            wait(others)
            held.clear()
        for other in others:
            other.result()

    def in_order(
        self,
        work: Callable[[Task], Result],
        tasks: Generator[Task, None, None],
        *,
        batch: int | None = None,
        effort: float = math.inf,
    ) -> Generator[tuple[Task, Result], None, None]:
        """Every task with what work(task) gives, in the order of the tasks, while further ones are worked on.

        Parameters
        ----------
        work : callable
            May be called for several tasks at the same time.
        tasks : generator
            Taken from this thread, as late as possible: few are in memory at a time.  Closed at the end, whatever
            happens; so should be what this returns.
        batch : int or None
            So many tasks may be in memory, and their results: then threads take one after the other of these by
            themselves, and nobody waits for a single one, which takes longer than a small task.
        effort : float
            Of all tasks, as in `run`; it counts where there is a batch.
        """
        with closing(tasks):
            if batch is not None:
                while some := list(islice(tasks, batch)):
                    yield from self._all_of(work, some, effort)
                    some.clear()  # before the next ones are made
                return
            if self._pool is None:
                for task in tasks:
                    yield task, work(task)
                return
            waiting: deque[tuple[Task, Future[Result]]] = deque()
            try:
                for task in tasks:
                    waiting.append((task, self._pool.submit(work, task)))
                    if len(waiting) >= self.in_hand:
                        done, future = waiting.popleft()
                        yield done, future.result()
                while waiting:
                    done, future = waiting.popleft()
                    yield done, future.result()
            finally:  # after an error or an interruption, nothing goes on behind our back
                for _, future in waiting:
                    future.cancel()
                wait([future for _, future in waiting])

    def _all_of(
        self, work: Callable[[Task], Result], tasks: list[Task], effort: float
    ) -> Iterator[tuple[Task, Result]]:
        """As `in_order`, once all are done; of several errors the one that comes first in that order is raised."""
        results: dict[int, Result] = {}
        errors: dict[int, Exception] = {}

        def take(_thread: int, first: int, last: int) -> None:
            for i in range(first, last):
                try:
                    results[i] = work(tasks[i])
                except Exception as error:  # raised when it is its turn
                    errors[i] = error

        self.run(take, len(tasks), effort)
        for i, task in enumerate(tasks):
            if i in errors:
                raise errors[i]
            yield task, results.pop(i)
