"""Figures in one style, from the records alone: the paper's Figure 1 and those of its supplement."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

mpl.use("Agg")
import matplotlib.pyplot as plt

from .plan import STUDIES, Study, figure1
from .records import Records
from .summary import Summary, summarise
from .tables import power, row_name

STYLE = {
    "font.size": 7.5,
    "axes.titlesize": 8,
    "axes.labelsize": 7.5,
    "legend.fontsize": 7.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.3,
    "lines.markersize": 4,
    "axes.linewidth": 0.6,
    "svg.fonttype": "none",  # text stays text: small files that can be searched
    "svg.hashsalt": "vcgmm",
}

#: Colour, marker and label of each curve, told apart without colour too.
LOOKS: dict[str, tuple[str, str, str]] = {
    "ours": ("#0b62a4", "o", "ours"),
    "vc-GMM": ("#d1495b", "s", "vc-GMM"),
    "LWCS": ("#6b8e23", "^", "LWCS"),
    "var-GMM-S": ("#8e5ea2", "D", "var-GMM-S"),
    "ours, all points": ("#0b62a4", "*", "ours, all points"),
    "AFK-MC2": ("#8a8a8a", "v", "AFK-MC²"),
    "k-means++": ("#222222", "X", "k-means++"),
}

#: Percent up to which errors are drawn on a linear scale, and where ticks may be.
LINEAR = 15.0
TICKS = (-10, -5, 0, 5, 10, 15, 40, 100, 250)

Value = Callable[[Summary], float | None]


def curves(records: Records, study: Study) -> dict[str, list[Summary]]:
    """Summaries of every algorithm, in the order in which they are joined."""
    found: dict[str, list[Summary]] = {}
    for entry in dict.fromkeys(figure1(study, 0)):
        summary = summarise(records, entry)
        if summary is not None:
            found.setdefault(row_name(summary), []).append(summary)
    return found


def draw_curve(axes: Any, name: str, points: list[Summary], x: Value, y: Value, error: Value) -> None:
    """One algorithm: a line through its settings, its standard errors shaded."""
    colour, marker, label = LOOKS[name]
    known = [(a, y(s), error(s) or 0.0) for s in points if (a := x(s)) is not None and y(s) is not None]
    if not known:
        return
    xs, ys, errors = (list(column) for column in zip(*known, strict=True))
    alone = len(xs) == 1
    size = 9 if marker == "*" else None
    line = "none" if alone else "-"
    axes.plot(xs, ys, linestyle=line, color=colour, marker=marker, label=label, markersize=size)
    if not alone:
        low, high = ([a + sign * b for a, b in zip(ys, errors, strict=True)] for sign in (-1, 1))
        axes.fill_between(xs, low, high, color=colour, alpha=0.2, linewidth=0)


def plain_ticks(axes: Any) -> None:
    """1, 10, 100 rather than powers of ten."""
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}×"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def size_ticks(axes: Any, study: Study) -> None:
    """Powers of two as they are."""
    axes.set_xscale("log", base=2)
    axes.set_xticks(list(study.sizes), [power(size) for size in study.sizes])
    axes.xaxis.set_minor_formatter(NullFormatter())


def error_axis(axes: Any, found: dict[str, list[Summary]]) -> None:
    """Linear where the algorithms are, logarithmic above: seeds alone are several times as far from k-means++."""
    etas = [s.eta for points in found.values() for s in points]
    axes.set_yscale("symlog", linthresh=LINEAR, linscale=2.0)
    axes.set_ylim(min(*etas, 0.0) - 1.2, 1.25 * max(etas))
    ticks = [tick for tick in TICKS if axes.get_ylim()[0] <= tick <= axes.get_ylim()[1]]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_minor_locator(NullLocator())


def draw_row(row: Any, records: Records, study: Study) -> None:
    """The three panels of a set."""
    found = curves(records, study)
    left, middle, right = row
    for name in LOOKS:
        points = found.get(name, [])
        draw_curve(left, name, points, lambda s: s.distances, lambda s: s.eta, lambda s: s.eta_sem)
        draw_curve(middle, name, points, lambda s: s.time, lambda s: s.eta, lambda s: s.eta_sem)
        if name in ("ours", "vc-GMM", "LWCS"):
            draw_curve(right, name, points, lambda s: s.entry.size, lambda s: s.eta, lambda s: s.eta_sem)
    if not found:
        return
    seeds = sorted({s.n_seeds for points in found.values() for s in points})
    many = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    left.set_ylabel("relative error η, %")
    left.set_title(f"{study.title}; G = {study.g}, m = {study.chain_length}", loc="left", fontweight="bold")
    right.set_title(f"{many} seed{'s' if seeds[-1] > 1 else ''}", loc="right", fontsize=7)
    for axes in (left, middle):
        plain_ticks(axes)
    size_ticks(right, study)
    for axes in row:
        error_axis(axes, found)
        axes.axhline(0, color="#222222", linewidth=0.6, linestyle=":")
    left.set_xlabel("speed-up in distance evaluations")
    middle.set_xlabel("speed-up in time, one thread, float64")
    right.set_xlabel("coreset size N′")


def main_figure(records: Records, names: list[str]) -> Any:
    """Rows of three panels, as in the paper's Figure 1."""
    with mpl.rc_context(STYLE):
        figure, grid = plt.subplots(
            len(names), 3, figsize=(7.4, 1.95 * len(names) + 0.45), layout="constrained", squeeze=False
        )
        for row, name in zip(grid, names, strict=True):
            draw_row(row, records, STUDIES[name])
        legend(figure, grid[0][0])
    return figure


