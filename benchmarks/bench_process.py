"""A process that holds one data set and fits one library's settings to it when asked."""

from __future__ import annotations

import contextlib
import multiprocessing as mp
import time
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np


class BenchProcess:
    """Libraries with thread pools of their own disturb each other in one process: each family gets its own.

    Parameters
    ----------
    data : Path
        A C-ordered float32 .npy file.
    systems : list of System
    n_threads : int
    """

    def __init__(self, data: Path, systems: list, n_threads: int) -> None:
        self.data, self.systems, self.n_threads = data, systems, n_threads
        self._start()

    def _start(self) -> None:
        context = mp.get_context("fork")  # forked before any thread pool exists: the parent only reads and writes
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(
            target=serve, args=(theirs, self.data, self.systems, self.n_threads), daemon=True
        )
        self.process.start()
        self.warm_up = self.pipe.recv()

    def run(self, index: int, n_clusters: int, seed: int, budget: float) -> tuple[float, np.ndarray] | str:
        """Seconds and centres, or why there are none."""
        self.pipe.send((index, n_clusters, seed))
        if not self.pipe.poll(budget):
            self.process.kill()
            self.process.join()
            self._start()
            return f"more than {budget:.0f} s"
        try:
            return self.pipe.recv()
        except EOFError:
            self._start()
            return "died"

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.join()


def serve(pipe: Connection, data: Path, systems: list, n_threads: int) -> None:
    """Warm up on a corner of the data, then fit what is asked for."""
    X = np.load(data)
    begun = time.perf_counter()
    corner = X[:2048].copy()
    for system in systems:
        with contextlib.suppress(Exception):  # what a setting cannot do is told when it is asked to
            system.fit(corner, 40, 0, n_threads)
    pipe.send(time.perf_counter() - begun)
    while True:
        index, n_clusters, seed = pipe.recv()
        begun = time.perf_counter()
        try:
            centres = systems[index].fit(X, n_clusters, seed, n_threads)
        except Exception as error:
            pipe.send(f"{type(error).__name__}: {error}")
            continue
        seconds = time.perf_counter() - begun
        pipe.send((seconds, np.ascontiguousarray(centres, np.float64)))
