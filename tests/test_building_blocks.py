"""The steps on their own: coreset, seeding and quantization error as functions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from scipy.stats import chisquare

import vcgmm
from vcgmm import VCGMM, Coreset, afkmc2, kmeans_plus_plus, lightweight_coreset, quantization_error, two_level

Seeding = Callable[..., tuple[np.ndarray, np.ndarray]]

RNG = np.random.default_rng(0)
X = RNG.normal(size=(500, 3)) * [1.0, 2.0, 5.0] + 10.0
WEIGHTS = RNG.uniform(0.1, 4.0, size=500)

seedings = pytest.mark.parametrize("seeding", [afkmc2, kmeans_plus_plus])
blocks = pytest.mark.parametrize("block", [lightweight_coreset, afkmc2, kmeans_plus_plus])
functions = pytest.mark.parametrize("block", [lightweight_coreset, afkmc2, kmeans_plus_plus, two_level])

# ------------------------------------------------------------------------------------------------------- coreset


def sampling_probabilities(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    share = weights / weights.sum()
    deviations = ((rows - share @ rows) ** 2).sum(axis=1)
    return 0.5 * share + 0.5 * weights * deviations / (weights @ deviations)


def test_a_coreset_holds_rows_of_the_data() -> None:
    coreset = lightweight_coreset(X, 100, random_state=0)
    assert isinstance(coreset, Coreset)
    assert len(coreset) == len(coreset.weights) <= 100
    np.testing.assert_array_equal(coreset.points, X[coreset.indices])
    np.testing.assert_array_equal(np.unique(coreset.indices), coreset.indices)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["alike", "weighted"])
def test_a_coreset_weighs_rows_by_their_probability(weights: np.ndarray | None) -> None:
    coreset = lightweight_coreset(X, 100, sample_weight=weights, random_state=0)
    mass = np.ones(500) if weights is None else weights
    once = (mass / (100 * sampling_probabilities(X, mass)))[coreset.indices]
    times_drawn = coreset.weights / once
    np.testing.assert_allclose(times_drawn, times_drawn.round(), rtol=1e-9)
    assert times_drawn.round().sum() == 100


def test_the_weight_of_a_coreset_is_unbiased() -> None:
    totals = [lightweight_coreset(X, 50, sample_weight=WEIGHTS, random_state=i).weights.sum() for i in range(200)]
    standard_error = np.std(totals) / np.sqrt(len(totals))
    assert abs(np.mean(totals) - WEIGHTS.sum()) < 4 * standard_error


def test_the_cost_of_a_coreset_is_unbiased() -> None:
    centers = X[:4]
    exact = quantization_error(X, centers)
    coresets = [lightweight_coreset(X, 50, random_state=i) for i in range(200)]
    costs = [quantization_error(each.points, centers, each.weights) for each in coresets]
    assert abs(np.mean(costs) - exact) < 4 * np.std(costs) / np.sqrt(len(costs))


def test_a_coreset_keeps_the_type_of_the_data() -> None:
    assert lightweight_coreset(X.astype(np.uint8), 10).points.dtype == np.uint8


def test_a_coreset_may_be_larger_than_the_data() -> None:
    coreset = lightweight_coreset(X, 50_000, random_state=0)
    assert len(coreset) == 500
    np.testing.assert_allclose(coreset.weights.mean(), 1.0, rtol=0.05)


def test_a_coreset_of_equal_rows_weighs_them_alike() -> None:
    coreset = lightweight_coreset(np.ones((100, 2)), 10, random_state=0)
    assert coreset.weights.sum() == pytest.approx(100.0)


# ------------------------------------------------------------------------------------------------------- seeding


@seedings
def test_centres_are_different_rows_of_the_data(seeding: Seeding) -> None:
    centers, indices = seeding(X, 50, random_state=0)
    assert centers.shape == (50, 3)
    assert indices.dtype == np.int64
    np.testing.assert_array_equal(centers, X[indices])
    assert len(np.unique(centers, axis=0)) == 50


@seedings
def test_centres_keep_the_type_of_the_data(seeding: Seeding) -> None:
    assert seeding(X.astype(np.float32), 5)[0].dtype == np.float32


@seedings
def test_every_distinct_point_is_found(seeding: Seeding) -> None:
    repeated = np.repeat(X[:20], 10, axis=0)
    centers, _ = seeding(repeated, 20, random_state=0)
    np.testing.assert_array_equal(np.unique(centers, axis=0), np.unique(X[:20], axis=0))


@seedings
def test_centres_differ_where_float32_cannot_tell_them_apart(seeding: Seeding) -> None:
    integers = np.append(np.arange(10), 10**12)[:, None]
    _, indices = seeding(integers, 11, random_state=0)
    np.testing.assert_array_equal(np.sort(indices), np.arange(11))


def second_centres(seeding: Seeding, rows: np.ndarray, weights: np.ndarray, **options: Any) -> np.ndarray:
    """How often each row is the second centre after row 0."""
    options = {"sample_weight": weights, "n_threads": 1, **options}
    draws = [seeding(rows, 2, random_state=i, **options)[1] for i in range(400)]
    return np.bincount([second for first, second in draws if first == 0], minlength=len(rows))


@pytest.mark.parametrize(
    ("seeding", "options"), [(kmeans_plus_plus, {}), (afkmc2, {"chain_length": 40})], ids=["k-means++", "afkmc2"]
)
def test_the_second_centre_is_drawn_by_weight_and_squared_distance(seeding: Seeding, options: Any) -> None:
    rows = np.array([[0.0], [1.0], [2.0], [4.0]])
    weights = np.array([100.0, 4.0, 2.0, 0.5])
    counts = second_centres(seeding, rows, weights, **options)
    expected = weights * rows[:, 0] ** 2
    assert counts[0] == 0
    assert chisquare(counts[1:], counts.sum() * expected[1:] / expected.sum()).pvalue > 1e-3


@seedings
def test_the_first_centre_is_drawn_by_weight(seeding: Seeding) -> None:
    weights = np.array([8.0, 4.0, 2.0, 2.0])
    options = {"sample_weight": weights, "n_threads": 1}
    firsts = [int(seeding(X[:4], 1, random_state=i, **options)[1][0]) for i in range(320)]
    assert chisquare(np.bincount(firsts, minlength=4), 320 * weights / 16).pvalue > 1e-3


# -------------------------------------------------------------------------------------------- what they all share


def chosen(result: Any) -> np.ndarray:
    if isinstance(result, np.ndarray):
        return result
    return result.indices if isinstance(result, Coreset) else result[1]


@functions
def test_the_seed_decides(block: Any) -> None:
    first, again, other = (chosen(block(X, 20, random_state=seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@functions
def test_a_random_state_moves_on(block: Any) -> None:
    state = np.random.RandomState(0)
    first, second = (chosen(block(X, 20, random_state=state)) for _ in range(2))
    assert not np.array_equal(first, second)


@functions
def test_the_number_of_threads_changes_nothing(block: Any) -> None:
    one, three = (chosen(block(X, 20, random_state=0, n_threads=n)) for n in (1, 3))
    np.testing.assert_array_equal(one, three)


@blocks
def test_rows_of_weight_zero_are_never_drawn(block: Any) -> None:
    weights = np.zeros(500)
    weights[100:140] = 1.0
    for seed in range(5):
        drawn = chosen(block(X, 30, sample_weight=weights, random_state=seed))
        assert drawn.min() >= 100
        assert drawn.max() < 140


@functions
@pytest.mark.parametrize("number", [0, -3, 2.5, "5"])
def test_numbers_are_checked(block: Any, number: Any) -> None:
    name = "size" if block is lightweight_coreset else "n_clusters"
    with pytest.raises(ValueError, match=f"{name}={number!r} is not valid: give an integer of at least 1"):
        block(X, number)


@functions
def test_the_data_is_checked(block: Any) -> None:
    data = X.copy()
    data[3, 1] = np.nan
    with pytest.raises(ValueError, match="X contains NaN: the first in row 3, feature 1"):
        block(data, 5)
    with pytest.raises(ValueError, match="X is a sparse matrix, and sparse input is not supported"):
        block(sparse.csr_array(X), 5)


@functions
def test_weights_are_checked(block: Any) -> None:
    with pytest.raises(ValueError, match=r"sample_weight\[0\]=-1.0 is not valid"):
        block(X, 5, sample_weight=np.full(500, -1.0))
    with pytest.raises(ValueError, match=r"sample_weight has shape \(4,\), but X has 500 rows"):
        block(X, 5, sample_weight=np.ones(4))


@seedings
def test_more_centres_than_distinct_points(seeding: Seeding) -> None:
    with pytest.raises(ValueError, match=r"X has 2 distinct .* n_clusters=3\. Ask for at most 2"):
        seeding(np.repeat(X[:2], 10, axis=0), 3)


@pytest.mark.parametrize("length", [0, 1.5])
def test_chain_length_is_checked(length: Any) -> None:
    with pytest.raises(ValueError, match=f"chain_length={length} is not valid"):
        afkmc2(X, 3, chain_length=length)


# -------------------------------------------------------------------------------------------- quantization error


@pytest.mark.parametrize(("dtype", "rel"), [(np.float64, 1e-12), (np.float32, 1e-5), (np.uint8, 1e-5)])
def test_quantization_error_is_the_sum_of_squared_distances(dtype: Any, rel: float) -> None:
    rows = X.astype(dtype)
    expected = cdist(rows.astype(np.float64), X[:7], "sqeuclidean").min(axis=1).sum()
    assert quantization_error(rows, X[:7]) == pytest.approx(expected, rel=rel)


def test_quantization_error_takes_weights() -> None:
    expected = WEIGHTS @ cdist(X, X[:7], "sqeuclidean").min(axis=1)
    assert quantization_error(X, X[:7], WEIGHTS) == pytest.approx(expected, rel=1e-12)


def test_quantization_error_of_the_points_themselves_is_zero() -> None:
    assert quantization_error(X, X) == 0.0


def test_quantization_error_does_not_depend_on_an_offset() -> None:
    shifted = (X + 1e6).astype(np.float32)
    exact = cdist(shifted.astype(np.float64), shifted[:7].astype(np.float64), "sqeuclidean").min(axis=1).sum()
    assert quantization_error(shifted, shifted[:7]) == pytest.approx(exact, rel=1e-5)


def test_quantization_error_with_centres_far_from_the_data() -> None:
    rows = X.astype(np.float32)
    far = np.full((1, 3), 1e25)
    assert quantization_error(rows, far) == pytest.approx(500 * 3 * 1e50, rel=1e-5)


def test_quantization_error_checks_its_centres() -> None:
    with pytest.raises(ValueError, match="centers has 2 features, but X has 3 features"):
        quantization_error(X, X[:, :2])
    with pytest.raises(ValueError, match="centers contains NaN"):
        quantization_error(X, np.full((2, 3), np.nan))
    with pytest.raises(ValueError, match="centers is a sparse matrix"):
        quantization_error(X, sparse.csr_array(X))


def test_quantization_error_names_centres_of_one_dimension() -> None:
    with pytest.raises(ValueError, match="centers"):
        quantization_error(X, X[0])


# ------------------------------------------------------------------------------------------------------ two levels


@pytest.mark.parametrize("size", [None, 3000])
@pytest.mark.parametrize("n_features", [4, 200])
def test_centres_of_two_levels_lie_between_seeds_and_a_fit(n_features: int, size: int | None) -> None:
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(60, n_features))[rng.integers(0, 60, 8000)] + 0.3 * rng.normal(size=(8000, n_features))
    rows = rows.astype(np.float32)
    centers = two_level(rows, 80, coreset_size=size, random_state=0)
    assert centers.shape == (80, n_features)
    assert centers.dtype == np.float64
    error = quantization_error(rows, centers)
    fitted = VCGMM(80, coreset_size=size, random_state=0).fit(rows).quantization_error(rows)
    assert 0.98 * fitted < error < 1.2 * fitted
    assert error < 0.75 * quantization_error(rows, kmeans_plus_plus(rows, 80, random_state=0)[0])


def test_centres_of_two_levels_know_nothing_of_rows_without_weight() -> None:
    weights = np.ones(500)
    rows = np.vstack([X, X + 1e3])
    centers = two_level(rows, 40, sample_weight=np.concatenate([weights, 0 * weights]), random_state=0)
    assert centers.max() < 100


@pytest.mark.parametrize("size", [None, 200])
def test_centres_of_two_levels_do_not_depend_on_the_scale_of_weights(size: int | None) -> None:
    settings = {"coreset_size": size, "random_state": 0}
    centers = two_level(X, 20, sample_weight=WEIGHTS, **settings)
    np.testing.assert_array_equal(two_level(X, 20, sample_weight=np.ldexp(WEIGHTS, 900), **settings), centers)


def test_a_centre_for_every_point_stands_on_it() -> None:
    centers = two_level(X[:40], 40, random_state=0)
    np.testing.assert_allclose(np.sort(centers[:, 0]), np.sort(X[:40, 0]), rtol=1e-12)


def test_two_levels_check_what_they_are_given() -> None:
    with pytest.raises(ValueError, match=r"X has 2 distinct .* n_clusters=3\. Ask for at most 2"):
        two_level(np.repeat(X[:2], 10, axis=0), 3)
    with pytest.raises(ValueError, match="coreset_size=0 is not valid"):
        two_level(X, 3, coreset_size=0)
    with pytest.raises(ValueError, match="max_iter=-1 is not valid"):
        two_level(X, 3, max_iter=-1)
    with pytest.raises(ValueError, match="lloyd_steps=0 is not valid"):
        two_level(X, 3, lloyd_steps=0)
    with pytest.raises(ValueError, match="hard='no' is not valid"):
        two_level(X, 3, hard="no")
    with pytest.raises(ValueError, match="levels=1 is not valid"):
        two_level(X, 3, levels=1)
    with pytest.raises(ValueError, match="sampling='all' is not known: choose from 'lightweight', 'uniform'"):
        two_level(X, 3, sampling="all")
    with pytest.raises(ValueError, match="n_init=0 is not valid"):
        two_level(X, 3, n_init=0)


@pytest.mark.parametrize("n_features", [4, 200])
def test_centres_of_two_levels_end_lower_after_em(n_features: int) -> None:
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(60, n_features))[rng.integers(0, 60, 8000)] + 0.6 * rng.normal(size=(8000, n_features))
    rows = rows.astype(np.float32)
    errors = [quantization_error(rows, two_level(rows, 80, max_iter=n, random_state=0)) for n in (0, 5)]
    assert errors[1] < errors[0]


def test_centres_of_two_levels_end_lower_after_more_steps_inside_cells() -> None:
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(8000, 4))
    errors = [quantization_error(rows, two_level(rows, 80, lloyd_steps=n, random_state=0)) for n in (2, None, 12)]
    assert errors[0] > errors[1] > errors[2]


@pytest.mark.parametrize("max_iter", [0, 1, 3])
@pytest.mark.parametrize("n_features", [4, 60])
def test_more_levels_are_heard_of_in_every_way_to_centres(n_features: int, max_iter: int) -> None:
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(4000, 4)) @ rng.normal(size=(4, n_features))  # sixty features are wide
    two, three = (two_level(rows, 80, max_iter=max_iter, levels=n, random_state=0) for n in (2, 3))
    assert not np.array_equal(two, three)
    assert quantization_error(rows, three) < 1.4 * quantization_error(rows, two)
    np.testing.assert_array_equal(two, two_level(rows, 80, max_iter=max_iter, random_state=0))


def test_steps_are_heard_of_where_clusters_are_few() -> None:
    rows = np.random.default_rng(1).normal(size=(8000, 4))
    errors = [
        quantization_error(rows, two_level(rows, 20, lloyd_steps=n, random_state=0)) for n in (1, 2, 4, 12, 40)
    ]
    assert errors == sorted(errors, reverse=True)
    assert len(set(errors)) == 5
    plain, four = (two_level(rows, 20, lloyd_steps=n, random_state=0) for n in (None, 4))
    np.testing.assert_array_equal(plain, four)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_features", [3, 90])
def test_centres_of_a_uniform_sample_are_nearly_as_good(n_features: int, weighted: bool) -> None:
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(30, n_features))[rng.integers(0, 30, 20_000)] + 0.3 * rng.normal(
        size=(20_000, n_features)
    )
    weights = rng.uniform(0.0, 2.0, 20_000) if weighted else None
    settings = {"hard": True, "sample_weight": weights, "random_state": 0}
    every = two_level(rows, 40, **settings)
    some = two_level(rows, 40, coreset_size=4000, sampling="uniform", **settings)
    assert quantization_error(rows, some, weights) < 1.1 * quantization_error(rows, every, weights)
    assert not np.array_equal(every, some)
    for n_threads in (1, 3):
        again = two_level(rows, 40, coreset_size=4000, sampling="uniform", n_threads=n_threads, **settings)
        np.testing.assert_array_equal(again, some)


def test_a_uniform_sample_of_all_rows_is_all_rows() -> None:
    every = two_level(X, 3, random_state=0)
    for size in (len(X), 10 * len(X)):
        np.testing.assert_array_equal(
            two_level(X, 3, coreset_size=size, sampling="uniform", random_state=0), every
        )


def test_rows_that_are_not_drawn_are_not_looked_at() -> None:
    rows = np.random.default_rng(5).normal(size=(1000, 3))
    settings = {"coreset_size": 50, "sampling": "uniform", "random_state": 0}
    plain, refused = two_level(rows, 4, **settings), []
    for i in range(20):  # one run of rows, of which one is drawn
        spoilt = rows.copy()
        spoilt[i] = np.nan
        try:
            np.testing.assert_array_equal(two_level(spoilt, 4, **settings), plain)
        except ValueError as error:
            refused.append((i, str(error)))
    ((row, message),) = refused
    assert f"X contains NaN: the first in row {row}, feature 0" in message


def test_nan_in_a_sample_is_named_whatever_else_is_wrong() -> None:
    rows = np.random.default_rng(5).normal(size=(1000, 3))
    rows[::2] = np.nan
    with pytest.raises(ValueError, match=r"X contains NaN: the first in row \d*[02468], feature 0"):
        two_level(rows, 40, coreset_size=50, sampling="uniform", random_state=0)


@pytest.mark.parametrize(("n_clusters", "levels"), [(3, 4), (20, 15), (30, 40)])
@pytest.mark.parametrize("max_iter", [0, 1, 5])
@pytest.mark.parametrize("n_features", [3, 60])
def test_more_levels_than_there_is_room_for(n_features: int, max_iter: int, n_clusters: int, levels: int) -> None:
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(3000, 3)) @ rng.normal(size=(3, n_features))
    for hard in (False, True):
        found = two_level(rows, n_clusters, levels=levels, max_iter=max_iter, hard=hard, random_state=0)
        usual = two_level(rows, n_clusters, levels=2, max_iter=max_iter, hard=hard, random_state=0)
        assert quantization_error(rows, found) < 1.5 * quantization_error(rows, usual)


def test_a_uniform_sample_of_a_source_is_that_of_its_rows(tmp_path: Path) -> None:
    rows, weights = np.random.default_rng(5).normal(size=(1000, 3)), np.random.default_rng(6).uniform(size=1000)
    settings = {"coreset_size": 50, "sampling": "uniform", "random_state": 0}
    np.save(tmp_path / "rows.npy", rows)
    np.save(tmp_path / "weights.npy", weights)
    source = vcgmm.open(tmp_path / "rows.npy")
    np.testing.assert_array_equal(two_level(source, 4, **settings), two_level(rows, 4, **settings))
    weighted = vcgmm.open(tmp_path / "rows.npy", weights=tmp_path / "weights.npy")
    np.testing.assert_array_equal(
        two_level(weighted, 4, **settings), two_level(rows, 4, sample_weight=weights, **settings)
    )


def test_a_uniform_sample_without_enough_different_points_says_what_to_do() -> None:
    rows = np.zeros((1000, 2))
    rows[:3] = [[1, 2], [3, 4], [5, 6]]
    with pytest.raises(ValueError, match=r"sample of X has \d distinct .*=20.* larger coreset_size, or for samp"):
        two_level(rows, 4, coreset_size=20, sampling="uniform", random_state=0)
    assert len(two_level(rows, 4, coreset_size=20, random_state=0)) == 4


def test_centres_of_two_levels_end_lower_after_hard_iterations() -> None:
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(8000, 4))
    settings = [{}, {"max_iter": 2, "hard": True}, {"hard": True}, {"max_iter": 12, "hard": True}]
    errors = [quantization_error(rows, two_level(rows, 80, random_state=0, **one)) for one in settings]
    assert errors[0] > errors[1] > errors[2] > errors[3]


@pytest.mark.parametrize("offset", [0.0, 1e3])
@pytest.mark.parametrize("max_iter", [0, 1, 2])
def test_centres_of_two_levels_do_not_depend_on_how_rows_lie(max_iter: int, offset: float) -> None:
    rng = np.random.default_rng(2)
    rows = np.round(8 * (rng.normal(size=(30, 5))[rng.integers(0, 30, 2000)] + 0.3 * rng.normal(size=(2000, 5))))
    rows = (rows + offset).astype(np.float32)
    fixed = rows.copy()
    fixed.flags.writeable = False
    plain = two_level(rows, 40, max_iter=max_iter, random_state=0)
    for other in (np.asfortranarray(rows), np.repeat(rows, 2, axis=1)[:, ::2], fixed, rows.astype(np.int16)):
        np.testing.assert_array_equal(two_level(other, 40, max_iter=max_iter, random_state=0), plain)
    moved = two_level(rows - np.float32(offset), 40, max_iter=max_iter, random_state=0)
    errors = [quantization_error(rows, plain), quantization_error(rows - np.float32(offset), moved)]
    assert errors[0] == pytest.approx(errors[1], rel=0.05)
