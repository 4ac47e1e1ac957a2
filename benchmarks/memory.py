"""Peak memory of a fit beyond the data, beside what the algorithm has to hold; and which arrays it goes to.

    python benchmarks/memory.py --output docs/benchmarks/memory.csv
    python benchmarks/memory.py --sets covtype glove50

What it has to hold is O(N'(D + C') + C(D + G)): points N' D of the type computed in, winners N' C' int32, means C
D float64, neighbours C G int32.  Every fit runs in a process of its own, which has the data loaded and the kernels
warmed up on a few of its rows, and has given back what the C library kept of that; the peak is the system's
high-water mark of resident memory during the fit, less what was resident before.  A second process repeats the fit
with every allocation traced, and lists the lines whose arrays were alive at its peak (what kernels allocate for
themselves is not traced; it is small).  "alive" is that peak; where "peak" is well above it, the C library has
kept what was freed.  "kept" is what is still resident after the fit.  Coresets: the default, all points, and 64
draws for each cluster; where the default is all points, it is fitted once.  Needs Linux.
"""

from __future__ import annotations

import argparse
import csv
import ctypes
import gc
import linecache
import multiprocessing as mp
import threading
import tracemalloc
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from machine import forget_peak, mixture, peak, resident, verdict
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sets import SETS, load

import vcgmm
from vcgmm import VCGMM
from vcgmm.algorithm.cells import neighbourhoods

#: Peak over what has to be held, hoped for.
TARGET = 1.5

#: Lines that hold less than this share of what has to be held are not listed.
WORTH_LISTING = 0.03

#: Draws for each cluster, beside the default and all points.
DRAWS = 64

#: What --quick fits, instead of the prepared sets.
QUICK = (20_000, 32, 200)

#: Clusters that are linked by kernels, not by NumPy as few are: those are loaded in the warm-up, too.
MANY = neighbourhoods.FEW + 44

MB = 1e6


@dataclass(frozen=True)
class Line:
    """One fit; sizes in bytes."""

    set: str
    coreset: str
    n_samples: int
    n_features: int
    n_clusters: int
    n_points: int
    data: int
    formula: int
    peak: int
    kept: int
    alive: int = 0

    @property
    def ratio(self) -> float:
        """Peak over what has to be held."""
        return self.peak / self.formula


def formula(n_points: int, n_features: int, n_clusters: int, model: VCGMM, dtype: np.dtype[Any]) -> int:
    """Bytes of N'(D + C') + C(D + G)."""
    points = n_points * n_features * dtype.itemsize
    winners = n_points * min(model.truncation, n_clusters) * 4
    means = n_clusters * n_features * 8
    neighbours = n_clusters * min(model.n_neighbors, n_clusters) * 4
    return points + winners + means + neighbours


def data_of(name: str) -> tuple[np.ndarray, int]:
    """Rows, and the number of clusters."""
    if name == "quick":
        return mixture(*QUICK[:2], 2 * QUICK[2]), QUICK[2]
    return load(name), SETS[name]


def prepare(name: str, coreset: str) -> tuple[np.ndarray, VCGMM]:
    """Rows and the model to fit, with kernels warmed up on a corner of these rows."""
    X, n_clusters = data_of(name)
    corner = X[:2048]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for few in (1024, None):
            for n_few in (64, MANY):
                VCGMM(n_few, coreset_size=few, max_iter=5, random_state=0).fit(corner)
    gc.collect()
    give_back()
    size: Any = {"default": "auto", "all": None}.get(coreset, DRAWS * n_clusters)
    return X, VCGMM(n_clusters, coreset_size=size, random_state=0)


def give_back() -> None:
    """Memory that has been freed goes back to the system: a fit that finds it there would seem to need less."""
    ctypes.CDLL(None).malloc_trim(0)


def measure(name: str, coreset: str) -> Line:
    """Fit in this process, and look at its memory."""
    X, model = prepare(name, coreset)
    before = resident()
    forget_peak()
    model.fit(X)
    most = peak() - before
    gc.collect()
    n_points = len(model.coreset_)
    if coreset == "default" and n_points == len(X):
        coreset = "default: all"
    n_samples, n_features = X.shape
    n_clusters = len(model.means_)
    needed = formula(n_points, n_features, n_clusters, model, model._frame.dtype)
    kept = resident() - before
    return Line(name, coreset, n_samples, n_features, n_clusters, n_points, X.nbytes, needed, most, kept)


