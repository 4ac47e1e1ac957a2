"""One E-step with the sums of its M-step: time a point, and its share of the machine's matrix-product rate.

    python benchmarks/estep.py

Means come from a fit of two iterations; then E-steps are timed at fixed means, neighbours included every other
time as in a fit.  Rate: 2 D operations for each distance evaluated, beside a large sgemm in the same run.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from machine import sgemm_rate
from rich.console import Console
from rich.table import Table
from sets import SETS, load
from sklearn.exceptions import ConvergenceWarning

from vcgmm import VCGMM
from vcgmm.algorithm.search.blocked import BlockedSearch
from vcgmm.algorithm.seeding.afkmc2 import assign
from vcgmm.parallel import Workers, available_threads

REPEATS = 6


def measure(X: np.ndarray, n_components: int, n_points: int | None, workers: Workers) -> tuple[int, float, float]:
    """Points, seconds of an E-step (median), and operations a second in its distances."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = VCGMM(n_components, coreset_size=n_points, max_iter=2, random_state=0).fit(X)
    coreset = model.coreset_
    points = model._frame.enter(coreset.points)
    means = model._frame.enter(model.means_, np.dtype(np.float64))
    start = assign(points, coreset.weights, means, workers)
    n_candidates = min(128, n_components)
    search = BlockedSearch(
        points, coreset.weights, start.labels, n_components, 5, 5, n_candidates, 0, 0, start.error, 1e-12, workers
    )
    variance = search.e_step(means, None).variance
    times, operations = [], 0
    for _ in range(REPEATS):
        begun = time.perf_counter()
        operations += search.e_step(means, variance).n_evaluations * 2 * points.shape[1]
        times.append(time.perf_counter() - begun)
    return len(points), float(np.median(times)), operations / sum(times)


def main() -> None:
    """Measure all sets with one thread and with all."""
    table = Table("set", "D", "threads", "points", "points a cluster", "E-step", "a point", "GFlop/s", "of sgemm")
    for n_threads in sorted({1, available_threads()}):
        with Workers(n_threads) as workers:
            ceiling = sgemm_rate(workers)
            for name, n_components in SETS.items():
                X = load(name)
                for per_component in (16, None):
                    size = None if per_component is None else per_component * n_components
                    n_points, seconds, rate = measure(X, n_components, size, workers)
                    cells = (str(X.shape[1]), str(n_threads), f"{n_points:,}", f"{n_points / n_components:.0f}")
                    speed = (f"{seconds * 1e3:.1f} ms", f"{seconds / n_points * 1e6:.2f} µs", f"{rate / 1e9:.1f}")
                    table.add_row(name, *cells, *speed, f"{100 * rate / ceiling:.0f} %")
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
