"""What `truncation`, `n_candidates` and `n_neighbors` do to error, bound and distances (docs/guide.md).

    python benchmarks/choices.py --seeds 3

Everything else is at its default. Error is the quantization error of all rows; bound is per unit of weight; both,
and the distances of EM, are means over seeds. None of them depends on the machine.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from sets import load

from vcgmm import VCGMM

SETS = {"kdd": 500, "rna": 500, "mnist": 200}

CHOICES: dict[str, list[dict[str, Any]]] = {
    "truncation": [{"truncation": n} for n in (1, 2, 3, 5, 10)],
    "n_candidates": [{"n_candidates": n} for n in (16, 32, 64, 128, 256)],
    "n_neighbors, pointwise": [{"search": "pointwise", "init": "afkmc2", "n_neighbors": n} for n in (2, 3, 5, 10)],
}


def measure(X: np.ndarray, n_clusters: int, settings: dict[str, Any], seeds: int) -> tuple[float, ...]:
    """Error, bound per unit of weight, iterations and distances of EM, averaged over seeds."""
    results = []
    for seed in range(seeds):
        model = VCGMM(n_clusters, random_state=seed, **settings).fit(X)
        bound = model.lower_bound_ / model.counts_.sum()
        results.append((model.quantization_error(X), bound, model.n_iter_, model.n_distance_evaluations_["em"]))
    return tuple(float(mean) for mean in np.mean(results, axis=0))


def main() -> None:
    """Print a table for each choice."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    for name, choices in CHOICES.items():
        print(f"\n| set | C | {name} | error | bound / weight | iterations | distances |")
        print("|---|---|---|---|---|---|---|")
        for data, n_clusters in SETS.items():
            X = load(data)
            for settings in choices:
                error, bound, iterations, distances = measure(X, n_clusters, settings, options.seeds)
                value = settings[name.split(",")[0]]
                print(
                    f"| {data} | {n_clusters} | {value} | {error:.4g} | {bound:.6g} | {iterations:.0f} "
                    f"| {distances:.2e} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
