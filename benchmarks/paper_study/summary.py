"""Runs that differ by their seed alone, in one line: means, standard errors, ratios to k-means++."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import mean, median, stdev

from .plan import STUDIES, Entry, baseline
from .records import Records


@dataclass(frozen=True)
class Summary:
    """What came out of an entry.

    Attributes
    ----------
    entry : Entry
    n_seeds : int
    eta, eta_sem : float, float or None
        Relative quantization error in percent, with the standard error of its mean (None of one run).
    nmi, nmi_sem : float or None
        Agreement with the partition of k-means++ from the same seed.
    seconds : float
        The median over seeds, of the processor's time where there is one thread.
    time, sklearn_time : float or None
        Speed-up against our k-means++, and against scikit-learn's.
    distances : float or None
        Speed-up in distance evaluations.
    draw_distances : float or None
        The same counted as the paper does, where rows that were drawn repeatedly are as many points.
    iterations : float
    share : float or None
        Of the time in coreset and seeding.
    n_points : float
        N' without repetitions.
    error, error_sem : float, float or None
        Quantization error itself.
    """

    entry: Entry
    n_seeds: int
    eta: float
    eta_sem: float | None
    nmi: float | None
    nmi_sem: float | None
    seconds: float
    time: float | None
    sklearn_time: float | None
    distances: float | None
    draw_distances: float | None
    iterations: float
    share: float | None
    n_points: float
    error: float
    error_sem: float | None


def sem(values: list[float]) -> float | None:
    """Standard error of the mean."""
    return stdev(values) / len(values) ** 0.5 if len(values) > 1 else None


def seconds_of(lines: list[dict]) -> float:
    """Median time of some runs: on one thread that of the processor, whatever else the machine was at.

    `busy` is the share of a run's time in which it had the processor; runs without it count only if all lack it.
    """
    known = [line for line in lines if "busy" in line] or lines
    return median(sum(line["seconds"].values()) * min(1.0, line.get("busy", 1.0)) for line in known)


def distances_of(lines: list[dict]) -> float:
    """Mean number of distances of some runs."""
    return mean(sum(line["distances"].values()) for line in lines)


def draw_distances_of(lines: list[dict]) -> float:
    """The same as if a row that was drawn k times were k points.

    We keep it once, with k times its weight: the same objective.  Each draw would cost one more distance to the
    first seed, and as many in every E-step as the others.
    """
    totals = []
    for line in lines:
        total, n_draws = sum(line["distances"].values()), line["size"]
        if n_draws is not None and line["algorithm"] in ("LWCS", "vc-GMM"):
            total += n_draws - line["n_points"] + line["distances"]["em"] * (n_draws / line["n_points"] - 1)
        totals.append(total)
    return mean(totals)


def summarise(records: Records, entry: Entry) -> Summary | None:
    """The summary of an entry's repetitions, or None where there are none."""
    lines = records.repetitions(entry)
    study = STUDIES[f"{entry.set}-{entry.n_clusters}"]
    base = records.repetitions(baseline(study, 0, entry.condition))
    exact = records.repetitions(baseline(study, 0))  # errors are told relative to the paper's conditions
    if not lines or not base or not exact:
        return None
    unit = mean(line["error"] for line in exact)
    etas = [100 * (line["error"] / unit - 1) for line in lines]
    nmis = [line["nmi"] for line in lines if line["nmi"] is not None]
    peers = records.repetitions(replace(baseline(study, 0), algorithm="scikit-learn"))
    seconds = seconds_of(lines)
    counted = all(line["distances"] for line in lines)
    parts = [line["seconds"] for line in lines]
    known = all("em" in part for part in parts)
    early = [sum(v for name, v in part.items() if name != "em") / sum(part.values()) for part in parts]
    errors = [line["error"] for line in lines]
    return Summary(
        entry=entry,
        n_seeds=len(lines),
        eta=mean(etas),
        eta_sem=sem(etas),
        nmi=mean(nmis) if nmis else None,
        nmi_sem=sem(nmis),
        seconds=seconds,
        time=seconds_of(base) / seconds,
        sklearn_time=seconds_of(peers) / seconds if peers and entry.condition == "paper" else None,
        distances=distances_of(base) / distances_of(lines) if counted else None,
        draw_distances=distances_of(base) / draw_distances_of(lines) if counted else None,
        iterations=mean(line["iterations"] for line in lines),
        share=median(early) if known else None,
        n_points=mean(line["n_points"] for line in lines),
        error=mean(errors),
        error_sem=sem(errors),
    )
