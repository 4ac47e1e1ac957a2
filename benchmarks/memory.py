"""Peak memory of a fit beyond the data, beside what the algorithm has to hold; and which arrays it goes to.

    python benchmarks/memory.py --output docs/benchmarks/memory.csv
    python benchmarks/memory.py --sets covtype glove50

What it has to hold is O(N'(D + C') + C(D + G)): points N' D of the type computed in, winners N' C' int32, means C D
float64, neighbours C G int32.  Every fit runs in a process of its own, which has the data loaded and the kernels
warmed up on a few of its rows; the peak is the kernel's high-water mark of resident memory during the fit, less
what was resident before.  A second process repeats the fit with every allocation traced, and lists the lines whose
arrays were alive at its peak.  Sets whose default coreset is all points are listed once.  Needs Linux.
"""

from __future__ import annotations

import argparse
import csv
import gc
import linecache
import multiprocessing as mp
import threading
import tracemalloc
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple, dataclass, fields
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

#: Peak over what has to be held, hoped for.
TARGET = 1.5

#: Lines that hold less than this share of what has to be held are not listed.
WORTH_LISTING = 0.03

#: What --quick fits, instead of the prepared sets.
QUICK = (20_000, 32, 200)

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


def prepare(name: str, coreset_size: Any) -> tuple[np.ndarray, VCGMM]:
    """Rows and the model to fit, with kernels warmed up on a corner of these rows."""
    X, n_clusters = data_of(name)
    corner = X[:2048]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for size in (1024, None):
            VCGMM(64, coreset_size=size, max_iter=5, random_state=0).fit(corner)
    gc.collect()
    return X, VCGMM(n_clusters, coreset_size=coreset_size, random_state=0)


def measure(name: str, coreset_size: Any) -> Line:
    """Fit in this process, and look at its memory."""
    X, model = prepare(name, coreset_size)
    before = resident()
    forget_peak()
    model.fit(X)
    most = peak() - before
    gc.collect()
    n_points = len(model.coreset_)
    size = "all points" if n_points == len(X) else "default"
    sizes = n_points, X.shape[1], model.n_components
    needed = formula(*sizes, model, model._frame.dtype)
    return Line(name, size, *X.shape, model.n_components, n_points, X.nbytes, needed, most, resident() - before)


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


def trace(name: str, coreset_size: Any) -> list[tuple[str, int]]:
    """Lines of the package whose arrays were alive at the peak of a fit, and their bytes, largest first."""
    X, model = prepare(name, coreset_size)
    package = str(Path(vcgmm.__file__).parent)
    tracemalloc.start(16)
    watch = PeakWatch()
    watch.start()
    model.fit(X)
    watch.done.set()
    watch.join()
    lines: dict[str, int] = {}
    for statistic in watch.snapshot.statistics("traceback") if watch.snapshot else []:
        frames = [frame for frame in statistic.traceback if frame.filename.startswith(package)]
        if not frames:
            continue
        last = frames[-1]  # the innermost
        place = f"{Path(last.filename).relative_to(package)}:{last.lineno}"
        source = linecache.getline(last.filename, last.lineno).strip()
        lines[f"{place}  {source}"] = lines.get(f"{place}  {source}", 0) + statistic.size
    return sorted(lines.items(), key=lambda line: -line[1])


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
    jobs = [(name, size) for name in names for size in ("auto", None)]
    for name, size in track(jobs, "fits", console=Console(stderr=True)):
        if any(line.set == name and line.coreset == "all points" for line in lines):
            continue  # the default was all points already
        try:
            line = alone(measure, name, size)
        except SystemExit as missing:
            print(missing)
            continue
        lines.append(line)
        traces.append((line, alone(trace, name, size)))

    console = Console(width=130)
    table = Table(
        "set", "coreset", "N", "D", "C", "N'", "data", "has to hold", "peak", "kept", "ratio", "target", "met"
    )
    for line in lines:
        shape = f"{line.n_samples:,}", str(line.n_features), f"{line.n_clusters:,}", f"{line.n_points:,}"
        sizes = [f"{size / MB:.1f} MB" for size in (line.data, line.formula, line.peak, line.kept)]
        judged = f"{line.ratio:.2f}", f"≤ {TARGET:g}", verdict(line.ratio, TARGET)
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
