"""Very many clusters: time of every step, peak memory, and the error beside SuperKMeans.

    python benchmarks/large.py --output docs/benchmarks/large.csv
    python benchmarks/large.py --case 100k
    python benchmarks/large.py --case peer --repeats 3

Cases, all on synthetic mixtures with twice as many clusters as are looked for, and on all points:

- 100k: 2,000,000 × 64 into 100,000 clusters, ten EM iterations.
- 1m: 8,000,000 × 16 into 1,000,000 clusters, five EM iterations.
- peer: 1,000,000 × 64 into 50,000 clusters, by the start alone without (in two levels and in three) and with one
  iteration, by fits with few candidates and winners or the default ones and one, three and ten EM iterations,
  beside SuperKMeans (hierarchical) where it is installed.

Every fit runs in a process of its own that makes the data and warms up before the clock starts.  The error is
exact: the mean squared distance to the nearest of all centres, over 20,000 rows.  Memory is the peak beyond the
data.  With --repeats all fits of a case take turns, and what is told of each is the one of median time.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import math
import multiprocessing as mp
import os
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path

# OpenMP threads that wait should go to sleep: spinning ones would slow down whoever works.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import numpy as np
from machine import forget_peak, mixture, peak, resident, verdict
from rich.console import Console
from rich.table import Table

from vcgmm import VCGMM, quantization_error, two_level
from vcgmm.parallel import available_threads

#: Rows that the error is taken over.
SAMPLE = 20_000

#: By how much --quick divides rows and clusters.
QUICK = 50


@dataclass(frozen=True)
class Case:
    """One problem, and who fits it."""

    name: str
    system: str
    n_samples: int
    n_features: int
    n_clusters: int
    max_iter: int = 0
    n_candidates: int = 128
    truncation: int = 5
    levels: int | None = None


@dataclass(frozen=True)
class Outcome:
    """One fit; seconds of its steps where they are known, mean squared error, and bytes beyond the data."""

    case: str
    system: str
    n_samples: int
    n_features: int
    n_clusters: int
    n_candidates: int
    truncation: int
    threads: int
    coreset: float
    seeding: float
    em: float
    total: float
    iterations: int
    error: float
    memory: float


CASES = {
    "100k": [Case("100k", "vcgmm", 2_000_000, 64, 100_000, 10)],
    "1m": [Case("1m", "vcgmm", 8_000_000, 16, 1_000_000, 5)],
    "peer": [
        Case("peer", "two_level, 3 levels", 1_000_000, 64, 50_000, 0, n_candidates=0, truncation=1, levels=3),
        Case("peer", "two_level", 1_000_000, 64, 50_000, 0, n_candidates=0, truncation=1),
        Case("peer", "two_level", 1_000_000, 64, 50_000, 1, n_candidates=32, truncation=1),
        Case("peer", "vcgmm", 1_000_000, 64, 50_000, 1, n_candidates=16, truncation=2),
        Case("peer", "vcgmm", 1_000_000, 64, 50_000, 1, n_candidates=64),
        Case("peer", "vcgmm", 1_000_000, 64, 50_000, 1),
        Case("peer", "vcgmm", 1_000_000, 64, 50_000, 3),
        Case("peer", "vcgmm", 1_000_000, 64, 50_000, 10),
        Case("peer", "SuperKMeans", 1_000_000, 64, 50_000),
    ],
}

#: What is hoped for: case, name of the seconds, and at most so many.
TARGETS = (("100k", "seeding", 20.0), ("100k", "em", 20.0), ("1m", "total", 600.0))


def fit_ours(X: np.ndarray, case: Case, verbose: int = 0) -> tuple[np.ndarray, dict[str, float]]:
    """Centres, and seconds of every step."""
    model = VCGMM(
        case.n_clusters,
        coreset_size=None,
        tol=0.0,
        max_iter=case.max_iter,
        n_candidates=case.n_candidates,
        truncation=case.truncation,
        random_state=0,
        verbose=verbose,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few iterations are asked for: that they end early is no news
        model.fit(X)
    return model.means_, {**model.timings_, "iterations": model.n_iter_}


def fit_start(X: np.ndarray, case: Case, _verbose: int = 0) -> tuple[np.ndarray, dict[str, float]]:
    """Centres of our start alone."""
    centres = two_level(X, case.n_clusters, max_iter=case.max_iter, levels=case.levels, random_state=0)
    return centres, {"iterations": case.max_iter}


def fit_superkmeans(X: np.ndarray, case: Case, _verbose: int = 0) -> tuple[np.ndarray, dict[str, float]]:
    """Centres of SuperKMeans."""
    superkmeans = importlib.import_module("superkmeans")
    model = superkmeans.SuperKMeans(
        case.n_clusters, X.shape[1], hierarchical=True, seed=1, n_threads=available_threads()
    )
    return np.asarray(model.train(X)), {}


SYSTEMS: dict[str, Callable[..., tuple[np.ndarray, dict[str, float]]]] = {
    "vcgmm": fit_ours,
    "two_level": fit_start,
    "two_level, 3 levels": fit_start,
    "SuperKMeans": fit_superkmeans,
}


def measure(case: Case) -> Outcome:
    """Fit in this process."""
    fit = SYSTEMS[case.system]
    X = mixture(case.n_samples, case.n_features, 2 * case.n_clusters)
    fit(X[:8192].copy(), replace(case, n_clusters=256, max_iter=min(case.max_iter, 5)))
    linux = Path("/proc/self/clear_refs").exists()
    before = 0.0
    if linux:
        before = resident()
        forget_peak()
    begun = time.perf_counter()
    centres, facts = fit(X, case, 1)
    total = time.perf_counter() - begun
    memory = peak() - before if linux else math.nan
    rows = X[:: max(1, len(X) // SAMPLE)][:SAMPLE]
    error = quantization_error(rows, centres) / len(rows)
    return Outcome(
        case=case.name,
        system=case.system,
        n_samples=case.n_samples,
        n_features=case.n_features,
        n_clusters=case.n_clusters,
        n_candidates=case.n_candidates,
        truncation=case.truncation,
        threads=available_threads(),
        coreset=facts.get("coreset", math.nan),
        seeding=facts.get("seeding", math.nan),
        em=facts.get("em", math.nan),
        total=total,
        iterations=int(facts.get("iterations", 0)),
        error=error,
        memory=memory,
    )


def reduced(case: Case) -> Case:
    """The same on few rows."""
    return replace(case, n_samples=case.n_samples // QUICK, n_clusters=case.n_clusters // QUICK)


def seconds(value: float) -> str:
    """As text."""
    return "–" if math.isnan(value) else f"{value:.2f} s"


def of_median_time(outcomes: list[Outcome]) -> Outcome:
    """One of several fits to the same problem; of two, the faster one."""
    return sorted(outcomes, key=lambda one: one.total)[(len(outcomes) - 1) // 2]


def ahead(outcomes: list[Outcome]) -> str:
    """How much faster we come to the peer's error, or a lower one; nothing where there is no peer."""
    peers = [one for one in outcomes if one.system == "SuperKMeans"]
    ours = [one for one in outcomes if one not in peers]
    told = []
    for peer in peers:
        best = min((one.total for one in ours if one.error <= peer.error), default=math.inf)
        told.append(f"{peer.system}'s time over ours to its error: {peer.total / best:.2f}")
    return "\n".join(told)


