"""Time of an EM iteration against the number of clusters, of points and of features.

    python benchmarks/scaling.py --output docs/benchmarks/scaling.csv --picture docs/images/scaling.png
    python benchmarks/scaling.py --panels clusters --points 262144 8388608 --pointwise 262144 --iterations 12

Fits on all points of a synthetic mixture that has many more clusters than are looked for, 16 iterations each, with
the default search; against the number of clusters with the paper's search, point by point, too (`--pointwise`).
Now and then an iteration links the clusters anew and takes longer; so the time of an iteration is taken over as
many in a row as hold one that links, and the median is over all such runs; the mean is over all iterations but the
first.  Kernels are compiled before the clock starts.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import numpy as np
from machine import mixture, verdict
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn.exceptions import ConvergenceWarning

from vcgmm import VCGMM
from vcgmm.algorithm.cells.neighbourhoods import LINKED_AT_FIRST, LINKED_EVERY

#: Growth over the whole range of clusters that is hoped for.
TARGET = 2.0

#: What is varied, each in a panel of the picture.
PANELS = ["clusters", "points", "features"]

#: Colours of several lines in a panel.
LINES = ["#1f6f8b", "#e0a030", "#6a8f3c"]

#: Iterations without which there is no run of later ones.
FEWEST = LINKED_AT_FIRST + LINKED_EVERY


@dataclass(frozen=True)
class Case:
    """One fit: what varies, and the problem."""

    panel: str
    n_points: int
    n_features: int
    n_clusters: int
    search: str = "blocked"

    @property
    def value(self) -> int:
        """Where it lies on the panel's axis."""
        return {"clusters": self.n_clusters, "points": self.n_points, "features": self.n_features}[self.panel]


@dataclass(frozen=True)
class Point:
    """What was measured: seconds of an iteration, and distances evaluated in it."""

    panel: str
    n_points: int
    n_features: int
    n_clusters: int
    search: str
    median_seconds: float
    mean_seconds: float
    distances: float


def doubling(first: int, last: int) -> list[int]:
    """First, twice first, … up to last."""
    values = [first]
    while 2 * values[-1] <= last:
        values.append(2 * values[-1])
    return values


def plan(quick: bool, sizes: Sequence[int], pointwise: Sequence[int]) -> list[Case]:
    """All fits, each panel's axis in order; numbers of points for the panel of clusters, by search."""
    if quick:
        cases = [Case("clusters", 16_384, 32, c) for c in doubling(64, 1_024)]
        cases += [Case("clusters", 16_384, 32, c, "pointwise") for c in doubling(64, 1_024)]
        cases += [Case("points", n, 32, 128) for n in doubling(2_048, 16_384)]
        return cases + [Case("features", 4_096, d, 128) for d in doubling(8, 128)]
    searches = [("blocked", n_points) for n_points in sizes] + [("pointwise", n_points) for n_points in pointwise]
    cases = [Case("clusters", n, 32, c, search) for search, n in searches for c in doubling(1_024, 65_536)]
    cases += [Case("points", n, 32, 4_096) for n in doubling(16_384, 2_097_152)]
    return cases + [Case("features", 131_072, d, 2_048) for d in doubling(4, 512)]


