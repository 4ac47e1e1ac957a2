from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from vcgmm import VCGMM, quantization_error
from vcgmm.algorithm import reference
from vcgmm.algorithm.yardsticks import Yardstick, k_means
from vcgmm.data import ArrayRows
from vcgmm.parallel import Workers
from vcgmm.validation import draw_seed


@pytest.fixture(name="X", scope="module")
def blobs() -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.normal(size=(20, 4)).repeat(200, axis=0) * 5 + rng.normal(size=(4000, 4)) + 100.0


def run(X: np.ndarray, **changes: Any) -> Yardstick:
    chosen: dict[str, Any] = {"init": "k-means++", "seed": draw_seed(0), "dtype": np.dtype(np.float64)}
    with Workers(2) as workers:
        return k_means(ArrayRows(X), 20, workers=workers, **(chosen | changes))


def test_k_means_plus_plus_counts_a_pass_for_each_seed_and_all_pairs_in_each_iteration(X: np.ndarray) -> None:
    found = run(X)
    assert found.n_evaluations == {"coreset": 0, "seeding": 4000 * 20, "em": len(found.bounds) * 4000 * 20}
    assert set(found.timings) == {"coreset", "seeding", "em"}
    assert found.n_points == 4000
    assert found.converged


def test_it_is_lloyds_algorithm_from_its_seeds_in_data_coordinates(X: np.ndarray) -> None:
    seeds = run(X, max_iter=0)
    found = run(X)
    true, labels, bounds = reference.k_means(X, np.ones(4000), seeds.means, len(found.bounds))
    np.testing.assert_allclose(found.means, true, rtol=1e-10)
    np.testing.assert_allclose(found.bounds, bounds, rtol=1e-10)
    assert quantization_error(X, found.means) <= ((X - true[labels]) ** 2).sum() * (1 + 1e-10)


def test_seeds_alone_are_rows_and_count_no_iterations(X: np.ndarray) -> None:
    found = run(X, init="afkmc2", chain_length=3, max_iter=0)
    assert found.bounds == []
    assert found.n_evaluations["em"] == found.n_evaluations["coreset"] == 0
    assert found.n_evaluations["seeding"] == 4000 + 3 * 19 * 20 // 2
    for seed in found.means:
        assert np.abs(X - seed).sum(axis=1).min() < 1e-9


def test_on_a_coreset_it_is_the_coreset_and_the_seeds_of_a_fit(X: np.ndarray) -> None:
    found = run(X, init="afkmc2", chain_length=4, coreset_size=500, max_iter=0)
    model = VCGMM(20, coreset_size=500, init="afkmc2", chain_length=4, search="pointwise", random_state=0).fit(X)
    assert found.n_points == len(model.coreset_.points)
    assert found.n_evaluations["coreset"] == model.n_distance_evaluations_["coreset"] == 4000
    assert found.n_evaluations["seeding"] == model.n_distance_evaluations_["seeding"]
    for seed in found.means:
        assert np.abs(model.coreset_.points - seed).sum(axis=1).min() < 1e-9


def test_iterations_on_a_coreset_go_over_its_points_alone(X: np.ndarray) -> None:
    found = run(X, init="afkmc2", chain_length=4, coreset_size=500)
    assert found.n_points <= 500
    assert found.n_evaluations["em"] == len(found.bounds) * found.n_points * 20
    best = quantization_error(X, run(X).means)
    assert quantization_error(X, found.means) < 2 * best


def test_the_number_of_threads_changes_nothing(X: np.ndarray) -> None:
    found = []
    for n_threads in (1, 3):
        with Workers(n_threads) as workers:
            rows = ArrayRows(X.astype(np.float32))
            dtype = np.dtype(np.float32)
            found.append(k_means(rows, 20, init="afkmc2", seed=3, dtype=dtype, coreset_size=700, workers=workers))
    np.testing.assert_array_equal(found[0].means, found[1].means)
    assert found[0].bounds == found[1].bounds


def test_unknown_seeds_are_refused(X: np.ndarray) -> None:
    with pytest.raises(ValueError, match="init='random' is not valid: choose"):
        run(X, init="random")


def test_more_clusters_than_points_are_refused() -> None:
    with pytest.raises(ValueError, match="n_clusters=20"):
        run(np.repeat(np.eye(4), 10, axis=0))
