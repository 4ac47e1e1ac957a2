"""metric="cosine" beside faiss.Kmeans(spherical=True) and beside rows that are scaled by hand.

    python benchmarks/cosine.py [SET] [--components 4000] [--repeats 3]

Times are those of the processor, with one thread for all, the scaling of rows by hand included; the best of some.
What is compared is the mean of 1 - cosine between a row and the nearest of the centres, scaled to length 1, over
all rows.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import faiss
import numpy as np
from sets import load
from sklearn.exceptions import ConvergenceWarning

from vcgmm import VCGMM

#: More points for each centre than there are.
ALL = 10**9


def scaled(rows: np.ndarray) -> np.ndarray:
    """Rows of length 1."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0.0, lengths, 1.0)


def ours(**settings: object) -> Callable[[np.ndarray, int, int], np.ndarray]:
    """A fit on the sphere."""

    def fit(X: np.ndarray, c: int, seed: int) -> np.ndarray:
        return VCGMM(c, metric="cosine", random_state=seed, n_threads=1, **settings).fit(X).means_

    return fit


def by_hand(X: np.ndarray, c: int, seed: int) -> np.ndarray:
    """Rows are scaled, means are not."""
    return VCGMM(c, random_state=seed, n_threads=1).fit(scaled(X)).means_


def faiss_kmeans(**settings: object) -> Callable[[np.ndarray, int, int], np.ndarray]:
    """Faiss' spherical k-means, which expects scaled rows."""

    def fit(X: np.ndarray, c: int, seed: int) -> np.ndarray:
        model = faiss.Kmeans(X.shape[1], c, spherical=True, seed=seed + 1, **settings)
        model.train(scaled(X))
        return np.asarray(model.centroids)

    return fit


SYSTEMS: dict[str, Callable[[np.ndarray, int, int], np.ndarray]] = {
    'vcgmm, metric="cosine"': ours(),
    'vcgmm, metric="cosine", plain steps': ours(relaxation=1.0),
    'vcgmm, metric="cosine", at most 10 iterations': ours(max_iter=10),
    "vcgmm, scaled by hand": by_hand,
    "faiss, spherical": faiss_kmeans(max_points_per_centroid=ALL),
}


def mean_error(X: np.ndarray, centres: np.ndarray) -> float:
    """Mean of 1 - cosine to the nearest centre."""
    index = faiss.IndexFlatIP(X.shape[1])
    index.add(np.ascontiguousarray(scaled(centres), dtype=np.float32))
    cosines, _ = index.search(scaled(X), 1)
    return float(1.0 - cosines.astype(np.float64).mean())


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", nargs="?", default="glove50")
    parser.add_argument("--components", type=int, default=4000)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    faiss.omp_set_num_threads(1)
    X = np.ascontiguousarray(load(arguments.set), dtype=np.float32)
    X = X[np.any(X != 0.0, axis=1)]
    VCGMM(100, metric="cosine").fit(X[:5000])  # compiled before the clock runs
    by_hand(X[:5000], 100, 0)
    print("| system | seconds | mean of 1 - cosine |\n|---|---|---|")
    for name, fit in SYSTEMS.items():
        times, errors = [], []
        for seed in range(arguments.repeats):
            begun = time.process_time()
            centres = fit(X, arguments.components, seed)
            times.append(time.process_time() - begun)
            errors.append(mean_error(X, centres))
        print(f"| {name} | {min(times):.2f} | {np.mean(errors):.5f} |", flush=True)


if __name__ == "__main__":
    main()