def measure(case: Case, n_iter: int) -> Point:
    """Fit, and look at the iterations' times."""
    seconds: list[float] = []
    X = mixture(case.n_points, case.n_features, max(2 * case.n_clusters, case.n_points // 2))
    model = VCGMM(
        case.n_clusters,
        coreset_size=None,
        tol=0.0,
        max_iter=n_iter,
        random_state=0,
        search=case.search,
        callbacks=lambda facts: seconds.append(facts.seconds),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X)
    ends = np.array(seconds[LINKED_AT_FIRST - 1 :])
    runs = (ends[LINKED_EVERY:] - ends[:-LINKED_EVERY]) / LINKED_EVERY
    mean = (seconds[-1] - seconds[0]) / (n_iter - 1)
    distances = model.n_distance_evaluations_["em"] / n_iter
    problem = case.n_points, case.n_features, case.n_clusters, case.search
    return Point(case.panel, *problem, float(np.median(runs)), mean, distances)


def in_lines(pairs: Sequence[tuple[int, Point]]) -> list[list[tuple[int, Point]]]:
    """Those of one search and one number of points each."""

    def line_of(point: Point) -> tuple[str, int]:
        return point.search, point.n_points

    return [
        [pair for pair in pairs if line_of(pair[1]) == line]
        for line in dict.fromkeys(line_of(p) for _, p in pairs)
    ]


def slope(points: Sequence[Point], values: Sequence[int]) -> float:
    """Exponent of the power law through them."""
    return float(np.polyfit(np.log(values), np.log([point.median_seconds for point in points]), 1)[0])


def draw(points: dict[str, list[tuple[int, Point]]], path: Path) -> None:
    """Panels on logarithmic axes, with the slopes of a cost that grows in proportion, or not at all."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator

    figure = Figure(figsize=(11, 3.6), layout="constrained")
    panels = figure.subplots(1, len(points), squeeze=False)[0]
    titles = {"clusters": "clusters C", "points": "points N′", "features": "features D"}
    for ax, (panel, pairs) in zip(panels, points.items(), strict=True):
        lines = in_lines(pairs) if panel == "clusters" else [pairs]
        everything = []
        for k, line in enumerate(lines):
            x = np.array([value for value, _ in line], float)
            y = 1e3 * np.array([point.median_seconds for _, point in line])
            everything.append(y)
            for power in (0, 1) if panel == "clusters" else (1,):
                end = 0 if panel == "clusters" else -1  # through the smallest, or the largest problem
                style = {"color": "#c8553d", "linewidth": 1, "linestyle": "--" if power else ":"}
                ax.loglog(x, y[end] * (x / x[end]) ** power, label=None if k else f"slope {power}", **style)
            colour, label = LINES[k % len(LINES)], None if k else "measured"
            ax.loglog(x, y, color=colour, marker="o", markersize=4, label=label)
            if len(lines) > 1:
                by_point = line[0][1].search == "pointwise"  # where it begins, since it ends near others
                name = f"N′ = {line[0][1].n_points:,}" + (", point by point" if by_point else "")
                place, side = ((x[0], y[:4].max()), "left") if by_point else ((x[-1], y[-1]), "right")
                ax.annotate(
                    name, place, (0, 7), textcoords="offset points", ha=side, fontsize="small", color=colour
                )
        y = np.concatenate(everything)
        first = pairs[0][1]
        fixed = {"N′": first.n_points, "D": first.n_features, "C": first.n_clusters}
        del fixed[titles[panel].split()[-1]]
        if len(lines) > 1:
            del fixed["N′"]
        ax.set_title(", ".join(f"{name} = {value:,}" for name, value in fixed.items()), fontsize="medium")
        ax.set_xlabel(titles[panel])
        ax.set_xticks(x[:: 2 if len(x) > 5 else 1])
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.minorticks_off()
        middle, span = np.sqrt(y.min() * y.max()), max(y.max() / y.min(), 10.0) ** 0.6  # a decade at least
        ax.set_ylim(middle / span, middle * span)
        ax.tick_params(axis="x", labelrotation=30, labelsize="small")
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(alpha=0.25, linewidth=0.5)
        ax.legend(frameon=False, fontsize="small", loc="upper left" if len(lines) == 1 else "lower right")
    panels[0].set_ylabel("milliseconds an EM iteration")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def main() -> None:
    """Measure, print, draw, and write the CSV."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iterations", type=int, default=16)
    parser.add_argument("--panels", nargs="+", choices=PANELS, default=PANELS)
    parser.add_argument("--points", type=int, nargs="+", default=[262_144], help="of the panel of clusters")
    parser.add_argument("--pointwise", type=int, nargs="*", default=[262_144], help="… with the paper's search")
    parser.add_argument("--quick", action="store_true", help="small problems: tells that it runs, not how fast")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--picture", type=Path)
    arguments = parser.parse_args()
    if arguments.iterations < FEWEST:
        parser.error(f"--iterations must be at least {FEWEST}")
    for search in ("blocked", "pointwise"):  # compiled
        measure(Case("clusters", 4_096, 32, 64, search), FEWEST)

    points: dict[str, list[tuple[int, Point]]] = {}
    cases = plan(arguments.quick, arguments.points, arguments.pointwise)
    cases = [case for case in cases if case.panel in arguments.panels]
    for case in track(cases, "fits", console=Console(stderr=True)):
        points.setdefault(case.panel, []).append((case.value, measure(case, arguments.iterations)))

    console = Console(width=110)
    table = Table("against", "search", "N'", "D", "C", "median", "mean", "a point", "distances a point")
    for panel, pairs in points.items():
        for _, point in pairs:
            sizes = f"{point.n_points:,}", str(point.n_features), f"{point.n_clusters:,}"
            times = f"{1e3 * point.median_seconds:.1f} ms", f"{1e3 * point.mean_seconds:.1f} ms"
            per_point = f"{1e6 * point.median_seconds / point.n_points:.2f} µs"
            table.add_row(
                panel, point.search, *sizes, *times, per_point, f"{point.distances / point.n_points:.0f}"
            )
        table.add_section()
    console.print(table)
    for panel, pairs in points.items():
        for line in in_lines(pairs) if panel == "clusters" else [pairs]:
            values, measured = zip(*line, strict=True)
            console.print(f"{panel}: time grows with the power {slope(measured, values):.2f}")
    for line in in_lines(points.get("clusters", [])):
        clusters = [point for _, point in line]
        growth = max(point.median_seconds for point in clusters) / min(point.median_seconds for point in clusters)
        first, last = clusters[0], clusters[-1]
        clusters_of = f"from {first.n_clusters:,} to {last.n_clusters:,} clusters"
        console.print(
            f"{first.n_points:,} points, {first.search}: {clusters_of} an iteration takes "
            f"{growth:.2f} times as long; hoped for: less than {TARGET:g}-fold; "
            f"met: {verdict(growth, TARGET)}"
        )
    if arguments.picture:
        draw(points, arguments.picture)
    if arguments.output:
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        with arguments.output.open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow([field.name for field in fields(Point)])
            writer.writerows(astuple(point) for pairs in points.values() for _, point in pairs)


if __name__ == "__main__":
    main()
