"""Measured cost beside the paper's table of complexities: N', C and D varied one at a time."""

from __future__ import annotations

import math
import time
import tracemalloc
import warnings

import numpy as np

from vcgmm import VCGMM
from vcgmm.algorithm.yardsticks import k_means
from vcgmm.data import ArrayRows
from vcgmm.datasets import make_mixture
from vcgmm.parallel import Workers

from .records import Records
from .tables import markdown

#: The middle of all; N is the same in all of them.
N_SAMPLES = 1 << 18
MIDDLE = {"size": 1 << 14, "n_clusters": 512, "n_features": 64}

#: Each is multiplied by these in turn.
FACTORS = (0.5, 1, 2, 4)

ITERATIONS = 5
CHAIN_LENGTH = 20
REPEATS = 3

#: Powers of N', C and D by the paper's table: coreset, seeding, update, memory.  Seeding is a sum, m C² D + N' D,
#: and so is memory, C D + N' G² + C G + N (beside the points, N' D, that all of them hold): ranges.
EXPECTED = {
    ("vc-GMM", "size"): ("0", "0 to 1", "1", "0 to 1"),
    ("vc-GMM", "n_clusters"): ("0", "0 to 2", "0", "0 to 1"),
    ("vc-GMM", "n_features"): ("1", "1", "1", "0 to 1"),
    ("LWCS", "size"): ("0", "0 to 1", "1", "0 to 1"),
    ("LWCS", "n_clusters"): ("0", "0 to 2", "1", "0 to 1"),
    ("LWCS", "n_features"): ("1", "1", "1", "0 to 1"),
    ("ours", "size"): ("0", "–", "1", "–"),
    ("ours", "n_clusters"): ("0", "–", "0", "–"),
    ("ours", "n_features"): ("1", "–", "1", "–"),
}

LETTERS = {"size": "N′", "n_clusters": "C", "n_features": "D"}


def fit(form: str, X: np.ndarray, size: int, n_clusters: int) -> dict[str, float]:
    """Processor seconds of one fit by step, EM in seconds per iteration."""
    begun, busy = time.perf_counter(), time.process_time()
    if form == "LWCS":
        with Workers(1) as workers:
            found = k_means(
                ArrayRows(X), n_clusters, init="afkmc2", chain_length=CHAIN_LENGTH, coreset_size=size, seed=0,
                tol=0.0, max_iter=ITERATIONS, dtype=X.dtype, workers=workers,
            )  # fmt: skip
        timings, n_iter = found.timings, len(found.bounds)
    else:
        paper = {"search": "pointwise", "init": "afkmc2", "chain_length": CHAIN_LENGTH, "relaxation": 1.0}
        model = VCGMM(
            n_clusters, coreset_size=size, tol=0.0, max_iter=ITERATIONS, n_threads=1, random_state=0,
            **(paper if form == "vc-GMM" else {}),
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X)
        timings, n_iter = model.timings_, model.n_iter_
    busy = min(1.0, (time.process_time() - busy) / (time.perf_counter() - begun))  # what else runs does not count
    steps = {"coreset": timings["coreset"], "seeding": timings["seeding"], "update": timings["em"] / n_iter}
    return {name: busy * seconds for name, seconds in steps.items()}


def memory(form: str, X: np.ndarray, size: int, n_clusters: int) -> float:
    """Most bytes that a fit holds in NumPy's arrays beyond the data."""
    tracemalloc.start()
    try:
        fit(form, X, size, n_clusters)
        return float(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()


def measure_costs(records: Records) -> None:
    """All forms and sizes that are missing; each time is the least of some."""
    done = {(line["form"], line["varied"], line["factor"]) for line in records.of("cost")}
    for varied in MIDDLE:
        for factor in FACTORS:
            sizes = MIDDLE | {varied: int(MIDDLE[varied] * factor)}
            forms = [form for form in ("vc-GMM", "LWCS", "ours") if (form, varied, factor) not in done]
            if not forms:
                continue
            X = make_mixture(
                N_SAMPLES, sizes["n_features"], 2000, n_latent=16, imbalance=1.0, dtype=np.float64, random_state=0
            )[0]
            for form in forms:
                fit(form, X[:4096], 1024, 16)  # compiled before the clock runs
                runs = [fit(form, X, sizes["size"], sizes["n_clusters"]) for _ in range(REPEATS)]
                facts: dict[str, object] = {name: min(run[name] for run in runs) for name in runs[0]}
                facts["memory"] = memory(form, X, sizes["size"], sizes["n_clusters"])
                records.add("cost", {"form": form, "varied": varied, "factor": factor, **sizes, **facts})


def exponent(lines: list[dict], name: str) -> float:
    """By which power of the factor a cost grows: the slope of its logarithm over the whole range."""
    first, last = lines[0], lines[-1]
    return math.log(last[name] / first[name]) / math.log(last["factor"] / first["factor"])


def costs_table(records: Records) -> str:
    """Measured powers beside those of the paper's table."""
    rows = []
    for (form, varied), expected in EXPECTED.items():
        lines = [line for line in records.of("cost") if (line["form"], line["varied"]) == (form, varied)]
        lines.sort(key=lambda line: line["factor"])
        if len(lines) < 2:
            continue
        names = ("coreset", "seeding", "update", "memory")
        powers = [f"{exponent(lines, n):.1f} ({e})" for n, e in zip(names, expected, strict=True)]
        middle = next(line for line in lines if line["factor"] == 1)
        sizes = f"{1000 * middle['update']:.1f} ms, {middle['memory'] / 2**20:.0f} MB"
        span = f"{lines[0][varied]:,} to {lines[-1][varied]:,}"
        rows.append([form, f"{LETTERS[varied]}: {span}", *powers, sizes])
    header = ["form", "varied", "coreset", "seeding", "update", "memory", "an update, memory in the middle"]
    return markdown(header, rows)
