"""What refinement gains: error and time against coreset size, with 0, 1, 2 and 5 passes over all rows.

    python benchmarks/refine.py --seeds 2 --output docs/benchmarks/refine.csv --picture docs/images/refine.png

For every set, coreset size and number of passes: the exact quantization error of all rows, how much it lies above
that of a fit on all rows, and the time of the fit, on the clock and of all CPUs together (which says more on a
shared machine).  Means of the error and medians of the times over seeds; kernels are compiled before.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sets import SETS, load

from vcgmm import VCGMM

POINTS_PER_COMPONENT = (16, 64, None)
PASSES = (0, 1, 2, 5)
DEFAULT_SETS = ("kdd", "covtype", "glove50")


def measure(
    X: np.ndarray, n_components: int, size: int | None, passes: int, seed: int
) -> tuple[float, float, float]:
    """Seconds of a fit, CPU seconds of it, and the quantization error."""
    begun, begun_cpu = time.perf_counter(), time.process_time()
    model = VCGMM(n_components, coreset_size=size, refine=passes, random_state=seed).fit(X)
    seconds, cpu_seconds = time.perf_counter() - begun, time.process_time() - begun_cpu
    return seconds, cpu_seconds, model.quantization_error(X)


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Excess over a fit on all rows against seconds, a line for each coreset size, a dot for each refine."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(row["set"] for row in rows))
    figure = Figure(figsize=(4 * len(names), 3.6), layout="constrained")
    for ax, name in zip(figure.subplots(1, len(names), squeeze=False)[0], names, strict=True):
        for size in dict.fromkeys(row["points_per_component"] for row in rows):
            line = [row for row in rows if row["set"] == name and row["points_per_component"] == size]
            seconds, excess = ([row[key] for row in line] for key in ("cpu_seconds", "excess"))
            ax.plot(seconds, excess, "o-", label="all rows" if size == "all" else f"{size} points a cluster")
            for row in line:
                ax.annotate(
                    str(row["refine"]), (row["cpu_seconds"], row["excess"]), (4, 4), textcoords="offset points"
                )
        ax.set(title=f"{name}, {line[0]['C']:,} clusters", xlabel="CPU seconds", ylabel="error above all rows, %")
        ax.legend(fontsize="small")
    figure.savefig(path, dpi=100)


def main() -> None:
    """Run, print, and write the CSV and the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--sets", nargs="+", default=list(DEFAULT_SETS), choices=list(SETS))
    parser.add_argument("--output", type=Path)
    parser.add_argument("--picture", type=Path)
    arguments = parser.parse_args()
    warm_up = np.random.default_rng(0).normal(size=(20_000, 8)).astype(np.float32)
    VCGMM(3000, coreset_size=10_000, refine=1, max_iter=2, random_state=0).fit(warm_up).quantization_error(warm_up)

    rows: list[dict[str, Any]] = []
    jobs = [(name, size, passes) for name in arguments.sets for size in POINTS_PER_COMPONENT for passes in PASSES]
    for name, per_component, passes in track(jobs, "fits", console=Console(stderr=True)):
        X, n_components = load(name), SETS[name]
        size = None if per_component is None else per_component * n_components
        runs = np.array([measure(X, n_components, size, passes, seed) for seed in range(arguments.seeds)])
        facts = {"set": name, "C": n_components, "points_per_component": per_component or "all", "refine": passes}
        facts |= {"seconds": np.median(runs[:, 0]), "cpu_seconds": np.median(runs[:, 1])}
        rows.append({**facts, "error": runs[:, 2].mean()})
    best = {row["set"]: row["error"] for row in rows if row["points_per_component"] == "all" and not row["refine"]}
    table = Table("set", "C", "N'/C", "refine", "seconds", "CPU seconds", "error", "excess")
    for row in rows:
        row["excess"] = 100 * (row["error"] / best[row["set"]] - 1)
        cells = (f"{row['seconds']:.2f}", f"{row['cpu_seconds']:.2f}", f"{row['error']:.5g}")
        table.add_row(*(str(row[key]) for key in list(row)[:4]), *cells, f"{row['excess']:+.2f} %")
    Console(width=100).print(table)
    if arguments.output:
        with arguments.output.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    if arguments.picture:
        draw(rows, arguments.picture)


if __name__ == "__main__":
    main()