def legend(figure: Any, axes: Any) -> None:
    """One legend for all panels, above them."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False, columnspacing=1.2)


def nmi_figure(records: Records, names: list[str]) -> Any:
    """Agreement with k-means++ against N', as in the supplement."""
    with mpl.rc_context(STYLE):
        n_columns = 3
        n_rows = -(-len(names) // n_columns)
        figure, grid = plt.subplots(
            n_rows, n_columns, figsize=(7.4, 2.0 * n_rows + 0.4), layout="constrained", squeeze=False
        )
        for axes, name in zip(grid.ravel(), names, strict=False):
            study = STUDIES[name]
            found = curves(records, study)
            for algorithm in ("ours", "vc-GMM", "LWCS"):
                points = found.get(algorithm, [])
                draw_curve(axes, algorithm, points, lambda s: s.entry.size, lambda s: s.nmi, lambda s: s.nmi_sem)
            size_ticks(axes, study)
            axes.set_title(f"{study.set}, {study.n_clusters:,} clusters", loc="left", fontweight="bold")
            axes.set_xlabel("coreset size N′")
            axes.set_ylabel("NMI with k-means++")
        for axes in grid.ravel()[len(names) :]:
            axes.set_axis_off()
        legend(figure, grid[0][0])
    return figure


def draw(records: Records, folder: Path) -> list[Path]:
    """All figures, as PNG and SVG: one for each row of the paper's Figure 1, so that files stay small."""
    folder.mkdir(parents=True, exist_ok=True)
    have = [name for name, study in STUDIES.items() if "vc-GMM" in curves(records, study)]
    wanted = {f"paper-{name}": [name] for name in have}
    if have:
        wanted["paper-nmi"] = have
    written = []
    for title, names in wanted.items():
        figure = (nmi_figure if title == "paper-nmi" else main_figure)(records, names)
        for suffix in (".png", ".svg"):
            path = folder / f"{title}{suffix}"
            metadata = {"Date": None} if suffix == ".svg" else None
            with mpl.rc_context(STYLE):
                figure.savefig(path, dpi=120, metadata=metadata)
            written.append(path)
        plt.close(figure)
    return written
