"""Table 2 in small: a file of bytes in the shape of the 80 million images, and ever more clusters."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

import vcgmm
from vcgmm import VCGMM, Coreset
from vcgmm.datasets import MixtureSource

from .published import TABLE_2
from .records import Records
from .tables import markdown

N_FEATURES = 3072

#: Rows of the paper's set.
N_IMAGES = 78_000_000

#: Clusters that the rows are drawn from: more than are looked for, as in images.
N_TRUE = 20_000

#: Rows that errors are told on, the last of all.
N_TEST = 10_000

#: Rows that are written at a time.
ROWS = 1 << 13

CLUSTERS = (2048, 4096, 8192, 16_384)

#: As in the paper: G = 5+1, m = 20, five initial E-steps.
PAPER = {
    "search": "pointwise",
    "init": "afkmc2",
    "chain_length": 20,
    "truncation": 5,
    "n_neighbors": 5,
    "n_explore": 1,
    "n_warmup": 5,
    "relaxation": 1.0,
}
FORMS = {"vc-GMM": PAPER, "ours": {}}


@dataclass(frozen=True)
class Scale:
    """How large the set is: rows (None: as many as the disk allows), and draws of the coreset."""

    n_rows: int | None
    size: int


def fits_on(folder: Path, wanted: int | None) -> int:
    """As many rows as are wanted, or as half of the free disk holds; never more than the paper has."""
    folder.mkdir(parents=True, exist_ok=True)
    room = shutil.disk_usage(folder).free // 2 // N_FEATURES
    return min(N_IMAGES if wanted is None else wanted, room)


def images(n_rows: int) -> MixtureSource:
    """Rows to cluster, and after them those that errors are told on."""
    return MixtureSource(
        n_rows + N_TEST, N_FEATURES, N_TRUE,
        separation=100.0, spread=8.0, imbalance=0.5, n_latent=24, location=127.5, dtype=np.uint8, random_state=0,
    )  # fmt: skip


@contextmanager
def in_file(source: MixtureSource, n_rows: int, folder: Path) -> Iterator[Path]:
    """The first rows as a file of bytes, which is gone afterwards."""
    path = folder / "images.npy"
    try:
        rows = np.lib.format.open_memmap(path, "w+", np.uint8, (n_rows, N_FEATURES))
        for first in range(0, n_rows, ROWS):
            last = min(first + ROWS, n_rows)
            rows[first:last] = source.take(np.arange(first, last))
        rows.flush()
        del rows
        yield path
    finally:
        path.unlink(missing_ok=True)


def measure_scale(records: Records, folder: Path, scale: Scale) -> None:
    """Every form and number of clusters that is missing, all on one coreset."""
    done = {(line["form"], line["n_clusters"]) for line in records.of("table2")}
    missing = [(c, form) for c in CLUSTERS for form in FORMS if (form, c) not in done]
    if not missing:
        return
    n_rows = fits_on(folder, scale.n_rows)
    source = images(n_rows)
    test = source.take(np.arange(n_rows, n_rows + N_TEST))
    with in_file(source, n_rows, folder) as path:
        begun = time.perf_counter()
        coreset = vcgmm.lightweight_coreset(vcgmm.open(path), scale.size, random_state=0)
        seconds = time.perf_counter() - begun
    few = Coreset(coreset.points[:2048], coreset.weights[:2048])
    for form in FORMS.values():
        VCGMM(8, coreset_size=None, random_state=0, **form).fit(few)  # compiled before the clock runs
    for n_clusters, form in missing:
        model = VCGMM(n_clusters, coreset_size=None, random_state=0, max_iter=500, **FORMS[form]).fit(coreset)
        facts = {
            "form": form,
            "n_clusters": n_clusters,
            "n_rows": n_rows,
            "n_points": len(coreset.points),
            "coreset_seconds": round(seconds, 2),
            "seeding": round(model.timings_["seeding"], 3),
            "em": round(model.timings_["em"], 3),
            "iterations": model.n_iter_,
            "distances": sum(model.n_distance_evaluations_.values()),
            "error": model.quantization_error(test) / N_TEST,
        }
        records.add("table2", facts)
        print(f"{form}, {n_clusters} clusters: {facts['seeding']} + {facts['em']} s", file=sys.stderr, flush=True)


def scale_table(records: Records) -> str:
    """Seeding and EM as clusters double, with the growth beside the paper's."""
    rows = []
    paper = {(a[0], b[0]): b[3] / a[3] for a, b in pairwise(TABLE_2)}
    for form in FORMS:
        lines = sorted((r for r in records.of("table2") if r["form"] == form), key=lambda r: r["n_clusters"])
        before = None
        for line in lines:
            c = line["n_clusters"]
            growth = each = ""
            if before is not None:
                growth = f"×{line['em'] / before['em']:.2f}"
                each = f"×{line['em'] / line['iterations'] / (before['em'] / before['iterations']):.2f}"
            rows.append(
                [form, f"{c:,}", f"{line['error']:.5g}", f"{line['seeding']:.1f}", f"{line['em']:.1f}",
                 str(line["iterations"]), growth or "–", each or "–"]
            )  # fmt: skip
            before = line
    for c, error, seeding, em in TABLE_2:
        growth = next((f"×{ratio:.2f}" for pair, ratio in paper.items() if pair[1] == c), "–")
        rows.append(
            [
                "the paper's",
                f"{c:,}",
                f"{error:.3g} in all",
                f"{60 * seeding:.0f}",
                f"{60 * em:.0f}",
                "?",
                growth,
                "?",
            ]
        )
    header = ["form", "C", "error of a held-out row", "seeding, s", "EM, s", "iterations", "growth of EM",
              "growth of an iteration"]  # fmt: skip
    return markdown(header, rows)