def main() -> None:
    """Measure, print, and write the CSV."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="small problems: tells that it runs, not how fast")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()

    found: dict[Case, list[Outcome]] = {}
    for case in (case for name in arguments.case for _ in range(arguments.repeats) for case in CASES[name]):
        if case.system == "SuperKMeans" and importlib.util.find_spec("superkmeans") is None:
            print("superkmeans is not installed: there is nothing to compare with.")
            continue
        with ProcessPoolExecutor(1, mp_context=mp.get_context("spawn")) as process:
            outcome = process.submit(measure, reduced(case) if arguments.quick else case).result()
        found.setdefault(case, []).append(outcome)
    outcomes = [of_median_time(fits) for fits in found.values()]

    console = Console(width=140)
    table = Table(
        "case", "system", "N", "D", "C", "candidates", "C'", "iterations", "coreset", "seeding", "EM", "total",
        "error", "memory",
    )  # fmt: skip
    for one in outcomes:
        shape = f"{one.n_samples:,}", str(one.n_features), f"{one.n_clusters:,}"
        options = [
            str(value) if one.iterations else "–" for value in (one.n_candidates, one.truncation, one.iterations)
        ]
        times = [seconds(value) for value in (one.coreset, one.seeding, one.em, one.total)]
        rest = f"{one.error:.5g}", f"{one.memory / 1e6:,.0f} MB"
        table.add_row(one.case, one.system, *shape, *options, *times, *rest)
    console.print(table)
    console.print(ahead(outcomes))
    for name, step, target in TARGETS:
        for one in outcomes:
            if one.case == name:
                value = getattr(one, step)
                console.print(
                    f"{name}, {step}: {value:.2f} s; hoped for: ≤ {target:.0f} s; met: {verdict(value, target)}"
                )
    if arguments.output:
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        with arguments.output.open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow([field.name for field in fields(Outcome)])
            writer.writerows(astuple(one) for one in outcomes)


if __name__ == "__main__":
    main()
