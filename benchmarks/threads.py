"""What the steps of a fit gain from more threads, beside what a large matrix product gains.

    python benchmarks/threads.py                            # 1, 2, 4, ... threads, up to all CPUs
    python benchmarks/threads.py --threads 1 16 --points 4194304 --output threads.csv

A mixture that overlaps, all points in one fit of so many iterations.  Numbers of threads take turns, and times are
the least of some rounds: who shares the machine can only add to them.  All fits are the same to the last bit.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import numpy as np
from machine import mixture, sgemm_rate
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn.exceptions import ConvergenceWarning

from vcgmm import VCGMM, two_level
from vcgmm.parallel import Workers, available_threads

#: What is timed, in the order of the columns.
STEPS = ("coreset", "start", "iteration", "fit", "start alone", "predict")

#: Draws of the coreset that the first column is about: both passes, with few rows to be copied.
DRAWS = 65_536


@dataclass(frozen=True)
class Line:
    """Seconds of every step on so many threads, and operations a second of large products."""

    threads: int
    sgemm: float
    coreset: float
    start: float
    iteration: float
    fit: float
    start_alone: float
    predict: float


def measure(X: np.ndarray, n_clusters: int, n_iter: int, n_threads: int) -> tuple[Line, bytes]:
    """One of everything, and the bits of the means."""
    model = VCGMM(n_clusters, coreset_size=None, tol=0.0, max_iter=n_iter, random_state=0, n_threads=n_threads)
    drawn = VCGMM(2, coreset_size=min(DRAWS, len(X) // 2), max_iter=1, random_state=0, n_threads=n_threads)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        drawn.fit(X)
        begun = time.perf_counter()
        model.fit(X)
        fitted = time.perf_counter()
    model.predict(X)
    predicted = time.perf_counter()
    two_level(X, n_clusters, coreset_size=None, max_iter=0, random_state=0, n_threads=n_threads)
    started = time.perf_counter()
    with Workers(n_threads) as workers:
        sgemm = sgemm_rate(workers, 2)
    timings = model.timings_
    iteration = timings["em"] / model.n_iter_
    line = Line(
        n_threads, sgemm, drawn.timings_["coreset"], timings["seeding"], iteration, fitted - begun,
        started - predicted, predicted - fitted,
    )  # fmt: skip
    return line, model.means_.tobytes()


def best_of(lines: list[Line]) -> Line:
    """The highest rate and the least times."""
    rows = np.array([astuple(line) for line in lines])
    return Line(lines[0].threads, float(rows[:, 1].max()), *rows[:, 2:].min(axis=0).tolist())


def doubled(most: int) -> list[int]:
    """1, 2, 4, ... up to `most`, which is one of them."""
    return sorted({1 << k for k in range(most.bit_length()) if 1 << k <= most} | {most})


def main() -> None:
    """Measure, print, and write the CSV."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", nargs="+", type=int, default=doubled(available_threads()))
    parser.add_argument("--points", type=int, default=1_048_576)
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--clusters", type=int, default=4_096)
    parser.add_argument("--iterations", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    X = mixture(options.points, options.features, 2 * options.clusters)
    measure(X, options.clusters, 2, max(options.threads))  # compiles
    lines: dict[int, list[Line]] = {n: [] for n in options.threads}
    bits = set()
    for _ in track(range(options.rounds), "rounds"):
        for n_threads, here in lines.items():
            line, means = measure(X, options.clusters, options.iterations, n_threads)
            here.append(line)
            bits.add(means)
    best = [best_of(here) for here in lines.values()]
    title = f"{options.points:,} × {options.features}, C = {options.clusters:,}: seconds (times as fast)"
    table = Table("threads", "sgemm, GFlop/s", *STEPS, title=title)
    for line in best:
        rate = f"{line.sgemm / 1e9:.0f} ({line.sgemm / best[0].sgemm:.2f})"
        times = zip(astuple(line)[2:], astuple(best[0])[2:], strict=True)
        table.add_row(str(line.threads), rate, *(f"{now:.3f} ({first / now:.2f})" for now, first in times))
    console = Console(width=150)
    console.print(table)
    console.print("the same bits" if len(bits) == 1 else "DIFFERENT BITS")
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        with options.output.open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow([field.name for field in fields(Line)])
            writer.writerows(astuple(line) for line in best)


if __name__ == "__main__":
    main()
