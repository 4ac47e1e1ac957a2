from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcgmm import VCGMM
from vcgmm.algorithm.coreset.frame import Frame
from vcgmm.algorithm.coreset.lightweight import Coreset
from vcgmm.algorithm.coreset.local_points import LocalPoints
from vcgmm.algorithm.seeding.afkmc2 import Start
from vcgmm.algorithm.seeding.two_level import two_level
from vcgmm.algorithm.starts import directions as module
from vcgmm.algorithm.starts import subspace
from vcgmm.algorithm.starts.directions import CHOICES, LEAST_GAIN
from vcgmm.algorithm.starts.subspace import WINNERS, SearchSettings, improved_labels, lift, start_in_subspace
from vcgmm.parallel import Workers

INLINE = Workers(1)
WIDE = LEAST_GAIN * CHOICES[-1]  # from so many features on, every number of dimensions is worth it


def silent(amount: int) -> None:
    """No progress is told."""


def mixture(
    n: int,
    n_blobs: int,
    D: int = 200,
    rank: int = 10,
    distance: float = 2.0,
    seed: int = 0,
    dtype: type = np.float32,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Blobs of unit variance in a few directions, with noise in all: points (n, D), centres, labels."""
    rng = np.random.default_rng(seed)
    directions = np.linalg.qr(rng.normal(size=(D, rank)))[0].T
    centres = distance * rng.normal(size=(n_blobs, rank)) @ directions
    labels = rng.permutation(np.arange(n) % n_blobs)
    points = centres[labels] + rng.normal(size=(n, rank)) @ directions + 0.1 * rng.normal(size=(n, D))
    return points.astype(dtype), centres, labels


def local(points: np.ndarray, workers: Workers = INLINE) -> LocalPoints:
    """Points whose local coordinates are their own."""
    frame = Frame(np.zeros(points.shape[1]), 1.0, points.dtype)
    return LocalPoints(Coreset(np.arange(len(points)), points, np.ones(len(points))), frame, workers)


# ------------------------------------------------------------------------------------------------------ projection


@pytest.mark.parametrize(("dtype", "atol"), [(np.float32, 1e-4), (np.float64, 1e-12)])
@pytest.mark.parametrize(("n", "D"), [(1, 60), (70, 60), (11_000, 300)])  # the last in several blocks
def test_projections_are_products_and_the_same_bits_for_any_number_of_threads(
    n: int, D: int, dtype: type, atol: float
) -> None:
    rng = np.random.default_rng(5)
    points = rng.normal(size=(n, D)).astype(dtype)
    directions = np.linalg.qr(rng.normal(size=(D, 16)))[0].astype(dtype)
    results = []
    for n_threads in (1, 2, 3, 7):
        with Workers(n_threads) as workers:
            results.append(local(points, workers).project(directions))
    assert results[0].dtype == dtype
    np.testing.assert_allclose(results[0], points.astype(np.float64) @ directions.astype(np.float64), atol=atol)
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


# --------------------------------------------------------------------------------------------------------- lifting


def lifted(points: np.ndarray, weights: np.ndarray, labels: list[int], n_clusters: int) -> Start:
    return lift(points, weights, np.array(labels, np.int32), n_clusters, 7, INLINE)


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 1e-5), (np.float64, 1e-12)])
@given(st.integers(0, 1000), st.integers(1, 6))
def test_lifted_means_are_the_weighted_means_of_all_features(
    dtype: type, rtol: float, seed: int, n_clusters: int
) -> None:
    rng = np.random.default_rng(seed)
    points, weights = rng.normal(size=(30, 9)).astype(dtype), rng.uniform(0.5, 3.0, 30)
    labels = rng.permutation(np.arange(30) % n_clusters)
    start = lifted(points, weights, labels.tolist(), n_clusters)
    np.testing.assert_array_equal(start.labels, labels)
    error = 0.0
    for c in range(n_clusters):
        mine, own = points[labels == c].astype(np.float64), weights[labels == c]
        np.testing.assert_allclose(start.means[c], np.average(mine, axis=0, weights=own), rtol=1e-10, atol=1e-14)
        error += own @ ((mine - start.means[c]) ** 2).sum(axis=1)
    assert start.means.dtype == np.float64
    assert start.error == pytest.approx(error, rel=rtol)
    assert start.n_evaluations == 7 + 30


def test_clusters_without_points_go_to_the_points_farthest_from_their_means() -> None:
    points = np.array([[0.0], [1.0], [5.0], [20.0], [21.0], [30.0]])
    start = lifted(points, np.ones(6), [1, 1, 1, 3, 3, 3], 5)
    # From the means 2 and 23.67, the points 30, 20 and 5 are farthest.
    assert sorted(start.means[[0, 2, 4], 0]) == [5.0, 20.0, 30.0]
    assert start.labels[[0, 1, 4]].tolist() == [1, 1, 3]
    assert start.means[start.labels[[2, 3, 5]], 0].tolist() == [5.0, 20.0, 30.0]


def test_heavy_points_are_preferred_for_clusters_without_points() -> None:
    points = np.array([[0.0], [1.0], [2.0], [10.0], [13.0], [16.0]])
    start = lifted(points, np.array([100.0, 1.0, 100.0, 1.0, 1.0, 1.0]), [0, 0, 0, 1, 1, 1], 3)
    assert start.labels.tolist() == [2, 0, 0, 1, 1, 1]
    assert start.means[2] == 0.0


@given(st.integers(0, 1000), st.data())
def test_a_lifted_start_has_labels_and_an_error_that_belong_together(seed: int, data: st.DataObject) -> None:
    rng = np.random.default_rng(seed)
    labels = data.draw(st.lists(st.integers(0, 5), min_size=12, max_size=30))
    points, weights = rng.normal(size=(len(labels), 3)), rng.uniform(0.5, 3.0, len(labels))
    start = lifted(points, weights, labels, 8)
    assert np.isfinite(start.means).all()
    assert np.isin([6, 7], start.labels).all()  # both had no points
    assert start.error == pytest.approx(weights @ ((points - start.means[start.labels]) ** 2).sum(axis=1))
    moved = start.labels != labels
    np.testing.assert_array_equal(start.means[start.labels[moved]], points[moved])


def test_no_cluster_gives_its_last_point_away() -> None:
    points = np.array([[0.0], [10.0], [100.0], [100.5]])
    start = lifted(points, np.ones(4), [0, 0, 1, 1], 4)
    assert sorted(start.labels.tolist()) == [0, 1, 2, 3]


def test_no_two_clusters_are_put_on_equal_points() -> None:
    points = np.array([[9.0], [9.0], [0.0], [0.0], [0.0], [0.0], [5.0], [6.0]])
    start = lifted(points, np.ones(8), [0, 0, 0, 0, 0, 0, 1, 1], 4)
    assert len(np.unique(start.means[2:])) == 2


def test_lifting_does_not_depend_on_the_number_of_threads() -> None:
    points, _, labels = mixture(2000, 20)
    weights = np.random.default_rng(6).uniform(0.5, 2.0, 2000)
    starts = []
    for n_threads in (1, 3):
        with Workers(n_threads) as workers:
            starts.append(lift(points, weights, (labels % 17).astype(np.int32), 20, 0, workers))
    np.testing.assert_array_equal(starts[0].means, starts[1].means)
    np.testing.assert_array_equal(starts[0].labels, starts[1].labels)
    assert starts[0].error == starts[1].error


def test_points_have_few_winners_in_few_dimensions(monkeypatch: pytest.MonkeyPatch) -> None:
    widths: list[int] = []

    class Watched(subspace.BlockedSearch):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            widths.append(self.winners.shape[1])

    monkeypatch.setattr(subspace, "BlockedSearch", Watched)
    points, _, _ = mixture(2000, 12, D=8, rank=4)
    weights, rng = np.ones(len(points)), np.random.default_rng(0)
    for truncation in (1, WINNERS, WINNERS + 2):
        start = two_level(points, weights, 12, rng, INLINE, silent)
        few = replace(settings(12), truncation=truncation)
        labels, _ = improved_labels(points, weights, start, few, rng, INLINE)
        assert len(np.unique(labels)) == 12
    assert widths == [1, WINNERS, WINNERS]


# ----------------------------------------------------------------------------------------------------- whole start


def settings(n_clusters: int) -> SearchSettings:
    """Clipped to the number of clusters, as those of a fit are."""
    return SearchSettings(
        truncation=min(3, n_clusters),
        n_neighbors=min(8, n_clusters),
        n_candidates=min(32, n_clusters),
        tol=1e-4,
        max_iter=10,
        relaxation=1.8,
    )


def start_of(
    points: np.ndarray, weights: np.ndarray | None, n_clusters: int, n_threads: int = 2, seed: int = 0
) -> Start:
    weights = np.ones(len(points)) if weights is None else weights
    with Workers(n_threads) as workers:
        rng = np.random.default_rng(seed)
        return start_in_subspace(
            local(points, workers), weights, n_clusters, settings(n_clusters), rng, workers, silent
        )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_clusters", [1, 12, 60])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_start_has_the_means_of_its_labels(n_clusters: int, weighted: bool, dtype: type) -> None:
    points, _, _ = mixture(1500, 60, dtype=dtype)
    weights = np.random.default_rng(7).uniform(0.1, 3.0, 1500) if weighted else np.ones(1500)
    start = start_of(points, weights, n_clusters)
    assert start.means.shape == (n_clusters, 200)
    assert start.means.dtype == np.float64
    assert start.labels.dtype == np.int32
    assert len(np.unique(start.labels)) == n_clusters
    for c in range(n_clusters):
        mine = start.labels == c
        np.testing.assert_allclose(
            start.means[c], np.average(points[mine].astype(float), axis=0, weights=weights[mine]), atol=1e-12
        )
    direct = ((points - start.means[start.labels]) ** 2).sum(axis=1)
    assert start.error == pytest.approx(weights @ direct, rel=1e-5)
    assert start.n_evaluations > 1500


def test_points_lie_by_label_after_a_start_in_the_subspace() -> None:
    points, _, _ = mixture(1500, 60)
    there = local(points)
    weights = np.random.default_rng(7).uniform(0.1, 3.0, 1500)
    rng = np.random.default_rng(0)
    start = start_in_subspace(there, weights, 60, settings(60), rng, INLINE, silent)
    assert start.rows is not None
    np.testing.assert_array_equal(there.array, points[start.rows])
    assert (np.diff(start.labels[start.rows]) >= 0).mean() > 0.99  # but for clusters that were without points


def test_a_start_does_not_depend_on_the_number_of_threads() -> None:
    points, _, _ = mixture(3000, 80)
    weights = np.random.default_rng(8).uniform(0.1, 3.0, 3000)
    alone, *others = (start_of(points, weights, 80, n_threads=n) for n in (1, 2, 3))
    for other in others:
        np.testing.assert_array_equal(other.means, alone.means)
        np.testing.assert_array_equal(other.labels, alone.labels)
        assert (other.error, other.n_evaluations) == (alone.error, alone.n_evaluations)
    assert (start_of(points, weights, 80, seed=1).means != alone.means).any()


@pytest.mark.parametrize(("n", "D"), [(600, 30), (100, 200)], ids=["narrow", "few"])
def test_where_no_projection_pays_the_start_is_the_plain_one(n: int, D: int) -> None:
    points, _, _ = mixture(n, 20, D=D)
    start = start_of(points, None, 20)
    with Workers(2) as workers:
        plain = two_level(points, np.ones(n), 20, np.random.default_rng(0), workers, silent)
    np.testing.assert_array_equal(start.means, plain.means)
    np.testing.assert_array_equal(start.labels, plain.labels)
    assert start.n_evaluations == plain.n_evaluations


def test_a_start_in_the_subspace_is_better_than_the_plain_one() -> None:
    points, _, _ = mixture(4000, 100, distance=1.0)
    with Workers(2) as workers:
        plain = two_level(points, np.ones(4000), 100, np.random.default_rng(0), workers, silent)
    assert start_of(points, None, 100).error < 0.98 * plain.error  # EM has been at it already


def test_all_clusters_are_told_to_whoever_waits() -> None:
    told: list[int] = []
    points, _, _ = mixture(1000, 40)
    start_in_subspace(
        local(points), np.ones(1000), 40, settings(40), np.random.default_rng(0), INLINE, told.append
    )
    assert sum(told) == 40


def test_points_that_differ_only_beyond_the_subspace_become_clusters_all_the_same() -> None:
    rng = np.random.default_rng(9)
    points = np.zeros((1000, WIDE))
    points[:, 0] = 1e6 * (np.arange(1000) % 2)
    points[np.arange(1000), 1 + rng.permutation(1000) % (WIDE - 1)] = 1.0
    start = start_of(points, None, 150)
    assert len(np.unique(start.means, axis=0)) == 150
    assert np.isfinite(start.means).all()
    assert start.error < 1000.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_different", [40, 300])
def test_every_different_point_may_be_a_cluster(n_different: int, dtype: type) -> None:
    points = np.random.default_rng(0).normal(size=(n_different, WIDE)).astype(dtype)[np.arange(600) % n_different]
    start = start_of(points, None, n_different)
    assert len(np.unique(start.labels)) == n_different
    assert start.error < 1e-6 * (points.astype(np.float64) ** 2).sum()  # rounding of norms and products


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_different", [1, 2, 3])
def test_points_without_any_error_are_no_trouble(n_different: int, dtype: type) -> None:
    points = np.random.default_rng(0).normal(size=(n_different, WIDE)).astype(dtype)[np.arange(600) % n_different]
    start = start_of(points, None, n_different)
    assert len(np.unique(start.labels)) == n_different
    assert start.error < 1e-6 * (points.astype(np.float64) ** 2).sum()  # rounding of norms and products


# ------------------------------------------------------------------------------------------------------ whole fits


def fitted(X: np.ndarray, n_components: int, weights: np.ndarray | None = None, **options: Any) -> VCGMM:
    options = {"coreset_size": None, "random_state": 0, "n_threads": 2, **options}
    return VCGMM(n_components, **options).fit(X, sample_weight=weights)


def without_subspace(monkeypatch: pytest.MonkeyPatch, *arguments: Any, **options: Any) -> VCGMM:
    with monkeypatch.context() as patch:
        patch.setattr(module, "CHOICES", ())
        return fitted(*arguments, **options)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_mixture_in_few_of_many_dimensions_is_recovered(dtype: type, weighted: bool) -> None:
    X, centres, labels = mixture(2000, 8, distance=10.0, dtype=dtype)
    weights = np.random.default_rng(10).uniform(0.5, 2.0, 2000) if weighted else None
    model = fitted(1e3 + 5 * X, 8, weights)
    nearest = model.predict(1e3 + 5 * centres)
    assert sorted(nearest) == list(range(8))
    for c in range(8):
        own = None if weights is None else weights[labels == c]
        expected = np.average(1e3 + 5 * X[labels == c].astype(float), axis=0, weights=own)
        np.testing.assert_allclose(model.means_[nearest[c]], expected, atol=1e-2)
    within = 10 * 1.0 + 200 * 0.1**2  # of one blob, in all directions together
    assert model.variance_ == pytest.approx(25 * within / 200, rel=0.05)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("distance", [0.0, 1.0])
def test_the_error_is_no_higher_for_a_start_in_the_subspace(
    monkeypatch: pytest.MonkeyPatch, distance: float, weighted: bool, dtype: type
) -> None:
    X, _, _ = mixture(3000, 60, distance=distance, dtype=dtype)
    weights = np.random.default_rng(11).uniform(0.5, 2.0, 3000) if weighted else None
    model = fitted(X, 90, weights)
    plain = without_subspace(monkeypatch, X, 90, weights)
    assert (model.means_ != plain.means_).any()
    assert model.quantization_error(X, weights) < 1.02 * plain.quantization_error(X, weights)
    assert model.n_iter_ <= 1.2 * plain.n_iter_  # nor are there many more iterations


def test_fits_are_bit_identical_for_any_number_of_threads() -> None:
    X, _, _ = mixture(3000, 60)
    alone, *others = (fitted(X, 70, n_threads=n) for n in (1, 2, 3))
    for other in others:
        np.testing.assert_array_equal(other.means_, alone.means_)
        np.testing.assert_array_equal(other.lower_bounds_, alone.lower_bounds_)
        assert other.n_distance_evaluations_ == alone.n_distance_evaluations_


@pytest.mark.parametrize("options", [{"search": "pointwise"}, {"init": "k-means++"}])
def test_other_starts_and_searches_know_no_subspace(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    X, _, _ = mixture(600, 10)
    np.testing.assert_array_equal(
        fitted(X, 10, **options).means_, without_subspace(monkeypatch, X, 10, **options).means_
    )


def test_wide_rows_that_are_all_equal_are_one_cluster() -> None:
    model = fitted(np.ones((300, WIDE), np.float32), 1)
    np.testing.assert_array_equal(model.means_, np.ones((1, WIDE)))
