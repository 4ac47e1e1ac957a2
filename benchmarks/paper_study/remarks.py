"""The supplement's remarks as small tables."""

from __future__ import annotations

from dataclasses import replace

from .plan import STUDIES, baseline
from .published import THRESHOLD, WARM_UP
from .records import Records
from .summary import summarise
from .tables import markdown, percent


def warm_up_table(records: Records) -> str:
    """Initial E-steps of var-GMM-S on rna."""
    study = STUDIES["rna-500"]
    rows = []
    for g in ("3+1", "5"):
        for n_warmup in (0, 2, 4):
            entry = replace(
                baseline(study, 0), algorithm="var-GMM-S", g=g, chain_length=study.chain_length, n_warmup=n_warmup
            )
            s = summarise(records, entry)
            if s is None:
                continue
            without, best_n, best = WARM_UP[g]
            paper = {0: f"{without:.3g}", best_n: f"{best:.3g}"}.get(n_warmup, "–")
            error = f"{s.error:.4g}" + ("" if s.error_sem is None else f" ± {s.error_sem:.2g}")
            rows.append(
                [g, str(n_warmup), error, paper, percent(s.eta, s.eta_sem), f"{s.iterations:.1f}", str(s.n_seeds)]
            )
    header = ["G", "initial E-steps", "error", "paper (488,565 rows)", "η, %", "iterations", "seeds"]
    return markdown(header, rows)


def threshold_table(records: Records) -> str:
    """1e-4 beside 1e-5 on kdd."""
    study = STUDIES["kdd-500"]
    common = {"g": study.g, "chain_length": study.chain_length}
    start = baseline(study, 0)
    rows = []
    for entry in (
        start,
        replace(start, algorithm="var-GMM-S", **common),
        replace(start, algorithm="vc-GMM", size=study.size, **common),
    ):
        loose, strict = (summarise(records, replace(entry, tol=tol)) for tol in (1e-4, 1e-5))
        if loose is None or strict is None:
            continue
        less, few, many = THRESHOLD if entry.algorithm == "k-means++" else (None, None, None)
        gain = 100 * (1 - strict.error / loose.error)
        rows.append(
            [
                entry.algorithm,
                f"{gain:.2f} %" + ("" if less is None else f" ({less} %)"),
                f"{loose.iterations:.1f}" + ("" if few is None else f" ({few})"),
                f"{strict.iterations:.1f}" + ("" if many is None else f" ({many})"),
                f"{min(loose.n_seeds, strict.n_seeds)}",
            ]
        )
    header = ["algorithm", "error lower by (paper)", "iterations at 1e-4 (paper)", "at 1e-5 (paper)", "seeds"]
    return markdown(header, rows)
