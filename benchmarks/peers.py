"""Us and every peer on the same data: the time that each takes to a quantization error.

    make bench                                                     # all sets, resumes where it stopped
    python benchmarks/peers.py --sets kdd rna --seeds 3            # some of them
    python benchmarks/peers.py --sets vectors.npy:4096             # any .npy file, with a number of clusters
    python benchmarks/peers.py --report --tables page.md           # tables and pictures from what was measured

Every library runs in a process of its own that holds the data as C-ordered float32, warmed up before the clock
starts; one fit runs at a time, ours and the peers' in turn, all on the same number of threads.  The error is
exact and over all rows.  A fit that takes longer than the budget is stopped and listed as such; one that took
longer than the patience is not repeated with further seeds.  Each result is written when it is there.
"""

from __future__ import annotations

import argparse
import platform
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from bench_process import BenchProcess
from peers_report import report
from peers_tables import page
from results import Results
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from sets import SETS, load
from systems import PEERS, System, ours

from vcgmm import quantization_error
from vcgmm.parallel import available_threads


@dataclass(frozen=True)
class Run:
    """One line of the results; `seconds` and `error` are empty where `note` says why."""

    set: str
    n: int
    d: int
    c: int
    threads: int
    system: str
    setting: str
    seed: int
    seconds: float | str
    error: float | str
    warm_up: float
    note: str = ""


def found(results: Results, name: str, c: int, system: System, seed: int | None = None) -> list[dict[str, str]]:
    """What is known of a system on a set."""
    of_seed = {} if seed is None else {"seed": seed}
    return results.find(set=name, c=c, system=system.name, setting=system.setting, **of_seed)


def in_turn(ours_: list[System], peers: list[System]) -> list[System]:
    """Both lists in one, evenly mixed, so that all see the same noise."""
    ranked = [
        ((i + 0.5) / len(group), g, s) for g, group in enumerate((ours_, peers)) for i, s in enumerate(group)
    ]
    return [system for _, _, system in sorted(ranked, key=lambda entry: entry[:2])]


def measure(
    name: str, c: int, arguments: argparse.Namespace, results: Results, systems: list[System], progress: Progress
) -> None:
    """Run all that is missing of one set."""
    missing = [
        (seed, system)
        for seed in range(arguments.seeds)
        for system in systems
        if not found(results, name, c, system, seed)
    ]
    task = progress.add_task(name, total=len(systems) * arguments.seeds)
    progress.advance(task, len(systems) * arguments.seeds - len(missing))
    if not missing:
        return
    X = np.ascontiguousarray(load(name), dtype=np.float32)
    families: dict[str, list[System]] = {}
    for system in systems:
        families.setdefault(system.family, []).append(system)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.npy"
        np.save(path, X)
        processes = {f: BenchProcess(path, members, arguments.threads) for f, members in families.items()}
        try:
            for seed, system in missing:
                progress.update(task, description=f"{name} · {system.name}, {system.setting}")
                outcome = attempt(processes[system.family], families, system, X, c, seed, arguments, results, name)
                run = Run(
                    name, *X.shape, c, arguments.threads, system.name, system.setting, seed, *outcome[:2],
                    round(processes[system.family].warm_up, 2), outcome[2],
                )  # fmt: skip
                results.add({column: str(value) for column, value in asdict(run).items()})
                progress.advance(task)
        finally:
            for process in processes.values():
                process.close()
    progress.update(task, description=name)


def attempt(
    process: BenchProcess,
    families: dict[str, list[System]],
    system: System,
    X: np.ndarray,
    c: int,
    seed: int,
    arguments: argparse.Namespace,
    results: Results,
    name: str,
) -> tuple[float | str, float | str, str]:
    """Seconds, error and a note for one fit."""
    before = found(results, name, c, system)
    if any(row["note"] and not row["seconds"] for row in before):
        return "", "", before[0]["note"] or "as before"
    if any(row["seconds"] and float(row["seconds"]) > arguments.patience for row in before):
        return "", "", f"not repeated: took more than {arguments.patience:.0f} s"
    outcome = process.run(families[system.family].index(system), c, seed, arguments.budget)
    if isinstance(outcome, str):
        return "", "", outcome
    seconds, centres = outcome
    return round(seconds, 4), quantization_error(X, centres), ""


def parse_set(text: str) -> tuple[str, int]:
    """NAME, or PATH.npy:C."""
    name, _, c = text.rpartition(":")
    if not name:
        if text not in SETS:
            raise argparse.ArgumentTypeError(
                f"{text!r} is not one of {', '.join(SETS)}: give a file as PATH.npy:CLUSTERS."
            )
        return text, SETS[text]
    return name, int(c)


def main() -> None:
    """Measure what is missing, then report all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", type=parse_set, default=list(SETS.items()))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=available_threads())
    parser.add_argument("--budget", type=float, default=180.0, help="seconds after which a fit is stopped")
    parser.add_argument("--patience", type=float, default=30.0, help="seconds beyond which a fit is not repeated")
    parser.add_argument("--output", type=Path, default=Path("docs/benchmarks/peers.csv"))
    parser.add_argument("--pictures", type=Path, default=Path("docs/images"))
    parser.add_argument("--tables", type=Path, help="all tables as Markdown, into this file")
    parser.add_argument("--only-ours", action="store_true", help="leave the peers out")
    parser.add_argument("--report", action="store_true", help="measure nothing")
    arguments = parser.parse_args()
    results = Results(arguments.output)
    console = Console(width=150)
    if not arguments.report:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=Console(stderr=True)) as progress:
            for name, c in arguments.sets:
                systems = ours() if arguments.only_ours else in_turn(ours(), PEERS)
                measure(name, c, arguments, results, systems, progress)
    console.print(f"{platform.processor() or platform.machine()}, {arguments.threads} threads")
    report(results.rows, arguments.sets, arguments.pictures, console)
    if arguments.tables is not None:
        arguments.tables.parent.mkdir(parents=True, exist_ok=True)
        arguments.tables.write_text(page(results.rows, arguments.sets), encoding="utf-8")


if __name__ == "__main__":
    main()
