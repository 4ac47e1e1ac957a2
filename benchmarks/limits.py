"""How far from the machine's limits we are: products beside sgemm, passes over the data beside reading it.

    python benchmarks/limits.py --output docs/benchmarks/limits.csv
    python benchmarks/limits.py --parts em threads --repeats 5
    python benchmarks/limits.py --parts em --points 1048576       # more points a cluster
    python benchmarks/limits.py --parts em --clusters 1024        # 256 a cluster, as in a default coreset

Every repeat is measured between two measurements of its limit, on the same threads; the share is the median over
repeats.  Kernels are compiled before the clock starts.  Rates of products count 2 D operations for each distance
evaluated, everything around them included: an EM iteration is all of sorting, linking, gathering, products,
selection, responsibilities and M-step, the mean over the first 12 iterations of a fit, its set-up included.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass, fields, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import startup
from machine import mixture, read_rate, sgemm_rate, verdict
from rich.console import Console
from rich.table import Table
from sets import SETS, load
from sklearn.exceptions import ConvergenceWarning

from vcgmm import VCGMM, lightweight_coreset
from vcgmm.algorithm.coreset.drawing import draw
from vcgmm.algorithm.coreset.frame import moments
from vcgmm.algorithm.random import generator
from vcgmm.algorithm.seeding.afkmc2 import afkmc2
from vcgmm.data import ArrayRows
from vcgmm.parallel import Workers, available_threads


@dataclass(frozen=True)
class Sizes:
    """How large the problems are."""

    n_points: int = 262_144
    n_clusters: int = 2_048
    n_true: int = 4_096
    afkmc2: tuple[int, int, int] = (131_072, 64, 8_192)
    coreset: tuple[tuple[int, int], ...] = ((4_000_000, 32), (1_000_000, 128))
    n_iter: int = 12
    sets: tuple[str, ...] = ("glove50",)


QUICK = Sizes(8_192, 128, 256, (8_192, 64, 512), ((200_000, 32),), 6, ())


@dataclass(frozen=True)
class Line:
    """One measurement beside its limit; rates in operations or bytes a second."""

    part: str
    what: str
    threads: int
    seconds: float
    rate: float
    limit: float
    share: float
    target: float

    def cells(self) -> tuple[str, ...]:
        """As text."""
        rates = ["–" if np.isnan(rate) else f"{rate / 1e9:.1f}" for rate in (self.rate, self.limit)]
        shares = f"{100 * self.share:.0f} %", f"≥ {100 * self.target:.0f} %"
        met = verdict(self.share, self.target, at_least=True)
        return self.part, self.what, str(self.threads), f"{self.seconds:.3f} s", *rates, *shares, met


#: Seconds of what is measured, and its rate.
Measurement = tuple[float, float]

#: Seconds, rate, limit, share.
Beside = tuple[float, float, float, float]


def beside(limit: Callable[[], float], work: Callable[[], Measurement], repeats: int) -> Beside:
    """Medians of seconds, rate, limit, and share of the limit."""
    work()  # compiles, and touches all memory once
    limits = [limit()]
    runs = []
    for _ in range(repeats):
        runs.append(work())
        limits.append(limit())
    around = [(before + after) / 2 for before, after in pairwise(limits)]
    shares = [rate / here for (_, rate), here in zip(runs, around, strict=True)]
    seconds, rates = np.median(runs, axis=0)
    return float(seconds), float(rates), float(np.median(limits)), float(np.median(shares))


def fit(X: np.ndarray, n_clusters: int, n_iter: int, n_threads: int | None = None) -> VCGMM:
    """EM on all points, for so many iterations."""
    model = VCGMM(n_clusters, coreset_size=None, tol=0.0, max_iter=n_iter, random_state=0, n_threads=n_threads)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X)


def em_measurement(model: VCGMM) -> Measurement:
    """Seconds of an iteration, and operations a second."""
    operations = 2 * model.n_features_in_ * model.n_distance_evaluations_["em"]
    return model.timings_["em"] / model.n_iter_, operations / model.timings_["em"]


def problems(sizes: Sizes) -> Iterator[tuple[str, np.ndarray, int, float]]:
    """Name, points, clusters, and the share of sgemm hoped for."""
    for n_features, target in ((50, 0.25), (300, 0.45)):
        X = mixture(sizes.n_points, n_features, sizes.n_true)
        yield f"mixture, D = {n_features}, C = {sizes.n_clusters:,}", X, sizes.n_clusters, target
    for name in sizes.sets:
        try:
            X = load(name)
        except SystemExit as missing:
            print(missing)
            continue
        yield f"{name}, D = {X.shape[1]}, C = {SETS[name]:,}", X, SETS[name], 0.25


def measure_em(sizes: Sizes, workers: Workers, repeats: int) -> Iterator[Line]:
    """EM iterations beside sgemm."""
    for name, X, n_clusters, target in problems(sizes):

        def work(X: np.ndarray = X, n_clusters: int = n_clusters) -> Measurement:
            return em_measurement(fit(X, n_clusters, sizes.n_iter))

        yield Line(
            "EM iteration", name, workers.n_threads, *beside(lambda: sgemm_rate(workers), work, repeats), target
        )


def measure_exact(sizes: Sizes, workers: Workers, repeats: int) -> Iterator[Line]:
    """Exact prediction and quantization error beside sgemm."""
    for name, X, n_clusters, _ in problems(sizes):
        model = fit(X, n_clusters, 1)
        for method in (model.predict, model.quantization_error):

            def work(
                X: np.ndarray = X, method: Callable[..., object] = method, c: int = n_clusters
            ) -> Measurement:
                begun = time.perf_counter()
                method(X)
                seconds = time.perf_counter() - begun
                return seconds, 2.0 * X.size * c / seconds

            result = beside(lambda: sgemm_rate(workers), work, repeats)
            yield Line(method.__name__, name, workers.n_threads, *result, 0.5)


def measure_afkmc2(sizes: Sizes, workers: Workers, repeats: int) -> Iterator[Line]:
    """AFK-MC^2 beside sgemm."""
    n_points, n_features, n_clusters = sizes.afkmc2
    points = mixture(n_points, n_features, 2 * n_clusters)
    weights = np.ones(n_points)

    def work() -> Measurement:
        begun = time.perf_counter()
        seeds = afkmc2(points, weights, n_clusters, 10, generator(0), workers, lambda _: None)
        seconds = time.perf_counter() - begun
        return seconds, 2 * n_features * seeds.n_evaluations / seconds

    name = f"{n_points:,} × {n_features}, C = {n_clusters:,}"
    yield Line("AFK-MC²", name, workers.n_threads, *beside(lambda: sgemm_rate(workers), work, repeats), 0.5)


def measure_coreset(sizes: Sizes, workers: Workers, repeats: int) -> Iterator[Line]:
    """The two passes of a coreset, the first alone, and all of `lightweight_coreset`, beside reading the array."""

    def both(X: np.ndarray) -> None:
        rows = ArrayRows(X)
        facts = moments(rows, None, workers, lambda _: None)
        numbers = np.sort(np.random.default_rng(0).random(65_536))
        draw(rows, facts, None, numbers, facts.spread, workers, lambda _: None)

    for n_samples, n_features in sizes.coreset:
        X = mixture(n_samples, n_features, 1024)
        name = f"{n_samples:,} × {n_features}"
        steps: dict[str, tuple[int, Callable[[np.ndarray], object]]] = {
            f"{name}, both passes, 65,536 draws": (2, both),
            f"{name}, with the rows copied": (2, lambda X: lightweight_coreset(X, 65_536, random_state=0)),
            f"{name}, first pass alone": (1, lambda X: moments(ArrayRows(X), None, workers, lambda _: None)),
        }
        for what, (n_passes, step) in steps.items():

            def work(
                X: np.ndarray = X, n_passes: int = n_passes, step: Callable[[np.ndarray], object] = step
            ) -> Measurement:
                begun = time.perf_counter()
                step(X)
                seconds = time.perf_counter() - begun
                return seconds, n_passes * X.nbytes / seconds

            def limit(X: np.ndarray = X) -> float:
                return read_rate(X, workers)

            yield Line("coreset", what, workers.n_threads, *beside(limit, work, repeats), 0.6)


def measure_threads(sizes: Sizes, workers: Workers, repeats: int) -> Iterator[Line]:
    """What further threads gain in an EM iteration, beside what they gain in sgemm."""
    n_threads = workers.n_threads
    if n_threads == 1:
        print("There is one CPU only: nothing to gain from threads.")
        return
    X = mixture(sizes.n_points, 50, sizes.n_true)
    gains, limits, seconds = [], [], []
    same = True
    with Workers(1) as alone:
        fit(X, sizes.n_clusters, 1)
        for _ in range(repeats):
            limit_alone = sgemm_rate(alone)
            one = fit(X, sizes.n_clusters, sizes.n_iter, 1)
            limit_alone += sgemm_rate(alone)
            limit_together = sgemm_rate(workers)
            every = fit(X, sizes.n_clusters, sizes.n_iter, n_threads)
            limit_together += sgemm_rate(workers)
            limits.append(limit_together / limit_alone)
            gains.append(one.timings_["em"] / every.timings_["em"])
            seconds.append(every.timings_["em"] / every.n_iter_)
            same &= one.means_.tobytes() == every.means_.tobytes()
            same &= one.lower_bounds_.tobytes() == every.lower_bounds_.tobytes()
    gain, limit = float(np.median(gains)), float(np.median(limits))
    bits = "the same bits" if same else "NOT the same bits"
    what = f"mixture, D = 50, 1 to {n_threads} threads: {gain:.2f}× (sgemm {limit:.2f}×), {bits}"
    share = float(np.median(np.divide(gains, limits)))
    yield Line("threads", what, n_threads, float(np.median(seconds)), np.nan, np.nan, share, 0.9)


PARTS = {
    "em": measure_em,
    "afkmc2": measure_afkmc2,
    "coreset": measure_coreset,
    "threads": measure_threads,
    "exact": measure_exact,
}


def main() -> None:
    """Measure, print, and write the CSV."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    choices = [*PARTS, "startup"]
    parser.add_argument("--parts", nargs="+", choices=choices, help="default: all; with --quick all but startup")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--points", type=int, help=f"of mixtures that EM is run on; default: {Sizes.n_points:,}")
    parser.add_argument("--clusters", type=int, help=f"of these mixtures; default: {Sizes.n_clusters:,}")
    parser.add_argument("--quick", action="store_true", help="small problems: tells that it runs, not how fast")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    parts = arguments.parts or (list(PARTS) if arguments.quick else choices)
    sizes, repeats = (QUICK, 1) if arguments.quick else (Sizes(), arguments.repeats)
    if arguments.points is not None:
        sizes = replace(sizes, n_points=arguments.points)
    if arguments.clusters is not None:
        sizes = replace(sizes, n_clusters=arguments.clusters, n_true=2 * arguments.clusters)
    table = Table("part", "what", "threads", "seconds", "10⁹ / s", "limit", "share", "target", "met")
    lines = []
    with Workers(available_threads()) as workers:
        for part, measure in PARTS.items():
            if part not in parts:
                continue
            for line in measure(sizes, workers, repeats):
                lines.append(line)
                table.add_row(*line.cells())
    Console(width=150).print(table)
    if "startup" in parts:
        print("import and first fit (benchmarks/startup.py):")
        startup.main()
    if arguments.output:
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        with arguments.output.open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow([field.name for field in fields(Line)])
            writer.writerows(astuple(line) for line in lines)


if __name__ == "__main__":
    main()
