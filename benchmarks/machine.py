"""What measurements of speed and memory share: the machine's own limits, and data to measure on."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np

from vcgmm.parallel import Workers

#: Rows that a mixture is made of at a time.
ROWS = 1 << 16

#: Values that are read at a time.
VALUES = 1 << 20


def sgemm_rate(workers: Workers, repeats: int = 5) -> float:
    """Operations a second of large matrix products, one on each thread: the best of some."""
    A = np.random.default_rng(0).random((2048, 2048), dtype=np.float32)
    best = np.inf

    def multiply(_thread: int, first: int, last: int) -> None:
        for _ in range(first, last):
            A @ A

    for _ in range(repeats):
        begun = time.perf_counter()
        workers.run(multiply, workers.n_threads)
        best = min(best, time.perf_counter() - begun)
    return workers.n_threads * 2 * 2048**3 / best


def read_rate(array: np.ndarray, workers: Workers, repeats: int = 3) -> float:
    """Bytes a second at which the threads read a contiguous array from end to end: the best of some.

    They look for the largest value, the fastest of NumPy's reductions.
    """
    flat = array.reshape(-1)
    best = np.inf

    def read(_thread: int, first: int, last: int) -> None:
        for i in range(first, last):
            flat[i * VALUES : (i + 1) * VALUES].max()

    for _ in range(repeats):
        begun = time.perf_counter()
        workers.run(read, -(-len(flat) // VALUES))
        best = min(best, time.perf_counter() - begun)
    return float(flat.nbytes / best)


def mixture(n_samples: int, n_features: int, n_clusters: int, seed: int = 0, n_latent: int = 16) -> np.ndarray:
    """Points of a Gaussian mixture with clusters that overlap and are of unequal size, (N, D) float32.

    The centres fill `n_latent` directions, as real data fill few; noise goes in all.  Made block by block: needs
    no more memory than the points and the centres.
    """
    rng = np.random.default_rng(seed)
    n_latent = min(n_latent, n_features)
    directions = np.linalg.qr(rng.standard_normal((n_features, n_latent)))[0].T.astype(np.float32)
    centres = rng.standard_normal((n_clusters, n_latent), dtype=np.float32) @ directions
    shares = np.cumsum(rng.lognormal(sigma=1.0, size=n_clusters))
    X = np.empty((n_samples, n_features), np.float32)
    for first in range(0, n_samples, ROWS):
        block = X[first : first + ROWS]
        rng.standard_normal(out=block, dtype=np.float32)
        block *= np.float32(0.5)
        block += centres[np.searchsorted(shares, rng.random(len(block)) * shares[-1])]
    return X


def resident() -> int:
    """Bytes of memory that this process has now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def forget_peak() -> None:
    """Let `peak` count from now on."""
    Path("/proc/self/clear_refs").write_text("5")


def peak() -> int:
    """Most bytes of memory that this process has had since `forget_peak`, or ever.

    The kernel's own mark, as ru_maxrss is, but for this process alone: a child begins with its parent's ru_maxrss.
    """
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.split("VmHWM:")[1].split()[0])


def verdict(value: float, target: float, *, at_least: bool = False) -> str:
    """Whether a value keeps to its target."""
    return "yes" if (value >= target if at_least else value <= target) else "no"
