"""A fit to a file that is larger than memory: how fast it is read, what it needs, and where the time goes.

    python benchmarks/out_of_core.py --folder /some/disk

makes a file of 10 million × 768 float32 (30.7 GB) in that folder, reads it plainly from end to end, fits 4,096
clusters to a coreset of 262,144 rows of it, reads it plainly again, and removes it.  Peak memory is that of the
process that reads and fits; the file is made by another one.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import vcgmm

#: Rows that are made at a time, and bytes of one plain read.
ROWS = 1 << 14
READ = 1 << 23


def make(path: Path, n_samples: int, n_features: int, n_true: int) -> None:
    """Write a mixture to an .npy file, and have the system forget what it has kept of it in memory."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(n_true, n_features)).astype(np.float32)
    noise = rng.normal(size=(8 * ROWS, n_features)).astype(np.float32)
    header = {"descr": "<f4", "fortran_order": False, "shape": (n_samples, n_features)}
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for first in range(0, n_samples, ROWS):
            n = min(ROWS, n_samples - first)
            start = int(rng.integers(len(noise) - n))
            block = noise[start : start + n] * np.float32(0.5 + rng.random())
            block += centres[rng.integers(n_true, size=n)]
            file.write(block.data)
        file.flush()
        os.fsync(file.fileno())
    forget(path)


def forget(path: Path) -> None:
    """Drop a file from the system's cache, so that reading it means reading the disk."""
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read_plainly(path: Path) -> float:
    """Seconds to read a file from end to end into one buffer, with the system told so, as our own reading does."""
    buffer = bytearray(READ)
    begun = time.perf_counter()
    with path.open("rb", buffering=0) as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_SEQUENTIAL)
        while file.readinto(buffer):
            pass
    return time.perf_counter() - begun


def peak() -> float:
    """Most memory that this process has held so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


def main() -> None:
    """Make, read, fit, read, remove."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="where to make the file, which is removed")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--features", type=int, default=768)
    parser.add_argument("--coreset", type=int, default=262_144)
    parser.add_argument("--clusters", type=int, default=4_096)
    parser.add_argument("--make", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.make:
        make(arguments.make, arguments.rows, arguments.features, 2 * arguments.clusters)
        return
    path = arguments.folder / "out_of_core.npy"
    try:
        begun = time.perf_counter()
        subprocess.run([sys.executable, __file__, "--make", str(path), *sys.argv[1:]], check=True)
        made = time.perf_counter() - begun
        measure(path, arguments.coreset, arguments.clusters, made)
    finally:
        path.unlink(missing_ok=True)


def measure(path: Path, coreset_size: int, n_components: int, made: float) -> None:
    """Read and fit, and print the figures."""
    size = path.stat().st_size
    small = np.random.default_rng(0).normal(size=(5000, 64)).astype(np.float32)
    vcgmm.VCGMM(50, coreset_size=2000).fit(small)  # kernels are loaded
    print(f"file: {size / 1e9:.1f} GB, made in {made:.0f} s; memory before: {peak() / 1e9:.2f} GB", flush=True)
    plain = [read_plainly(path)]
    forget(path)
    begun = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = vcgmm.VCGMM(n_components, coreset_size=coreset_size, random_state=0, verbose=1)
        model.fit(vcgmm.open(path))
    total = time.perf_counter() - begun
    forget(path)
    plain.append(read_plainly(path))
    rate, limit = 2 * size / model.timings_["coreset"] / 1e9, 2 * size / sum(plain) / 1e9
    coreset = model.coreset_.points.nbytes
    print(f"plain reading, before and after: {', '.join(f'{size / seconds / 1e9:.2f}' for seconds in plain)} GB/s")
    print(f"coreset, two passes: {rate:.2f} GB/s, {rate / limit:.0%} of plain reading (target 70 %)")
    steps = ", ".join(f"{step} {seconds:.1f} s" for step, seconds in model.timings_.items())
    print(f"{steps}; in all {total:.1f} s")
    print(f"{len(model.coreset_):,} points, {n_components:,} clusters, {model.n_iter_} iterations")
    print(
        f"peak memory {peak() / 1e9:.2f} GB, of which the coreset is {coreset / 1e9:.2f} GB: "
        f"{(peak() - coreset) / 1e9:.2f} GB beyond it (target 2 GB)"
    )


if __name__ == "__main__":
    main()
