"""The same bits for any number of threads."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from vcgmm import VCGMM


def fitted(X: np.ndarray, weights: np.ndarray | None, n_threads: int, **options: Any) -> VCGMM:
    settings = {
        "n_components": 60,
        "random_state": 3,
        "tol": 0.0,
        "max_iter": 6,
        "compute_labels": True,
        **options,
    }
    model = VCGMM(n_threads=n_threads, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, sample_weight=weights)


@pytest.fixture(name="X", scope="module")
def blobs() -> np.ndarray:
    rng = np.random.default_rng(0)
    return (rng.normal(size=(60, 4))[rng.integers(60, size=5000)] * 3 + rng.normal(size=(5000, 4))).astype(
        np.float32
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {"coreset_size": None},
        {"coreset_size": None, "n_candidates": 8, "n_explore": 2, "init": "random"},
        {"coreset_size": 2000, "init": "afkmc2", "n_warmup": 1},
        {"coreset_size": None, "search": "pointwise", "init": "k-means++", "n_explore": 1},
        {"coreset_size": None, "truncation": 1, "n_init": 2},
    ],
    ids=["default", "short lists", "coreset", "pointwise", "hard"],
)
def test_results_are_bit_identical_for_any_number_of_threads(
    X: np.ndarray, weighted: bool, options: dict[str, Any]
) -> None:
    weights = np.random.default_rng(1).uniform(0.0, 3.0, len(X)) if weighted else None
    alone = fitted(X, weights, 1, **options)
    for n_threads in (2, 3):
        model = fitted(X, weights, n_threads, **options)
        for name in ("means_", "variance_", "counts_", "lower_bounds_", "neighbors_", "labels_", "inertia_"):
            np.testing.assert_array_equal(getattr(model, name), getattr(alone, name), err_msg=name)
        assert model.n_distance_evaluations_ == alone.n_distance_evaluations_
        np.testing.assert_array_equal(model.score_samples(X[:500]), alone.score_samples(X[:500]))


def test_the_same_seed_gives_the_same_result_and_another_one_another(X: np.ndarray) -> None:
    one, again, other = (fitted(X, None, 2, coreset_size=1000, random_state=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one.means_, again.means_)
    assert (one.means_ != other.means_).any()


def test_more_clusters_than_a_pool_holds_give_the_same_bits() -> None:
    """Beyond 1,024 clusters neighbours are searched in groups, whose products must not depend on the threads."""
    X = np.random.default_rng(1).normal(size=(9000, 50)).astype(np.float32)
    models = [
        fitted(X, None, n, n_components=1500, coreset_size=None, max_iter=3, n_candidates=32) for n in (1, 2, 16)
    ]
    for model in models[1:]:
        np.testing.assert_array_equal(model.means_, models[0].means_)
        np.testing.assert_array_equal(model.neighbors_, models[0].neighbors_)


@pytest.mark.parametrize("truncation", [1, 5])
def test_wide_rows_give_the_same_bits(truncation: int) -> None:
    """Large cells are searched by short integers, small ones by floats, whoever has them."""
    rng = np.random.default_rng(2)
    means = rng.normal(size=(30, 70))
    sizes = rng.integers(5, 400, 30)
    sizes[3] = 5000  # which is cut into several tasks
    X = (np.repeat(means, sizes, axis=0) + rng.normal(size=(sizes.sum(), 70))).astype(np.float32)
    X = X[rng.permutation(len(X))]
    models = [fitted(X, None, n, n_components=30, coreset_size=None, truncation=truncation) for n in (1, 2, 3)]
    for model in models[1:]:
        for name in ("means_", "variance_", "counts_", "lower_bounds_", "neighbors_", "labels_"):
            np.testing.assert_array_equal(getattr(model, name), getattr(models[0], name), err_msg=name)
