"""The paper's experiments with this library: Table 1, Figure 1, Table 2, and what its supplement remarks.

    make paper                                           # all of it, 50 seeds as in the paper: days
    make paper PAPER="--seeds 5"                         # a quick look
    python benchmarks/paper.py --seeds 5 --sets kdd-500 rna-500 --parts table1 figure1
    python benchmarks/paper.py --report                  # tables and figures from what was measured

Every run is appended to a file of JSON lines when it has ended, with settings, versions and machine; whatever is
in the file is not run again, so an interrupted study goes on where it was.  Tables and figures are made from that
file alone.  Times of the paper's conditions are those of one thread in float64.
"""

from __future__ import annotations

import argparse
import sys
import time
from itertools import groupby
from pathlib import Path

from paper_study.costs import measure_costs
from paper_study.page import show
from paper_study.plan import ALGORITHMS, PARTS, STUDIES, Entry, plan
from paper_study.records import Records
from paper_study.runs import load, measure, warm_up
from paper_study.scale import Scale, measure_scale

#: Parts that are no runs of the plan.
OTHERS = ("costs", "table2")


def expected(entry: Entry, records: Records) -> float | None:
    """Seconds that a run will take, by its repetitions."""
    walls = [line["wall"] for line in records.repetitions(entry)]
    return sum(walls) / len(walls) if walls else None


def time_left(entries: list[Entry], records: Records, done: list[float]) -> str:
    """In words; runs that nothing is known of count like the mean of those that were made."""
    known = [expected(entry, records) for entry in entries]
    typical = sum(done) / len(done) if done else 10.0
    seconds = sum(typical if value is None else value for value in known)
    return f"{seconds / 60:.0f} min left" if seconds >= 60 else f"{seconds:.0f} s left"


def run(entries: list[Entry], records: Records, labels: Path) -> None:
    """Make all runs that are missing."""
    missing = [entry for entry in entries if records.find(entry) is None]
    done: list[float] = []
    at = 0
    for name, group in groupby(missing, key=lambda entry: entry.set):
        todo = list(group)
        try:
            data = load(name)
        except FileNotFoundError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
            at += len(todo)
            continue
        warm_up(data, todo, records)
        for entry in todo:
            begun = time.perf_counter()
            facts = measure(entry, data, records, labels)
            records.add("run", facts)
            done.append(time.perf_counter() - begun)
            at += 1
            seconds = sum(facts["seconds"].values())
            print(
                f"[{at}/{len(missing)}] {entry}: {seconds:.2f} s, error {facts['error']:.5g}, "
                f"{facts['iterations']} iterations; {time_left(missing[at:], records, done)}",
                file=sys.stderr,
                flush=True,
            )


def main() -> None:
    """Run what is missing, then show all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=50, help="runs of each setting (the paper: 50)")
    parser.add_argument("--sets", nargs="+", choices=list(STUDIES), default=list(STUDIES), metavar="SET-CLUSTERS")
    parser.add_argument("--algorithms", nargs="+", choices=ALGORITHMS, default=list(ALGORITHMS), metavar="NAME")
    parser.add_argument("--parts", nargs="+", choices=(*PARTS, *OTHERS), default=[*PARTS, *OTHERS])
    parser.add_argument("--records", type=Path, default=Path("docs/benchmarks/paper.jsonl"))
    parser.add_argument("--pictures", type=Path, default=Path("docs/images"))
    parser.add_argument("--page", type=Path, default=Path("docs/paper.md"), help="in which tables are renewed")
    parser.add_argument(
        "--scratch", type=Path, default=Path("benchmarks/results"), help="partitions, a large file"
    )
    parser.add_argument(
        "--rows", type=int, help="of Table 2 in small, 3 kB each on disk; as many as half of the free disk holds"
    )
    parser.add_argument("--coreset", type=int, default=110_000, help="of Table 2 in small")
    parser.add_argument("--report", action="store_true", help="measure nothing")
    arguments = parser.parse_args()
    records = Records(arguments.records)
    if not arguments.report:
        parts = [part for part in PARTS if part in arguments.parts]
        entries = plan(arguments.sets, parts, arguments.algorithms, arguments.seeds)
        run(entries, records, arguments.scratch / "partitions")
        if "costs" in arguments.parts:
            measure_costs(records)
        if "table2" in arguments.parts:
            measure_scale(records, arguments.scratch, Scale(arguments.rows, arguments.coreset))
    show(records, arguments.page, arguments.pictures)


if __name__ == "__main__":
    main()
