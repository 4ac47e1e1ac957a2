"""A fit over Dask with one worker and with two, each of one thread, beside the local one.

    python benchmarks/dask_scaling.py                 # covtype from $VCGMM_DATA
    python benchmarks/dask_scaling.py --set mixture   # a million points of a synthetic mixture

Needs the extra `dask`.  The rows lie in the workers' memory before the clock starts, and a small fit has loaded
all kernels.  The client has one thread too: it seeds, and runs EM where that is gathered.  Coreset, seeding and EM
are the fit's own `timings_`; predict is the labels of all rows, which stay on the workers.
"""

from __future__ import annotations

import argparse
import logging
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait
from machine import mixture
from sets import SETS, load
from sklearn.exceptions import ConvergenceWarning

from vcgmm import VCGMM
from vcgmm.distributed import DaskVCGMM

COLUMNS = ("fit", "workers", "coreset", "seeding", "EM", "iterations", "an iteration", "predict", "error")


def read_rows(path: str, first: int, last: int) -> np.ndarray:
    """Rows first to last - 1 of an .npy file."""
    return np.array(np.load(path, mmap_mode="r")[first:last])


def as_dask(path: Path, shape: tuple[int, ...], dtype: Any, n_partitions: int) -> da.Array:
    """An .npy file that every worker reads its own partitions of."""
    bounds = [shape[0] * i // n_partitions for i in range(n_partitions + 1)]
    read = dask.delayed(read_rows)
    parts = [
        da.from_delayed(read(str(path), first, last), (last - first, shape[1]), dtype)
        for first, last in pairwise(bounds)
    ]
    return da.concatenate(parts)


@contextmanager
def cluster_of(n_workers: int) -> Iterator[Client]:
    """Workers of one thread in processes of their own."""
    with (
        LocalCluster(
            n_workers=n_workers, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.ERROR
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def measure(
    name: str, n_workers: str, fit: Callable[[], VCGMM], predict: Callable[[VCGMM], Any], X: Any
) -> list[str]:
    """A row of the table."""
    model = fit()
    begun = time.perf_counter()
    predict(model)
    seconds = time.perf_counter() - begun
    steps = model.timings_
    return [
        name,
        n_workers,
        *(f"{steps[step]:.2f} s" for step in ("coreset", "seeding", "em")),
        str(model.n_iter_),
        f"{1000 * steps['em'] / model.n_iter_:.0f} ms",
        f"{seconds:.2f} s",
        f"{model.quantization_error(X):.5g}",
    ]


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--set", default="covtype", help=f"mixture, {', '.join(SETS)}, or an .npy file")
    parser.add_argument("--clusters", type=int, help="default: the set's own, 2,000 for a mixture")
    parser.add_argument("--coreset", type=int, help="points drawn (default: all)")
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--partitions", type=int, default=16)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    arguments = parser.parse_args()
    X = (
        mixture(1_000_000, 32, 4_000, np.random.default_rng(0))
        if arguments.set == "mixture"
        else load(arguments.set)
    )
    X = np.ascontiguousarray(X, np.float32)
    n_clusters = arguments.clusters or SETS.get(arguments.set, 2_000)
    settings: dict[str, Any] = {
        "n_components": n_clusters,
        "coreset_size": arguments.coreset,
        "max_iter": arguments.iterations,
        "tol": 0.0,
        "random_state": 0,
    }
    warnings.simplefilter("ignore", ConvergenceWarning)
    print(f"{arguments.set}: {X.shape[0]:,} × {X.shape[1]}, C = {n_clusters:,}\n")
    print(f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|", flush=True)
    small = {**settings, "n_components": 200, "coreset_size": None, "max_iter": 2}
    for n_threads in (1, 2):
        VCGMM(**small, n_threads=n_threads).fit(X[:20_000]).predict(X[:5_000])
        row = measure(
            f"local, {n_threads} thread(s)",
            "–",
            lambda n_threads=n_threads: VCGMM(**settings, n_threads=n_threads).fit(X),
            lambda model: model.predict(X),
            X,
        )
        print(f"| {' | '.join(row)} |", flush=True)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        np.save(path, X)
        for n_workers in arguments.workers:
            with cluster_of(n_workers):
                lazy = as_dask(path, X.shape, X.dtype, arguments.partitions).persist()
                wait(lazy)
                for em in ("gathered", "distributed"):
                    DaskVCGMM(**small, em=em, n_threads=1).fit(lazy[:20_000]).quantization_error(lazy[:20_000])
                    row = measure(
                        em,
                        str(n_workers),
                        lambda em=em, lazy=lazy: DaskVCGMM(**settings, em=em, n_threads=1).fit(lazy),
                        lambda model, lazy=lazy: wait(model.predict(lazy).persist()),
                        lazy,
                    )
                    print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
