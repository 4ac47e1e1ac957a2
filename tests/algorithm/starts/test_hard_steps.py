from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from vcgmm.algorithm.starts import hard_steps as module
from vcgmm.algorithm.starts.hard_steps import asks_for_labels, hard_steps, largest_norm, scale_of_products
from vcgmm.kernels.nearest.lloyd import STEP_LENGTH
from vcgmm.kernels.parts.shorts import FEATURES, LARGEST, PRODUCTS
from vcgmm.parallel import Workers

WAYS = pytest.mark.parametrize("few", [0, 1000], ids=["lists", "products"])


def blobs(n: int, n_features: int, n_blobs: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping blobs, (n, D) float32, and weights (n,)."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n_blobs, n_features))[rng.integers(0, n_blobs, n)] + 0.4 * rng.normal(
        size=(n, n_features)
    )
    return points.astype(np.float32), rng.uniform(0.1, 3.0, n)


def nearest_of(points: np.ndarray, means: np.ndarray) -> np.ndarray:
    labels: np.ndarray = ((points[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)
    return labels


def error_of(points: np.ndarray, weights: np.ndarray, means: np.ndarray) -> float:
    return float(weights @ ((points[:, None] - means) ** 2).sum(axis=2).min(axis=1))


def plainly(
    points: np.ndarray, weights: np.ndarray, means: np.ndarray, n_steps: int
) -> tuple[np.ndarray, np.ndarray]:
    """The specification."""
    for step in range(n_steps):
        labels = nearest_of(points, means)
        new = means.copy()
        for c in range(len(means)):
            if (labels == c).any():
                new[c] = np.average(points[labels == c], axis=0, weights=weights[labels == c])
        means = means + (STEP_LENGTH if step < n_steps - 1 else 1.0) * (new - means)
    return means, labels


def scale_of(points: np.ndarray, weights: np.ndarray, means: np.ndarray) -> float | None:
    with Workers(2) as workers:
        return scale_of_products(points, weights, means, np.random.default_rng(0), workers)


def stepped(
    points: np.ndarray, weights: np.ndarray, means: np.ndarray, n_steps: int, n_threads: int = 2
) -> tuple[np.ndarray, np.ndarray]:
    labels = np.empty(0, np.int32)
    if asks_for_labels(*means.shape):
        labels = nearest_of(points, means).astype(np.int32)
    with Workers(n_threads) as workers:
        return hard_steps(points, weights, means, labels, n_steps, np.random.default_rng(0), workers)


@WAYS
@pytest.mark.parametrize("n_steps", [1, 2, 4])
def test_steps_are_those_of_lloyd(few: int, n_steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FEW", few)
    points, weights = blobs(2000, 6, 20)
    means = points[:30].astype(np.float64)  # of 30 clusters all are candidates
    found, labels = stepped(points, weights, means, n_steps)
    expected, expected_labels = plainly(points.astype(np.float64), weights, means, n_steps)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    np.testing.assert_array_equal(labels, expected_labels)


@WAYS
def test_they_do_not_depend_on_the_number_of_threads(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FEW", few)
    monkeypatch.setattr("vcgmm.parallel.WORTH_WAKING", 1)
    points, weights = blobs(3000, 5, 40)
    alone, *others = (stepped(points, weights, points[:150].astype(np.float64), 3, n) for n in (1, 2, 3))
    for other in others:
        np.testing.assert_array_equal(other[0], alone[0])
        np.testing.assert_array_equal(other[1], alone[1])


@WAYS
@pytest.mark.parametrize("n_steps", [1, 2, 6])
def test_a_cluster_without_points_is_put_on_a_far_one(
    few: int, n_steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FEW", few)
    points, weights = blobs(500, 3, 5)
    means = np.vstack([points[:9].astype(np.float64), np.full((1, 3), 50.0)])
    found, labels = stepped(points, weights, means, n_steps)
    assert np.bincount(labels, minlength=10).min() > 0
    without, _ = stepped(points, weights, means[:9], n_steps)
    assert error_of(points, weights, found) < error_of(points, weights, without)


@pytest.mark.parametrize("seed", range(8))
def test_sums_that_are_kept_are_to_the_last_bit_those_taken_anew(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(seed)
    points, weights = np.exp(2 * rng.normal(size=(300, 2))).astype(np.float32), rng.lognormal(size=300)
    means = np.vstack([points[rng.choice(300, 60)].astype(np.float64), [[900.0, 0.0], [0.0, 900.0]]])
    lifts: list[int] = []
    lift, take = module.lift, module.Compared.take

    def counted(*about: Any) -> Any:
        lifts.append(1)
        return lift(*about)

    def anew(self: Any, means: np.ndarray) -> Any:
        before = self.labels.copy()
        self.labels[:], self._sums[:], self._mass[:] = -1, 0.0, 0.0
        ways, masses, _ = take(self, means)
        return ways, masses, int((self.labels != before).sum())

    monkeypatch.setattr(module, "lift", counted)
    found, labels = stepped(points, weights, means, 7)
    assert lifts  # clusters were without points, and the labels of others have been changed for them
    monkeypatch.setattr(module.Compared, "take", anew)
    expected, expected_labels = stepped(points, weights, means, 7)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(labels, expected_labels)


@WAYS
def test_they_end_where_nothing_changes(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FEW", few)
    points, weights = blobs(600, 3, 6)
    kind = module.Compared if few else module.Listed
    taken: list[np.ndarray] = []
    take = kind.take

    def counted(self: Any, means: np.ndarray) -> Any:
        taken.append(means)
        return take(self, means)

    monkeypatch.setattr(kind, "take", counted)
    found, labels = stepped(points, weights, points[:8].astype(np.float64), 500)
    assert 3 < len(taken) < 200
    np.testing.assert_array_equal(labels, nearest_of(points, found))  # a fixed point of Lloyd's algorithm
    expected, _ = plainly(points.astype(np.float64), weights, found, 1)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_lists_end_close_to_products(monkeypatch: pytest.MonkeyPatch) -> None:
    points, weights = blobs(6000, 8, 60)
    means = points[:300].astype(np.float64)
    errors = []
    for few in (0, 1000):
        monkeypatch.setattr(module, "FEW", few)
        found, _ = stepped(points, weights, means, 4)
        errors.append(error_of(points, weights, found))
    assert errors[0] == pytest.approx(errors[1], rel=0.02)


@pytest.mark.parametrize("light", [1.0, 1e-8])
def test_products_are_not_trusted_where_clusters_are_small_beside_the_data(
    light: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    points, weights = blobs(2000, 6, 12)
    assert scale_of(points, weights, points[:12].astype(np.float64)) == 0.0
    far = points + np.float32(5000.0) * (np.arange(2000) % 2)[:, None].astype(np.float32)
    if light < 1.0:  # points that lie about would say that there is no need to be exact, but hardly count
        wide = np.random.default_rng(1).normal(scale=3000.0, size=(4000, 6)).astype(np.float32)
        far, weights = np.vstack([far, wide]), np.concatenate([weights, np.full(4000, light)])
    seeds = far[:12].astype(np.float64)
    assert scale_of(far, weights, seeds) is None
    calls = []
    monkeypatch.setattr(module, "Compared", lambda *_: calls.append(1))
    found, labels = stepped(far, weights, seeds, 2)
    assert not calls
    expected, expected_labels = plainly(far.astype(np.float64), weights, seeds, 2)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-5)
    np.testing.assert_array_equal(labels[:2000], expected_labels[:2000])


@pytest.mark.parametrize("n", [1, 511, 512, 1030])
def test_some_points_are_looked_at_however_many_there_are(n: int) -> None:
    points = np.random.default_rng(0).normal(size=(n, 3))
    assert scale_of(points, np.ones(n), np.full((2, 3), 5.0)) == 0.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_steps", [1, 2, 4])
def test_steps_of_wide_rows_are_those_of_lloyd_up_to_near_ties(n_steps: int, dtype: type) -> None:
    points, weights = blobs(3000, FEATURES + 3, PRODUCTS // 2)
    points = points.astype(dtype)
    means = points[:PRODUCTS].astype(np.float64)
    scale = scale_of(points, weights, means)
    assert scale == pytest.approx(LARGEST / np.linalg.norm(points, axis=1).max(), rel=1e-6)
    found, labels = stepped(points, weights, means, n_steps)
    expected, expected_labels = plainly(points.astype(np.float64), weights, means, n_steps)
    assert (labels == expected_labels).mean() > 0.99
    assert error_of(points, weights, found) == pytest.approx(error_of(points, weights, expected), rel=1e-3)


def steps_taken(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A list to which every step over all points that follows adds how many steps it takes for a unit."""
    taken: list[float] = []
    take = module.Compared.take

    def noted(self: Any, means: np.ndarray) -> Any:
        taken.append(self._steps)
        return take(self, means)

    monkeypatch.setattr(module.Compared, "take", noted)
    return taken


def test_where_nothing_changes_any_more_rows_are_compared_as_floats(monkeypatch: pytest.MonkeyPatch) -> None:
    points, weights = blobs(3000, FEATURES, 10)
    taken = steps_taken(monkeypatch)
    found, labels = stepped(points, weights, points[:PRODUCTS].astype(np.float64), 500)
    assert taken[0] > 0.0
    assert taken[-1] == 0.0
    assert len(taken) < 500
    np.testing.assert_array_equal(labels, nearest_of(points, found))  # a fixed point of Lloyd's algorithm


@pytest.mark.parametrize(
    ("n_features", "n_clusters", "far"),
    [(FEATURES - 1, PRODUCTS, 1.0), (FEATURES, PRODUCTS - 1, 1.0), (FEATURES, PRODUCTS, 300.0)],
)
def test_rows_are_floats_where_steps_are_not_worth_it_or_too_long(
    n_features: int, n_clusters: int, far: float
) -> None:
    points, weights = blobs(3000, n_features, 2 * PRODUCTS)
    points[0] *= np.float32(far)
    means = points[1 : 1 + n_clusters].astype(np.float64)
    assert scale_of(points, weights, means) == 0.0
    found, labels = stepped(points, weights, means, 2)
    expected, expected_labels = plainly(points.astype(np.float64), weights, means, 2)
    np.testing.assert_allclose(found, expected, atol=1e-4)
    np.testing.assert_array_equal(labels, expected_labels)


def test_more_clusters_of_wide_rows_are_compared_with_all() -> None:
    assert not asks_for_labels(module.FEW, 2)
    assert asks_for_labels(module.FEW + 1, 2)
    assert not asks_for_labels(module.FEW + 1, FEATURES)
    assert asks_for_labels(2 * module.FEW, FEATURES)


@pytest.mark.parametrize("n", [1, 511, 512, 513, 5000])
def test_the_longest_row_is_found(n: int) -> None:
    points = np.random.default_rng(0).normal(size=(n, 3))
    for place in (0, n // 2, n - 1):
        here = points.copy()
        here[place] = [30.0, 40.0, 0.0]
        with Workers(2) as workers:
            assert largest_norm(here, workers) == pytest.approx(50.0)


def test_steps_that_end_after_clusters_were_lifted_have_looked_closer_too(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    middles = 20.0 * rng.normal(size=(PRODUCTS - 1, FEATURES))
    points = np.repeat(middles, 40, axis=0).astype(np.float32) + rng.normal(size=(40 * len(middles), FEATURES))
    points = points.astype(np.float32)
    taken = steps_taken(monkeypatch)
    means = np.vstack([middles, np.full((1, FEATURES), 150.0)])
    _, labels = stepped(points, np.ones(len(points)), means, 50)
    assert np.bincount(labels, minlength=PRODUCTS).min() > 0
    assert taken[0] > 0.0
    assert taken[-1] == 0.0
    assert len(taken) < 50


def test_points_of_no_size_are_floats() -> None:
    means = np.zeros((PRODUCTS, FEATURES))
    assert scale_of(np.zeros((60, FEATURES), np.float32), np.ones(60), means) == 0.0