class PeakWatch(threading.Thread):
    """Takes a picture of all traced allocations whenever there is more than in the last one."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.done = threading.Event()
        self.most = 0
        self.snapshot: tracemalloc.Snapshot | None = None

    def run(self) -> None:
        """Look every few milliseconds."""
        while not self.done.wait(0.002):
            now = tracemalloc.get_traced_memory()[0]
            if now > 1.02 * self.most:
                self.most = now
                self.snapshot = tracemalloc.take_snapshot()


def trace(name: str, coreset: str) -> tuple[int, list[tuple[str, int]]]:
    """Most bytes alive at once in a fit; lines of the package that hold them and how many, largest first."""
    X, model = prepare(name, coreset)
    package = str(Path(vcgmm.__file__).parent)
    tracemalloc.start(16)
    watch = PeakWatch()
    watch.start()
    model.fit(X)
    watch.done.set()
    watch.join()
    most = tracemalloc.get_traced_memory()[1]
    lines: dict[str, int] = {}
    for statistic in watch.snapshot.statistics("traceback") if watch.snapshot else []:
        frames = [frame for frame in statistic.traceback if frame.filename.startswith(package)]
        if not frames:
            continue
        last = frames[-1]  # the innermost
        place = f"{Path(last.filename).relative_to(package)}:{last.lineno}"
        source = linecache.getline(last.filename, last.lineno).strip()
        lines[f"{place}  {source}"] = lines.get(f"{place}  {source}", 0) + statistic.size
    return most, sorted(lines.items(), key=lambda line: -line[1])


def alone(function: Any, *arguments: Any) -> Any:
    """Call a function in a fresh process."""
    with ProcessPoolExecutor(1, mp_context=mp.get_context("spawn")) as process:
        return process.submit(function, *arguments).result()


def main() -> None:
    """Measure, print, and write the CSV."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=["kdd", "covtype", "glove50", "mnist"], choices=list(SETS))
    parser.add_argument("--quick", action="store_true", help="a small mixture: tells that it runs, not how well")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    if not Path("/proc/self/clear_refs").exists():
        parser.error("memory is read from /proc, which this system does not have")

    lines: list[Line] = []
    traces: list[tuple[Line, list[tuple[str, int]]]] = []
    names = ["quick"] if arguments.quick else arguments.sets
    jobs = [(name, coreset) for name in names for coreset in ("default", "all", f"{DRAWS} C")]
    for name, coreset in track(jobs, "fits", console=Console(stderr=True)):
        if coreset == "all" and any(line.set == name and line.coreset == "default: all" for line in lines):
            continue
        try:
            line = alone(measure, name, coreset)
        except SystemExit as missing:
            print(missing)
            continue
        most, arrays = alone(trace, name, coreset)
        lines.append(replace(line, alive=most))
        traces.append((lines[-1], arrays))

    console = Console(width=130)
    table = Table(
        "set", "coreset", "N", "D", "C", "N'", "data", "has to hold", "alive", "peak", "kept", "ratio", "met"
    )
    table.title = f"MB; ratio: peak over what has to be held (hoped for: ≤ {TARGET:g})"
    for line in lines:
        shape = f"{line.n_samples:,}", str(line.n_features), f"{line.n_clusters:,}", f"{line.n_points:,}"
        sizes = [f"{size / MB:.1f}" for size in (line.data, line.formula, line.alive, line.peak, line.kept)]
        judged = f"{line.ratio:.2f}", verdict(line.ratio, TARGET)
        table.add_row(line.set, line.coreset, *shape, *sizes, *judged)
    console.print(table)
    for line, arrays in traces:
        detail = Table("alive at the peak", "MB", "of what has to be held", title=f"{line.set}, {line.coreset}")
        for place, size in arrays:
            if size > WORTH_LISTING * line.formula:
                detail.add_row(place, f"{size / MB:.1f}", f"{size / line.formula:.2f}")
        console.print(detail, markup=False)
    if arguments.output:
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        with arguments.output.open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow([*(field.name for field in fields(Line)), "ratio"])
            writer.writerows((*astuple(line), line.ratio) for line in lines)


if __name__ == "__main__":
    main()
