"""Error and time against coreset size: what coreset_size="auto" rests on.

    python benchmarks/coreset_size.py --seeds 3 --output docs/benchmarks/coreset_size.csv

For every set and size: the quantization error of all points, how much it lies above that of a fit on all
points, and the time of the fit.  Medians over seeds; kernels are compiled before the clock starts.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sets import SETS, load

from vcgmm import VCGMM

POINTS_PER_COMPONENT = (16, 32, 64, 128, 256, None)


def measure(X: np.ndarray, n_components: int, size: int | None, seed: int) -> tuple[float, float, int, int]:
    """Seconds, quantization error, iterations and points of one fit."""
    begun = time.perf_counter()
    model = VCGMM(n_components, coreset_size=size, random_state=seed).fit(X)
    seconds = time.perf_counter() - begun
    return seconds, model.quantization_error(X), model.n_iter_, len(model.coreset_)


def main() -> None:
    """Run, print, and write the CSV."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    warm_up = np.random.default_rng(0).normal(size=(4096, 8)).astype(np.float32)
    VCGMM(64, coreset_size=2048, random_state=0).fit(warm_up).quantization_error(warm_up)

    rows = []
    jobs = [(name, size) for name in arguments.sets for size in POINTS_PER_COMPONENT]
    for name, per_component in track(jobs, "fits", console=Console(stderr=True)):
        X, n_components = load(name), SETS[name]
        size = None if per_component is None else per_component * n_components
        if size is not None and size >= len(X):
            continue
        runs = np.array([measure(X, n_components, size, seed) for seed in range(arguments.seeds)])
        rows.append((name, n_components, per_component or "all", *np.median(runs, axis=0)))

    best = {row[0]: row[4] for row in rows if row[2] == "all"}
    table = Table("set", "C", "N'/C", "points", "seconds", "error", "excess", "iterations")
    for name, n_components, per_component, seconds, error, n_iter, n_points in rows:
        excess = f"{100 * (error / best[name] - 1):+.1f} %"
        cells = (f"{n_points:,.0f}", f"{seconds:.2f}", f"{error:.4g}", excess, f"{n_iter:.0f}")
        table.add_row(name, str(n_components), str(per_component), *cells)
    Console(width=100).print(table)
    if arguments.output:
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        with arguments.output.open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(["set", "C", "points_per_component", "seconds", "error", "iterations", "points"])
            writer.writerows(rows)


if __name__ == "__main__":
    main()
