"""Approximate prediction beside exact: time, distances, recall, and the error it costs.

    python benchmarks/predict.py --output docs/benchmarks/predict.csv

Models are fitted with a few iterations to the prepared sets, with more and more clusters.  Recall is the share of
rows whose label is that of exact prediction; the error is that of the labels, relative to exact ones.  Both ways
run in turn, and times are medians; what approximate prediction makes once for a model is timed apart.  Where
clusters are few, approximate predictions are exact.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sets import SETS, load
from sklearn.exceptions import ConvergenceWarning

from vcgmm import VCGMM

#: Beside the usual number of clusters.
MORE = {"glove50": (8_000, 16_000, 64_000), "covtype": (8_000, 16_000, 64_000)}


@dataclass(frozen=True)
class Line:
    """One model; times in seconds."""

    set: str
    n_samples: int
    n_features: int
    n_clusters: int
    exact: float
    making: float
    approximate: float
    recall: float
    excess: float

    def cells(self) -> tuple[str, ...]:
        """As text."""
        sizes = f"{self.n_samples:,} × {self.n_features}", f"{self.n_clusters:,}"
        times = (f"{seconds:.2f} s" for seconds in (self.exact, self.making, self.approximate))
        gain = f"{self.exact / self.approximate:.1f}×"
        microseconds = f"{1e6 * self.approximate / self.n_samples:.2f} µs"
        return (
            self.set,
            *sizes,
            *times,
            gain,
            microseconds,
            f"{100 * self.recall:.2f} %",
            f"+{100 * self.excess:.3f} %",
        )


def timed(model: VCGMM, X: np.ndarray, method: str) -> tuple[float, np.ndarray]:
    """Seconds, and labels."""
    begun = time.perf_counter()
    labels = model.predict(X, method=method)
    return time.perf_counter() - begun, labels


def error(X: np.ndarray, means: np.ndarray, labels: np.ndarray) -> float:
    """Squared distances to the labels' means, summed."""
    step = 1 << 14
    return sum(
        float(((X[low : low + step] - means[labels[low : low + step]]) ** 2).sum())
        for low in range(0, len(X), step)
    )


def measure(name: str, X: np.ndarray, n_clusters: int, repeats: int) -> Line:
    """Fit, and predict both ways."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = VCGMM(n_clusters, coreset_size=None, max_iter=5, random_state=0).fit(X)
    timed(model, X[:1000], "exact")
    begun, _ = timed(model, X[:1000], "approximate")  # makes what it needs, and compiles
    again, _ = timed(model, X[:1000], "approximate")
    runs = [(timed(model, X, "exact"), timed(model, X, "approximate")) for _ in range(repeats)]
    true, found = runs[0][0][1], runs[0][1][1]
    exact, approximate = (float(np.median([run[i][0] for run in runs])) for i in range(2))
    excess = error(X, model.means_, found) / error(X, model.means_, true) - 1
    recall = float((true == found).mean())
    return Line(name, *X.shape, n_clusters, exact, begun - again, approximate, recall, excess)


def main() -> None:
    """Measure, print, and write the CSV."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=["mnist", "covtype", "glove50"], choices=list(SETS))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one small model of each set")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    warm_up = np.random.default_rng(0).normal(size=(9_000, 50)).astype(np.float32)
    for n_clusters in (600, 4_500):  # of few, all are compared
        model = VCGMM(n_clusters, max_iter=2, tol=1.0, random_state=0).fit(warm_up)
        model.predict(warm_up, method="approximate")
    cases = [
        (name, n_clusters)
        for name in arguments.sets
        for n_clusters in ((600,) if arguments.quick else (SETS[name], *MORE.get(name, ())))
    ]
    table = Table("set", "rows", "C", "exact", "making", "approximate", "gain", "a row", "recall", "error")
    lines = []
    for name, n_clusters in track(cases, "predicting"):
        X = np.ascontiguousarray(load(name), dtype=np.float32)
        lines.append(measure(name, X, n_clusters, 1 if arguments.quick else arguments.repeats))
        table.add_row(*lines[-1].cells())
    Console(width=150).print(table)
    if arguments.output:
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        with arguments.output.open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow([field.name for field in fields(Line)])
            writer.writerows(astuple(line) for line in lines)


if __name__ == "__main__":
    main()
