"""Tables in Markdown, from the records alone."""

from __future__ import annotations

from collections.abc import Iterable

from .plan import STUDIES, Study, defaults, table1
from .published import SIZES, Published
from .records import Records
from .summary import Summary, summarise

#: The order of rows; "ours" without a coreset is written as such.
ROWS = (
    "k-means++",
    "scikit-learn",
    "AFK-MC2",
    "var-GMM-S",
    "ours, all points",
    "LWCS",
    "vc-GMM",
    "ours",
    "untouched",
)


def markdown(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table."""
    names = list(header)
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def row_name(summary: Summary) -> str:
    """What an algorithm is called in the tables."""
    entry = summary.entry
    if entry.algorithm == "ours" and entry.size is None:
        return "ours, all points"
    return entry.algorithm


def shown_name(name: str) -> str:
    """The same for readers."""
    names = {
        "AFK-MC2": "AFK-MC²",
        "scikit-learn": "scikit-learn k-means++",
        "untouched": "**ours**, nothing set",
        "ours": "**ours**",
        "ours, all points": "**ours**, all points",
    }
    return names.get(name, name)


def power(size: int | None) -> str:
    """N' as the power of two that it is."""
    superscripts = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
    return "–" if size is None else "2" + str(size.bit_length() - 1).translate(superscripts)


def times(value: float | None) -> str:
    """A speed-up."""
    if value is None:
        return "–"
    return f"{value:,.0f}×" if value >= 100 else f"{value:.1f}×"


def with_paper(ours: str, paper: str | None) -> str:
    """Ours and, where there is one, the paper's number beside it."""
    return ours if paper is None else f"{ours} ({paper})"


def percent(value: float, error: float | None, digits: int = 2) -> str:
    """A relative error with its standard error."""
    rounded = round(value, digits) + 0.0  # no minus before nothing
    return f"{rounded:.{digits}f}" + ("" if error is None else f" ± {error:.2f}")


def cells(summary: Summary, line: Published | None) -> list[str]:
    """A row of Table 1, the paper's numbers in brackets."""
    entry = summary.entry
    share = "–" if summary.share is None else f"{100 * summary.share:.0f} %"
    return [
        shown_name(row_name(summary)),
        entry.g or "–",
        power(entry.size) if entry.size is None else f"{power(entry.size)} ({summary.n_points:,.0f})",
        with_paper(percent(summary.eta, summary.eta_sem), line and percent(line.eta, line.sem)),
        with_paper(times(summary.time), line and times(line.time)),
        times(summary.sklearn_time),
        times(summary.distances),
        with_paper(times(summary.draw_distances), line and times(line.distances)),
        with_paper(f"{summary.iterations:.1f}" if summary.iterations else "–", line and f"{line.iterations:.1f}"),
        with_paper(share, line and line.share),
        f"{summary.seconds:.2f}",
        str(summary.n_seeds),
    ]


HEADER = [
    "algorithm", "G", "N′ (different points)", "η, % (paper)", "time (paper)", "time against scikit-learn",
    "distances", "distances by draws (paper)", "iterations (paper)", "coreset and seeding (paper)",
    "seconds", "seeds",
]  # fmt: skip


def in_order(summaries: Iterable[Summary | None]) -> list[Summary]:
    """Those that there are, in the order of the tables."""
    return sorted((s for s in summaries if s is not None), key=lambda s: ROWS.index(row_name(s)))


def first_table(records: Records) -> str:
    """Table 1: one table for each set."""
    blocks = []
    for study in STUDIES.values():
        summaries = in_order(summarise(records, entry) for entry in table1(study, 0))
        if len(summaries) > 1 and any(s.entry.algorithm == "LWCS" for s in summaries):
            rows = [cells(s, study.published.get(row_name(s))) for s in summaries]
            blocks.append(f"**{heading(study, summaries[0].n_points)}**\n\n{markdown(HEADER, rows)}")
    return "\n\n".join(blocks)


def heading(study: Study, n_rows: float) -> str:
    """The title of a set's table."""
    if not study.same:
        return study.title
    share = n_rows / SIZES[study.paper][0]
    return f"{study.title}: the paper's set" + ("" if share == 1 else f", {100 * share:.0f} % of its rows")


def defaults_table(records: Records) -> str:
    """All threads, float32."""
    rows = []
    for study in STUDIES.values():
        for s in in_order(summarise(records, entry) for entry in defaults(study, 0)):
            size = f"{s.n_points:,.0f}" if s.entry.algorithm == "untouched" else power(s.entry.size)
            rows.append(
                [study.name, shown_name(row_name(s)), size, percent(s.eta, s.eta_sem), times(s.time),
                 f"{s.iterations:.1f}", f"{s.seconds:.3f}", str(s.n_seeds)]
            )  # fmt: skip
    header = ["set", "algorithm", "N′", "η, %", "time", "iterations", "seconds", "seeds"]
    return markdown(header, rows)


def target_rows(records: Records) -> str:
    """What must come out, and what did."""
    rows = []

    def check(what: str, wanted: float, margin: float, got: float | None, unit: str) -> None:
        if got is not None:
            kept = "yes" if abs(got - wanted) <= margin else "**no**"
            rows.append([what, f"{wanted:g} ± {margin:.3g}{unit}", f"{got:.3g}{unit}", kept])

    for name, algorithm, iterations, distances in (
        ("kdd-500", "vc-GMM", 4.0, True),
        ("kdd-500", "var-GMM-S", None, True),
        ("kdd-500", "LWCS", None, False),
        ("rna-500", "LWCS", None, False),
        ("cifar10-500", "vc-GMM", None, True),
        ("cifar10-500", "var-GMM-S", None, False),
        ("cifar10-500", "LWCS", None, False),
    ):
        study = STUDIES[name]
        found = {row_name(s): s for s in in_order(summarise(records, e) for e in table1(study, 0))}
        if algorithm not in found:
            continue
        summary, line = found[algorithm], study.published[algorithm]
        margin = 1.0 if algorithm == "var-GMM-S" else 1.5
        note = "" if name != "rna-500" else " (not all of its rows)"
        check(f"{name}{note}, {algorithm}: η", line.eta, margin, summary.eta, " %")
        if iterations:
            check(f"{name}, {algorithm}: iterations", round(line.iterations), iterations, summary.iterations, "")
        if distances:
            got = summary.draw_distances
            check(f"{name}, {algorithm}: distances by draws", line.distances, line.distances / 10, got, "×")
    for study in STUDIES.values():
        found = {row_name(s): s for s in in_order(summarise(records, e) for e in table1(study, 0))}
        if {"ours", "vc-GMM"} <= set(found):
            a, b = found["ours"], found["vc-GMM"]
            what = f"{study.name}: ours beside vc-GMM at the same N′"
            kept = "yes" if a.eta <= b.eta and a.seconds < b.seconds else "**no**"
            got = f"{a.eta:.2f} % beside {b.eta:.2f} %; {a.seconds:.2f} s beside {b.seconds:.2f} s"
            rows.append([what, "η no higher, and faster", got, kept])
    return markdown(["what", "wanted", "came out", "kept"], rows)


def ratios_table(records: Records) -> str:
    """Time of the two baselines."""
    rows = []
    for study in STUDIES.values():
        found = {s.entry.algorithm: s for s in (summarise(records, e) for e in table1(study, 0)) if s is not None}
        if "scikit-learn" in found:
            a, b = found["k-means++"], found["scikit-learn"]
            rows.append(
                [study.name, f"{a.seconds:.1f}", f"{a.iterations:.1f}", f"{100 * (a.share or 0):.0f} %",
                 f"{b.seconds:.1f}", f"{b.iterations:.1f}", percent(b.eta, b.eta_sem), str(b.n_seeds)]
            )  # fmt: skip
    header = ["set", "our k-means++, s", "iterations", "seeding", "scikit-learn, s", "iterations", "η, %", "seeds"]
    return markdown(header, rows)
