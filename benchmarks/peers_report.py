"""Tables and pictures from the results of `peers.py`."""

from __future__ import annotations

from pathlib import Path
from statistics import median

from peers_compared import OURS, Compared, Point, compare
from rich.console import Console
from rich.table import Table


def report(rows: list[dict[str, str]], sets: list[tuple[str, int]], pictures: Path, console: Console) -> None:
    """Print a table per set and draw its picture."""
    ratios: list[float] = []
    for name, c in sets:
        compared = compare(rows, name, c)
        if compared is None:
            continue
        console.print(table_of(compared))
        draw(compared, pictures)
        ratios += [peer.ratio for peer in compared.peers]
    if ratios:
        reached_ratios = [ratio for ratio in ratios if ratio]
        console.print(
            f"{len(ratios)} points of peers: {len(ratios) - len(reached_ratios)} not reached; ratio smallest "
            f"{min(reached_ratios):.1f}, median {median(reached_ratios):.1f}; "
            f"{sum(ratio >= 3 for ratio in ratios)} at 3 or more.  *: dominates our default."
        )


def table_of(compared: Compared) -> Table:
    """Our front, the default, and every peer."""
    table = Table("system", "setting", "seconds", "error", "above best", "runs", "we reach it by", "in", "ratio")
    table.title = f"{compared.name}, C = {compared.n_clusters:,}"
    for point in compared.ours:
        table.add_row(OURS, point.setting, *numbers(compared, point), "", "", "", style="bold")
    default = compared.default
    if default is not None and not default.n_runs:
        table.add_row(OURS, "default", default.note, "", "", "", "", "", "", style="dim")
    elif default is not None and default not in compared.ours:
        table.add_row(OURS, "default", *numbers(compared, default), "", "", "", style="bold")
    for peer in compared.peers:
        point, reached = peer.point, peer.reached_by
        last = (
            (reached.setting, f"{reached.seconds:.3f}", f"{peer.ratio:.1f}")
            if reached
            else ("–", "–", "not reached")
        )
        mark = " *" if peer.dominates_default else ""
        table.add_row(point.system + mark, point.setting, *numbers(compared, point), *last)
    for point in compared.stopped:
        table.add_row(point.system, point.setting, point.note, "", "", "", "", "", "", style="dim")
    return table


def numbers(compared: Compared, point: Point) -> tuple[str, str, str, str]:
    """Columns that every point has."""
    above = f"{compared.above_best(point):.1f} %"
    return f"{point.seconds:.3f}", f"{point.error:.4g}", above, str(point.n_runs)


def draw(compared: Compared, folder: Path) -> None:
    """Time against error relative to the best, all systems."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7.2, 4.4), layout="constrained")
    marks = "osD^vP"
    peers = [peer.point for peer in compared.peers]
    for i, system in enumerate(sorted({point.system for point in peers})):
        members = [point for point in peers if point.system == system]
        axes.plot(
            [p.seconds for p in members], [compared.above_best(p) for p in members],
            marks[i % len(marks)], color=f"C{i + 1}", label=system, markersize=7, alpha=0.9,
        )  # fmt: skip
    axes.plot(
        [p.seconds for p in compared.ours], [compared.above_best(p) for p in compared.ours],
        "-", color="C0", marker=".", linewidth=2, label="vcgmm, best settings",
    )  # fmt: skip
    default = compared.default
    if default is not None and default.n_runs:
        axes.plot(
            default.seconds, compared.above_best(default), "*", color="C0", markersize=16, label="vcgmm, default"
        )
    axes.set_xscale("log")
    axes.set_yscale("symlog", linthresh=1.0)
    axes.set_ylim(bottom=-0.1)
    axes.set_yticks(
        [0, 1, 2, 5, 10, 20, 50, 100, 200, 400], ["0", "1", "2", "5", "10", "20", "50", "100", "200", "400"]
    )
    drawn = [*compared.ours, *peers, *([default] if default is not None and default.n_runs else [])]
    top = max(compared.above_best(point) for point in drawn)
    axes.set_ylim(-0.1, 1.3 * max(top, 2))
    axes.set_xlabel("seconds")
    axes.set_ylabel("quantization error above the best, %")
    title = Path(compared.name).stem
    axes.set_title(f"{title}, {compared.n_clusters:,} clusters")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, framealpha=0.9)
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / f"peers-{title}.png", dpi=110)
    plt.close(figure)
