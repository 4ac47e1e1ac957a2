from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from vcgmm.algorithm.nearest import nearest
from vcgmm.algorithm.seeding import two_level as module
from vcgmm.algorithm.seeding.afkmc2 import Start, kmeans_plus_plus
from vcgmm.algorithm.seeding.inside_cells import CARE
from vcgmm.algorithm.seeding.two_level import ALONE, BEFORE_A_FIT, Effort, levels_at_most, levels_for, two_level
from vcgmm.parallel import Workers


def silent(amount: int) -> None:
    """No progress is told."""


def start_of(
    points: np.ndarray,
    weights: np.ndarray,
    n_clusters: int,
    seed: int = 0,
    n_threads: int = 2,
    *,
    effort: Effort = BEFORE_A_FIT,
    labelled: bool = True,
    levels: int | None = None,
) -> Start:
    with Workers(n_threads) as workers:
        rng, wishes = np.random.default_rng(seed), {"effort": effort, "labelled": labelled, "levels": levels}
        return two_level(points, weights, n_clusters, rng, workers, silent, **wishes)


def blobs(n: int, n_blobs: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(n_blobs, 3))[rng.integers(n_blobs, size=n)] * 20 + rng.normal(size=(n, 3))).astype(
        np.float32
    )


@pytest.mark.parametrize(
    ("n", "n_clusters"), [(300, 1), (300, 7), (300, 32), (300, 33), (2000, 150), (60, 60), (33, 33)]
)
def test_there_are_as_many_centres_as_asked_for(n: int, n_clusters: int) -> None:
    start = start_of(blobs(n, 20), np.ones(n), n_clusters)
    assert start.means.shape == (n_clusters, 3)
    assert len(np.unique(start.means, axis=0)) == n_clusters
    assert np.isfinite(start.means).all()


def test_labels_and_error_belong_to_the_centres() -> None:
    points, weights = blobs(1000, 20), np.random.default_rng(1).uniform(0.5, 2.0, 1000)
    start = start_of(points, weights, 70)
    direct = ((points - start.means[start.labels]) ** 2).sum(axis=1)
    assert start.error == pytest.approx(weights @ direct, rel=1e-4)
    assert start.n_evaluations > 0


