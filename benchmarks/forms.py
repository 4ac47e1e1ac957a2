"""The paper's own form beside ours, on the same coreset size: what the deviations do to quality and time.

    python benchmarks/forms.py --seeds 5 --output docs/benchmarks/forms.csv

Forms: pointwise search from AFK-MC^2 seeds and random winners (the paper), blocked search from the same seeds,
and blocked search from the two-level start (the default).  Mean and standard error over seeds of the
quantization error of all points and of the lower bound per unit of weight; medians of time; kernels are compiled
before the clock starts.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sets import SETS, load

from vcgmm import VCGMM

FORMS = {
    "paper: pointwise, afkmc2": {"search": "pointwise", "init": "afkmc2"},
    "blocked, afkmc2": {"search": "blocked", "init": "afkmc2"},
    "blocked, two_level": {"search": "blocked", "init": "two_level"},
}


def measure(X: np.ndarray, n_components: int, size: int, seed: int, form: dict[str, str]) -> tuple[float, ...]:
    """Seconds, quantization error, bound per weight, iterations, distances of one fit."""
    begun = time.perf_counter()
    model = VCGMM(n_components, coreset_size=size, random_state=seed, **form).fit(X)
    seconds = time.perf_counter() - begun
    bound = model.lower_bound_ / model.coreset_.weights.sum()
    distances = sum(model.n_distance_evaluations_.values())
    return seconds, model.quantization_error(X), bound, model.n_iter_, distances


def main() -> None:
    """Run, print, and write the CSV."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--points-per-component", type=int, default=16)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    warm_up = np.random.default_rng(0).normal(size=(4096, 8)).astype(np.float32)
    for form in FORMS.values():
        VCGMM(64, coreset_size=2048, random_state=0, **form).fit(warm_up).quantization_error(warm_up)

    rows = []
    table = Table("set", "form", "seconds", "error", "± SEM", "bound / weight", "iterations", "distances")
    for name in track(arguments.sets, "sets", console=Console(stderr=True)):
        X, n_components = load(name), SETS[name]
        size = arguments.points_per_component * n_components
        runs: dict[str, list[tuple[float, ...]]] = {form: [] for form in FORMS}
        for seed in range(arguments.seeds):
            for form, settings in FORMS.items():  # in turn, so that all see the same noise
                runs[form].append(measure(X, n_components, size, seed, settings))
        for form, values in runs.items():
            seconds, errors, bounds, iterations, distances = np.array(values).T
            spread = errors.std(ddof=1) / np.sqrt(len(errors)) if len(errors) > 1 else 0.0
            row = (name, form, np.median(seconds), errors.mean(), spread, bounds.mean(), iterations.mean())
            rows.append((*row, distances.mean()))
            cells = (
                f"{row[2]:.2f}",
                f"{row[3]:.4g}",
                f"{100 * spread / row[3]:.2f} %",
                f"{row[5]:.3f}",
                f"{row[6]:.0f}",
            )
            table.add_row(name, form, *cells, f"{distances.mean():.2e}")
    Console(width=120).print(table)
    if arguments.output:
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        with arguments.output.open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(
                ["set", "form", "seconds", "error", "sem", "bound_per_weight", "iterations", "distances"]
            )
            writer.writerows(rows)


if __name__ == "__main__":
    main()
