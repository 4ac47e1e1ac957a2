"""The systems that `peers.py` compares: each setting is a function from data to centres."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

#: fit(X, n_clusters, seed, n_threads) -> centres (C, D)
Fit = Callable[[np.ndarray, int, int, int], np.ndarray]


@dataclass(frozen=True)
class System:
    """One setting of one library.

    Attributes
    ----------
    family : str
        Settings of one family run in one process, which holds the data.
    name, setting : str
    fit : callable
    """

    family: str
    name: str
    setting: str
    fit: Fit


def vcgmm(coreset: Any = "auto", **parameters: Any) -> Fit:
    """Us; a coreset given as an integer counts points per cluster."""

    def fit(X: np.ndarray, n_clusters: int, seed: int, n_threads: int) -> np.ndarray:
        from vcgmm import VCGMM

        size = coreset * n_clusters if isinstance(coreset, int) else coreset
        model = VCGMM(n_clusters, coreset_size=size, random_state=seed, n_threads=n_threads, **parameters)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # few iterations are asked for: that they end early is no news
            return np.asarray(model.fit(X).means_)

    return fit


def vcgmm_start(coreset: int | None, **parameters: Any) -> Fit:
    """Our start alone; a coreset counts points per cluster."""

    def fit(X: np.ndarray, n_clusters: int, seed: int, n_threads: int) -> np.ndarray:
        from vcgmm import two_level

        size = None if coreset is None else coreset * n_clusters
        return two_level(X, n_clusters, coreset_size=size, random_state=seed, n_threads=n_threads, **parameters)

    return fit


def sklearn(kind: str, **parameters: Any) -> Fit:
    """KMeans or MiniBatchKMeans."""

    def fit(X: np.ndarray, n_clusters: int, seed: int, n_threads: int) -> np.ndarray:
        import sklearn.cluster
        from threadpoolctl import threadpool_limits

        model = getattr(sklearn.cluster, kind)(n_clusters, random_state=seed, **parameters)
        with warnings.catch_warnings(), threadpool_limits(n_threads):
            warnings.simplefilter("ignore")
            return np.asarray(model.fit(X).cluster_centers_)

    return fit


def faiss(kind: str, *, plus_plus: bool = False, **parameters: Any) -> Fit:
    """faiss.Kmeans or faiss.SuperKmeans."""

    def fit(X: np.ndarray, n_clusters: int, seed: int, n_threads: int) -> np.ndarray:
        import faiss

        faiss.omp_set_num_threads(n_threads)
        if plus_plus:
            parameters["init_method"] = faiss.ClusteringInitMethod_KMEANS_PLUS_PLUS
        model = getattr(faiss, kind)(X.shape[1], n_clusters, seed=seed + 1, **parameters)
        model.train(X)
        return np.asarray(model.centroids)

    return fit


def superkmeans(**parameters: Any) -> Fit:
    """SuperKMeans, the authors' own package."""

    def fit(X: np.ndarray, n_clusters: int, seed: int, n_threads: int) -> np.ndarray:
        from superkmeans import SuperKMeans

        model = SuperKMeans(n_clusters, X.shape[1], seed=seed + 1, n_threads=n_threads, **parameters)
        return np.asarray(model.train(X))

    return fit


ALL = 1_000_000_000

PEERS = [
    System("sklearn", "KMeans", "default", sklearn("KMeans")),
    System("sklearn", "MiniBatchKMeans", "default", sklearn("MiniBatchKMeans")),
    System("sklearn", "MiniBatchKMeans", "batch 8192", sklearn("MiniBatchKMeans", batch_size=8192)),
    System("faiss", "faiss.Kmeans", "default", faiss("Kmeans")),
    System("faiss", "faiss.Kmeans", "all points", faiss("Kmeans", max_points_per_centroid=ALL)),
    System("faiss", "faiss.Kmeans", "all points, k-means++",
           faiss("Kmeans", plus_plus=True, max_points_per_centroid=ALL)),
    System("faiss", "faiss.SuperKmeans", "default", faiss("SuperKmeans")),
    System("faiss", "faiss.SuperKmeans", "all points", faiss("SuperKmeans", max_points_per_centroid=ALL)),
    System("superkmeans", "SuperKMeans", "hierarchical", superkmeans(hierarchical=True)),
    System("superkmeans", "SuperKMeans", "hierarchical, 5 refinements",
           superkmeans(hierarchical=True, iters_refinement=5)),
    System("superkmeans", "SuperKMeans", "flat", superkmeans(hierarchical=False)),
    System("superkmeans", "SuperKMeans", "flat, all points, 25 iterations",
           superkmeans(hierarchical=False, sampling_fraction=1.0, max_points_per_cluster=ALL, iters=25)),
]  # fmt: skip