@pytest.mark.parametrize(
    ("points", "n_clusters"),
    [(blobs(1000, 20), 12), (blobs(1000, 20), 70), (np.repeat(blobs(45, 20), 30, axis=0), 45)],
)
def test_a_start_alone_is_as_good_and_has_labels_where_somebody_asks(points: np.ndarray, n_clusters: int) -> None:
    start = start_of(points, np.ones(len(points)), n_clusters)
    alone, other = (
        start_of(points, np.ones(len(points)), n_clusters, effort=ALONE, labelled=labelled)
        for labelled in (False, True)
    )
    with Workers(1) as workers:
        error = float(nearest(points, alone.means, workers)[1].sum())
    assert error <= 1.1 * start.error + 1e-6
    assert len(np.unique(alone.means, axis=0)) == n_clusters
    assert len(alone.labels) == 0
    assert np.isnan(alone.error)
    assert alone.n_evaluations <= other.n_evaluations <= start.n_evaluations
    np.testing.assert_array_equal(other.means, alone.means)
    direct = ((points - other.means[other.labels]) ** 2).sum()
    assert other.error == pytest.approx(direct, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_few_clusters_are_labelled_only_where_somebody_asks(n_threads: int) -> None:
    points, weights = blobs(3000, 20), np.ones(3000)
    alone, other = (
        start_of(points, weights, 12, n_threads=n_threads, effort=ALONE, labelled=labelled)
        for labelled in (False, True)
    )
    assert len(alone.labels) == 0
    assert alone.n_evaluations == other.n_evaluations - 12 * 3000
    np.testing.assert_array_equal(alone.means, other.means)


def test_seeds_of_few_clusters_are_drawn_with_more_care(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(11)
    sizes = np.r_[3000, np.full(24, 25)]  # of 160 rows most small blobs would show none
    points = np.repeat(100 * rng.normal(size=(25, 3)), sizes, axis=0) + rng.normal(size=(3600, 3))
    points = points[rng.permutation(3600)].astype(np.float32)

    def mean_error() -> float:
        return float(np.mean([start_of(points, np.ones(3600), 25, seed).error for seed in range(10)]))

    careful = mean_error()
    monkeypatch.setattr(module, "CARE_FOR_FEW", CARE)
    assert careful < 0.8 * mean_error()


@pytest.mark.parametrize("n_clusters", [7, 40, 61])
def test_rare_points_among_heavy_duplicates_become_centres(n_clusters: int) -> None:
    points = np.zeros((10_000, 2), np.float32)
    points[np.random.default_rng(2).choice(10_000, 60, replace=False)] = np.random.default_rng(3).normal(
        size=(60, 2)
    )
    start = start_of(points, np.ones(10_000), n_clusters)
    assert len(np.unique(start.means.round(6), axis=0)) == n_clusters
    if n_clusters == 61:  # one for each
        assert start.error < 1e-4 * (points**2).sum()


def test_a_few_points_repeated_equally_often_are_all_found() -> None:
    points = np.repeat(np.random.default_rng(4).normal(size=(40, 2)), 50, axis=0).astype(np.float32)
    start = start_of(points, np.ones(2000), 40)
    assert len(np.unique(start.means.round(4), axis=0)) == 40
    assert start.error < 1e-4


def test_levels_are_as_many_as_keep_cells_small() -> None:
    expected = [(1, 1), (32, 1), (33, 2), (65_536, 2), (65_537, 3), (1_000_000, 3), (20_000_000, 4)]
    assert [levels_for(n, 256) for n, _ in expected] == [levels for _, levels in expected]


@pytest.mark.parametrize("levels", [2, 3, 5, 40])
@pytest.mark.parametrize("n_clusters", [1, 2, 3, 5, 20, 33, 100])
def test_any_number_of_levels_finds_as_many_centres(levels: int, n_clusters: int) -> None:
    points, weights = blobs(1500, 30), np.ones(1500)
    start = start_of(points, weights, n_clusters, levels=levels)
    check(start, points, weights, n_clusters)
    error, usual = (
        ((points[:, None] - means) ** 2).sum(axis=2).min(axis=1).sum()
        for means in (start.means, start_of(points, weights, n_clusters).means)
    )
    assert error <= 1.5 * usual


def check(start: Start, points: np.ndarray, weights: np.ndarray, n_clusters: int) -> None:
    """As many different centres as asked for, labels of them, and the error of these."""
    assert len(np.unique(start.means, axis=0)) == n_clusters
    assert 0 <= start.labels.min() <= start.labels.max() < n_clusters
    direct = ((points - start.means[start.labels]) ** 2).sum(axis=1)
    assert start.error == pytest.approx(weights @ direct, rel=1e-4)


def test_there_are_no_more_levels_than_divide_cells_by_four() -> None:
    assert [levels_at_most(n) for n in (1, 3, 16, 63, 65, 1000, 1_000_000)] == [2, 2, 2, 2, 3, 4, 9]


@pytest.mark.parametrize("n_clusters", [3, 20, 40])
def test_rows_of_cells_that_get_no_cluster_go_to_the_nearest(
    n_clusters: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "levels_at_most", lambda _: 40)  # shares are rounded up: more cells than clusters
    points, weights = blobs(1500, 30), np.random.default_rng(1).uniform(0.5, 2.0, 1500)
    check(start_of(points, weights, n_clusters, levels=15), points, weights, n_clusters)


def test_many_clusters_take_more_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    points, weights = blobs(1500, 30), np.ones(1500)
    three = start_of(points, weights, 100, levels=3)
    monkeypatch.setattr(module, "LARGEST_CELL", 5)
    np.testing.assert_array_equal(start_of(points, weights, 100).means, three.means)


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells that expect more than two clusters are split once more before seeds are drawn."""
    monkeypatch.setattr(module, "SEEDED_TOGETHER", 2)


@pytest.mark.parametrize("effort", [ALONE, BEFORE_A_FIT])
@pytest.mark.parametrize("levels", [2, 3])
def test_seeds_from_parts_of_cells_are_about_as_good(
    effort: Effort, levels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    points, weights = blobs(6000, 300), np.random.default_rng(8).uniform(0.5, 2.0, 6000)
    together = start_of(points, weights, 200, effort=effort, levels=levels)
    monkeypatch.setattr(module, "SEEDED_TOGETHER", 2)
    apart = start_of(points, weights, 200, effort=effort, levels=levels)
    assert apart.error <= 1.1 * together.error
    assert apart.n_evaluations != together.n_evaluations
    assert len(np.unique(apart.means, axis=0)) == 200
    direct = ((points - apart.means[apart.labels]) ** 2).sum(axis=1)
    assert apart.error == pytest.approx(weights @ direct, rel=1e-4)


@pytest.mark.usefixtures("parts")
def test_lloyd_steps_are_not_told_of_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    points, weights = blobs(6000, 300), np.ones(6000)
    cells: list[np.ndarray] = []
    inside = module.cluster_inside

    def spy(*about: Any, **wishes: Any) -> Any:
        cells.append(np.diff(about[3]))
        return inside(*about, **wishes)

    monkeypatch.setattr(module, "cluster_inside", spy)
    start_of(points, weights, 200)
    coarse, parts, whole = cells
    assert len(coarse) == 1
    assert len(parts) == len(whole) == 15  # cells of the square root of all clusters
    np.testing.assert_array_equal(parts, whole)


def test_there_are_no_parts_where_clusters_have_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    points, weights = blobs(2000, 100), np.ones(2000)
    for n_clusters, differs in ((100, True), (180, False)):
        monkeypatch.setattr(module, "SEEDED_TOGETHER", 1000)
        together = start_of(points, weights, n_clusters)
        monkeypatch.setattr(module, "SEEDED_TOGETHER", 2)
        apart = start_of(points, weights, n_clusters)
        assert (apart.n_evaluations != together.n_evaluations) == differs


@pytest.mark.usefixtures("parts")
@pytest.mark.parametrize("n_clusters", [33, 61, 90])
def test_parts_that_run_out_of_different_points_leave_clusters_to_others(n_clusters: int) -> None:
    rng = np.random.default_rng(9)
    points = np.repeat(rng.normal(size=(90, 2)), rng.integers(1, 60, 90), axis=0).astype(np.float32)
    points[:1000] = points[0]
    distinct = len(np.unique(points, axis=0))
    start = start_of(points, np.ones(len(points)), min(n_clusters, distinct))
    assert len(np.unique(start.means.round(5), axis=0)) == min(n_clusters, distinct)
    if n_clusters >= distinct:
        assert start.error < 1e-4


@pytest.mark.usefixtures("parts")
def test_parts_do_not_depend_on_the_number_of_threads() -> None:
    points, weights = blobs(3000, 50), np.random.default_rng(7).uniform(0.5, 2.0, 3000)
    alone, together = (start_of(points, weights, 90, n_threads=n) for n in (1, 3))
    np.testing.assert_array_equal(alone.means, together.means)
    np.testing.assert_array_equal(alone.labels, together.labels)


@pytest.mark.parametrize("n_clusters", [16, 100])
def test_the_error_is_lower_than_that_of_d2_seeds(n_clusters: int) -> None:
    points, weights = blobs(4000, 80, seed=5), np.ones(4000)
    with Workers(2) as workers:
        seeds = kmeans_plus_plus(points, weights, n_clusters, np.random.default_rng(0), workers, silent)
        d2_error = float(nearest(points, points[seeds.indices], workers)[1].sum())
    assert start_of(points, weights, n_clusters).error < 0.8 * d2_error


def test_weights_steer_where_clusters_go() -> None:
    rng = np.random.default_rng(6)
    points = np.vstack([rng.normal(-50, 1, (500, 2)), rng.normal(50, 1, (500, 2))]).astype(np.float32)
    heavy_right = start_of(points, np.repeat([1.0, 1000.0], 500), 40)
    heavy_left = start_of(points, np.repeat([1000.0, 1.0], 500), 40)
    assert (heavy_right.means[:, 0] > 0).sum() > (heavy_left.means[:, 0] > 0).sum()


def test_the_start_does_not_depend_on_the_number_of_threads() -> None:
    points, weights = blobs(3000, 50), np.random.default_rng(7).uniform(0.5, 2.0, 3000)
    alone, together = (start_of(points, weights, 90, n_threads=n) for n in (1, 3))
    np.testing.assert_array_equal(alone.means, together.means)
    np.testing.assert_array_equal(alone.labels, together.labels)
    assert alone.error == together.error
