"""Tables and pictures from the results of `peers.py`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

from rich.console import Console
from rich.table import Table

OURS = "vcgmm"


@dataclass(frozen=True)
class Point:
    """A system's setting on one set: median seconds and mean error over seeds, or why there are none."""

    system: str
    setting: str
    seconds: float
    error: float
    n_runs: int
    note: str


def points_of(rows: list[dict[str, str]], name: str, c: int) -> list[Point]:
    """One point per setting."""
    groups: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in rows:
        if row["set"] == name and row["c"] == str(c):
            groups.setdefault((row["system"], row["setting"]), []).append(row)
    points = []
    for (system, setting), runs in groups.items():
        done = [run for run in runs if run["seconds"]]
        if done:
            seconds = median(float(run["seconds"]) for run in done)
            points.append(
                Point(system, setting, seconds, fmean(float(run["error"]) for run in done), len(done), "")
            )
        else:
            points.append(Point(system, setting, float("nan"), float("nan"), 0, runs[0]["note"]))
    return points


def front(points: list[Point]) -> list[Point]:
    """Those that no other beats in both time and error, fastest first."""
    best = float("inf")
    kept = []
    for point in sorted(points, key=lambda p: (p.seconds, p.error)):
        if point.error < best:
            kept.append(point)
            best = point.error
    return kept


def time_to(points: list[Point], error: float) -> Point | None:
    """The fastest of these points whose error is no larger."""
    able = [point for point in points if point.error <= error]
    return min(able, key=lambda point: point.seconds, default=None)


def report(rows: list[dict[str, str]], sets: list[tuple[str, int]], pictures: Path, console: Console) -> None:
    """Print a table per set and draw its picture."""
    ratios: list[float] = []
    for name, c in sets:
        points = points_of(rows, name, c)
        done = [point for point in points if point.n_runs]
        own = front([point for point in done if point.system == OURS])
        peers = [point for point in points if point.system != OURS]
        if not own:
            continue
        best = min(point.error for point in done)
        default = next((p for p in points if p.system == OURS and p.setting == "default"), None)
        table = Table(
            "system", "setting", "seconds", "error", "above best", "runs", "we reach it by", "in", "ratio"
        )
        table.title = f"{name}, C = {c:,}"
        for point in sorted(own, key=lambda p: p.seconds):
            table.add_row(OURS, point.setting, *numbers(point, best), "", "", "", style="bold")
        if default is not None and not default.n_runs:
            table.add_row(OURS, "default", default.note, "", "", "", "", "", "", style="dim")
            default = None
        elif default is not None and default not in own:
            table.add_row(OURS, "default", *numbers(default, best), "", "", "", style="bold")
        for point in sorted(peers, key=lambda p: (p.n_runs == 0, p.seconds)):
            if not point.n_runs:
                table.add_row(point.system, point.setting, point.note, "", "", "", "", "", "", style="dim")
                continue
            reached = time_to(own, point.error)
            ratios.append(point.seconds / reached.seconds if reached else 0.0)
            last = (
                (reached.setting, f"{reached.seconds:.3f}", f"{ratios[-1]:.1f}")
                if reached
                else ("–", "–", "not reached")
            )
            dominates = default and point.seconds <= default.seconds and point.error <= default.error
            table.add_row(point.system + (" *" if dominates else ""), point.setting, *numbers(point, best), *last)
        console.print(table)
        draw(name, c, done, own, default, best, pictures)
    if ratios:
        reached_ratios = [ratio for ratio in ratios if ratio]
        console.print(
            f"{len(ratios)} points of peers: {len(ratios) - len(reached_ratios)} not reached; ratio smallest "
            f"{min(reached_ratios):.1f}, median {median(reached_ratios):.1f}; "
            f"{sum(ratio >= 3 for ratio in ratios)} at 3 or more.  *: dominates our default."
        )


def numbers(point: Point, best: float) -> tuple[str, str, str, str]:
    """Columns that every point has."""
    above = f"{100 * (point.error / best - 1):.1f} %"
    return f"{point.seconds:.3f}", f"{point.error:.4g}", above, str(point.n_runs)


def draw(
    name: str, c: int, done: list[Point], own: list[Point], default: Point | None, best: float, folder: Path
) -> None:
    """Time against error relative to the best, all systems."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7.2, 4.4), layout="constrained")
    marks = "osD^vP"
    systems = sorted({point.system for point in done if point.system != OURS})
    for i, system in enumerate(systems):
        members = sorted((p for p in done if p.system == system), key=lambda p: p.seconds)
        axes.plot(
            [p.seconds for p in members], [100 * (p.error / best - 1) for p in members],
            marks[i % len(marks)], color=f"C{i + 1}", label=system, markersize=7, alpha=0.9,
        )  # fmt: skip
    axes.plot(
        [p.seconds for p in own], [100 * (p.error / best - 1) for p in own],
        "-", color="C0", marker=".", linewidth=2, label="vcgmm, best settings",
    )  # fmt: skip
    if default is not None:
        above = 100 * (default.error / best - 1)
        axes.plot(default.seconds, above, "*", color="C0", markersize=16, label="vcgmm, default")
    axes.set_xscale("log")
    axes.set_yscale("symlog", linthresh=1.0)
    axes.set_ylim(bottom=-0.1)
    axes.set_yticks(
        [0, 1, 2, 5, 10, 20, 50, 100, 200, 400], ["0", "1", "2", "5", "10", "20", "50", "100", "200", "400"]
    )
    top = max(100 * (p.error / best - 1) for p in done)
    axes.set_ylim(-0.1, 1.3 * max(top, 2))
    axes.set_xlabel("seconds")
    axes.set_ylabel("quantization error above the best, %")
    title = Path(name).stem
    axes.set_title(f"{title}, {c:,} clusters")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, framealpha=0.9)
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / f"peers-{title}.png", dpi=110)
    plt.close(figure)