#: Our settings from fastest to best, none tuned to a set: points per cluster (None: all points), iterations (0:
#: the start alone, `vcgmm.two_level`), and what else moves along the curve.
OURS: list[tuple[int | None, int, dict[str, Any]]] = [
    (16, 0, {"max_iter": 0}),  # other than without only where rows are wide
    (64, 0, {"max_iter": 0}),
    (None, 0, {"max_iter": 0}),
    (64, 0, {"max_iter": 0, "lloyd_steps": 8}),
    (None, 0, {"max_iter": 0, "levels": 3}),  # quicker where clusters are very many
    (None, 0, {"max_iter": 0, "lloyd_steps": 3}),
    (None, 0, {"max_iter": 0, "lloyd_steps": 5}),
    (None, 0, {"max_iter": 0, "lloyd_steps": 6}),
    (None, 0, {"max_iter": 0, "lloyd_steps": 8}),
    (None, 0, {"max_iter": 0, "lloyd_steps": 12}),
    (64, 0, {"max_iter": 1}),
    (None, 0, {"max_iter": 1}),
    (None, 0, {"max_iter": 2, "hard": True}),
    (None, 0, {"max_iter": 2, "hard": True, "lloyd_steps": 12}),
    (None, 0, {"max_iter": 3, "hard": True}),
    (None, 0, {"max_iter": 5, "hard": True}),
    (None, 0, {"max_iter": 8, "hard": True}),
    (None, 0, {"max_iter": 12, "hard": True}),
    (None, 0, {"max_iter": 25, "hard": True}),
    (None, 0, {"max_iter": 50, "hard": True}),
    (64, 0, {"max_iter": 0, "sampling": "uniform"}),  # where clusters are few, no more rows need be read
    (256, 0, {"max_iter": 0, "sampling": "uniform"}),
    (128, 0, {"max_iter": 2, "hard": True, "sampling": "uniform"}),
    (256, 0, {"max_iter": 3, "hard": True, "sampling": "uniform"}),
    (512, 0, {"max_iter": 2, "hard": True, "sampling": "uniform"}),
    (256, 0, {"max_iter": 12, "hard": True, "sampling": "uniform"}),
    (256, 0, {"max_iter": 12, "hard": True, "sampling": "uniform", "n_init": 4}),
    (512, 0, {"max_iter": 25, "hard": True, "sampling": "uniform", "n_init": 4}),
    (1024, 0, {"max_iter": 12, "hard": True, "sampling": "uniform"}),
    (1024, 0, {"max_iter": 50, "hard": True, "sampling": "uniform"}),
    (1024, 0, {"max_iter": 50, "hard": True, "sampling": "uniform", "n_init": 4}),
    (4096, 0, {"max_iter": 50, "hard": True, "sampling": "uniform"}),
    (4096, 0, {"max_iter": 50, "hard": True, "sampling": "uniform", "n_init": 8}),
    (16, 0, {}),
    (32, 0, {}),
    (48, 0, {}),
    (64, 0, {}),
    (128, 0, {}),
    (256, 0, {}),
    (None, 0, {}),
    (16, 1, {"n_candidates": 32}),
    (32, 1, {"n_candidates": 32}),
    (64, 1, {"n_candidates": 32}),
    (64, 3, {}),
    (128, 1, {"n_candidates": 32}),
    (128, 3, {}),
    (256, 3, {}),
    (None, 1, {"n_candidates": 32, "truncation": 2}),
    (None, 1, {}),
    (None, 2, {"n_candidates": 64, "truncation": 2}),
    (None, 3, {"truncation": 2}),
    (None, 3, {}),
    (None, 4, {"n_candidates": 64, "truncation": 2}),
    (None, 4, {"truncation": 2}),
    (None, 6, {}),
    (None, 8, {"n_candidates": 64, "truncation": 2, "tol": 1e-6}),
    (None, 12, {"tol": 1e-5}),
    (None, 25, {"tol": 1e-5}),
    (None, 25, {"tol": 1e-5, "n_init": 4}),  # of few clusters some attempts end lower than others
    (None, 100, {"tol": 1e-6}),
    (None, 12, {"tol": 1e-6, "truncation": 1}),  # with very few features k-means ends lower than a mixture
    (None, 50, {"tol": 1e-6, "truncation": 1}),
]


def described(value: object) -> str:
    """A setting's value in words."""
    return value if isinstance(value, str) else f"{value:g}"


def ours() -> list[System]:
    """The default, and the settings that lead along our curve."""
    sweep = [System("vcgmm", "vcgmm", "default", vcgmm())]
    for coreset, max_iter, others in OURS:
        size = "all points" if coreset is None else f"{coreset} C points"
        details = "".join(f", {name}={described(value)}" for name, value in others.items())
        if max_iter == 0:
            sweep.append(System("vcgmm", "vcgmm", f"start alone, {size}{details}", vcgmm_start(coreset, **others)))
            continue
        setting = f"{size}, max_iter={max_iter}{details}"
        sweep.append(System("vcgmm", "vcgmm", setting, vcgmm(coreset, max_iter=max_iter, **others)))
    return sweep
