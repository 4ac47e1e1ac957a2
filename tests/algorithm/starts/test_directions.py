from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcgmm.algorithm.coreset.frame import Frame
from vcgmm.algorithm.coreset.lightweight import Coreset
from vcgmm.algorithm.coreset.local_points import LocalPoints
from vcgmm.algorithm.starts import directions as module
from vcgmm.algorithm.starts.directions import (
    CHOICES,
    FEW_FEATURES,
    LEAST_GAIN,
    cannot_pay,
    choices_for,
    directions_alone,
    directions_for_few,
    draw_sample,
    leading_directions,
    size_that_pays,
)
from vcgmm.parallel import Workers

INLINE = Workers(1)
WIDE = LEAST_GAIN * CHOICES[-1]  # from so many features on, every number of dimensions is worth it


def low_rank(
    n: int, D: int, rank: int, noise: float = 0.05, seed: int = 0, dtype: type = np.float32
) -> tuple[np.ndarray, np.ndarray]:
    """Points about the origin with unit variance in each of a few directions and noise in all, (n, D).

    The directions, orthonormal, (D, rank), come with them.
    """
    rng = np.random.default_rng(seed)
    directions = np.linalg.qr(rng.normal(size=(D, rank)))[0]
    points = rng.normal(size=(n, rank)) @ directions.T + noise * rng.normal(size=(n, D))
    return points.astype(dtype), directions


def local(points: np.ndarray, workers: Workers = INLINE) -> LocalPoints:
    """Points whose local coordinates are their own."""
    frame = Frame(np.zeros(points.shape[1]), 1.0, points.dtype)
    return LocalPoints(Coreset(np.arange(len(points)), points, np.ones(len(points))), frame, workers)


def directions_of(points: np.ndarray, weights: np.ndarray | None = None, seed: int = 0) -> Any:
    weights = np.ones(len(points)) if weights is None else weights
    return leading_directions(local(points), weights, np.random.default_rng(seed))


def captured(directions: np.ndarray, wanted: np.ndarray) -> float:
    """The least share of the length that any direction in a span (D, r) keeps when projected on others (D, d)."""
    return float(np.linalg.svd(directions.T.astype(np.float64) @ wanted)[1].min())


@pytest.mark.parametrize(("dtype", "atol"), [(np.float32, 1e-5), (np.float64, 1e-12)])
@pytest.mark.parametrize(("D", "rank"), [(48, 5), (100, 20), (250, 70)])
def test_directions_are_orthonormal(D: int, rank: int, dtype: type, atol: float) -> None:
    directions = directions_of(low_rank(700, D, min(rank, D), dtype=dtype)[0])
    assert directions.dtype == dtype
    assert directions.flags.c_contiguous
    np.testing.assert_allclose(directions.T @ directions, np.eye(directions.shape[1]), atol=atol)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(st.integers(0, 1000), st.integers(1, 16))
def test_directions_span_where_the_points_vary(dtype: type, seed: int, rank: int) -> None:
    points, wanted = low_rank(300, 100, rank, noise=0.02, seed=seed, dtype=dtype)
    directions = directions_of(points, seed=seed)
    assert directions.shape == (100, 16)
    assert captured(directions, wanted) > 0.999
    assert captured(wanted, directions[:, :rank]) > 0.99  # and they come first


def test_directions_come_by_falling_variance() -> None:
    rng = np.random.default_rng(1)
    points = rng.normal(size=(900, 210)) * 0.9 ** np.arange(210)
    directions = directions_of(points - points.mean(axis=0))
    variances = (points @ directions).var(axis=0)
    assert (np.diff(variances) <= 1e-2 * variances[:-1]).all()
    exact = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)[2][:8].T
    assert captured(directions, exact) > 0.999


def test_a_sample_of_many_points_is_enough() -> None:
    points, wanted = low_rank(3 * module.SAMPLE, 60, 8)
    assert captured(directions_of(points), wanted) > 0.999


@pytest.mark.parametrize(("rank", "size"), [(10, 16), (25, 32), (40, 48), (60, 64), (120, 64)])
def test_no_more_dimensions_are_taken_than_are_enough(rank: int, size: int) -> None:
    assert directions_of(low_rank(800, WIDE, rank, noise=0.01)[0]).shape == (WIDE, size)


def few_of(points: np.ndarray, n_clusters: int, weights: np.ndarray | None = None) -> Any:
    weights = np.ones(len(points)) if weights is None else weights
    return directions_for_few(local(points), weights, n_clusters, np.random.default_rng(0))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n_clusters", "size"), [(1, 16), (10, 16), (11, 32), (21, 32), (22, 48), (32, 48)])
def test_few_clusters_ask_for_few_directions_of_very_wide_rows(n_clusters: int, size: int, dtype: type) -> None:
    points = np.random.default_rng(5).normal(size=(900, WIDE)) * 0.97 ** np.arange(WIDE)
    points = (points - points.mean(axis=0)).astype(dtype)
    directions = few_of(points, n_clusters)
    assert directions.shape == (WIDE, size)
    assert directions.dtype == dtype
    assert directions.flags.c_contiguous
    np.testing.assert_allclose(directions.T @ directions, np.eye(size), atol=1e-5)
    exact = np.linalg.svd(points, full_matrices=False)[2][:4].T.astype(np.float64)
    assert captured(directions, exact) > 0.9


@pytest.mark.parametrize("kept", [0.45, 0.55])
def test_few_directions_have_to_keep_half_of_the_variance(kept: float) -> None:
    rng = np.random.default_rng(6)
    variances = np.concatenate([np.full(16, kept / 16), np.full(WIDE - 16, (1 - kept) / (WIDE - 16))])
    points = (rng.normal(size=(3000, WIDE)) * np.sqrt(variances)).astype(np.float32)
    assert (few_of(points, 10) is not None) == (kept > 0.5)


@pytest.mark.parametrize(("rank", "size"), [(10, 16), (25, 32), (40, 48), (120, 48)])
def test_no_more_of_few_directions_are_taken_than_are_enough(rank: int, size: int) -> None:
    assert few_of(low_rank(800, WIDE, rank, noise=0.01)[0], 30).shape == (WIDE, size)


def test_few_directions_are_not_looked_for_elsewhere() -> None:
    points = low_rank(800, WIDE, 10)[0]
    assert few_of(points, 10) is not None
    assert few_of(points, 33) is None  # all of them, then
    assert few_of(points[:, :-1], 10) is None  # which have to keep enough
    assert few_of(points[: 2 * CHOICES[-1] - 1], 10) is None
    many = np.repeat(points, 3, axis=0)
    assert few_of(many[: module.FEW_ROWS], 1) is not None
    assert few_of(many[: module.FEW_ROWS + 1], 1) is None  # from which more could be told
    assert few_of(np.zeros((300, WIDE), np.float32), 10) is None


def test_few_directions_follow_the_weights() -> None:
    rng = np.random.default_rng(2)
    both = np.linalg.qr(rng.normal(size=(WIDE, 32)))[0]
    points = rng.normal(size=(1000, 32))
    points[:500, 16:] = 0.0
    points[500:, :16] = 0.0
    for half, weights in ((slice(0, 16), [1.0, 1e-4]), (slice(16, 32), [1e-4, 1.0])):
        directions = few_of(points @ both.T, 10, np.repeat(weights, 500))
        assert captured(directions, both[:, half]) > 0.95


@pytest.mark.parametrize("most", [512, module.SAMPLE])
def test_a_sample_comes_from_everywhere(most: int) -> None:
    for n_points in (300, 10_000):
        rows = draw_sample(n_points, WIDE, np.random.default_rng(0), most)
        assert rows is not None
        assert len(rows) == min(most, n_points)
        assert (np.abs(rows - np.arange(len(rows)) * n_points / len(rows)) <= n_points / len(rows)).all()


def test_directions_follow_the_weights() -> None:
    rng = np.random.default_rng(2)
    both = np.linalg.qr(rng.normal(size=(WIDE, 32)))[0]
    points = rng.normal(size=(1000, 32))
    points[:500, 16:] = 0.0
    points[500:, :16] = 0.0
    points = points @ both.T
    for half, weights in ((slice(0, 16), [1.0, 1e-4]), (slice(16, 32), [1e-4, 1.0])):
        directions = directions_of(points, np.repeat(weights, 500))
        assert directions.shape[1] == 16
        assert captured(directions, both[:, half]) > 0.99
    assert directions_of(points, np.ones(1000)).shape[1] == 32


def test_rows_too_narrow_have_no_subspace() -> None:
    assert directions_of(low_rank(500, LEAST_GAIN * CHOICES[0] - 1, 3)[0]) is None
    assert directions_of(low_rank(500, LEAST_GAIN * CHOICES[0], 3)[0]) is not None


def test_too_few_rows_have_no_subspace() -> None:
    points, _ = low_rank(400, WIDE, 5)
    assert directions_of(points[: 2 * CHOICES[-1] - 1]) is None
    assert directions_of(points[: 2 * CHOICES[-1]]) is not None
    narrower = points[:, : LEAST_GAIN * CHOICES[0]]
    assert directions_of(narrower[: 2 * CHOICES[0] - 1]) is None
    assert directions_of(narrower[: 2 * CHOICES[0]]) is not None


def test_rows_of_middling_width_have_none_where_no_few_dimensions_are_enough() -> None:
    noise = np.random.default_rng(3).normal(size=(600, WIDE)).astype(np.float32)
    assert directions_of(noise[:, : WIDE - 1]) is None
    assert directions_of(noise).shape == (WIDE, CHOICES[-1])  # of very wide rows the largest number is taken


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("D", [100, WIDE])
def test_equal_rows_have_no_subspace(D: int, dtype: type) -> None:
    assert directions_of(np.zeros((300, D), dtype)) is None


def test_the_same_random_numbers_give_the_same_directions() -> None:
    points = np.random.default_rng(4).normal(size=(300, WIDE)).astype(np.float32)
    one, again, other = (directions_of(points, seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()


@pytest.mark.parametrize("decay", [0.5, 0.8, 0.9, 0.95, 1.0])
@pytest.mark.parametrize("n_features", [50, 100])
def test_eigenvalues_are_spared_only_where_no_projection_pays(decay: float, n_features: int) -> None:
    variances = decay ** np.arange(n_features)
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(n_features, n_features)))[0]
    spared = cannot_pay(turn @ np.diag(variances) @ turn.T, choices_for(n_features), module.ENOUGH)
    pays = size_that_pays(variances, float(variances.sum()), n_features) is not None
    assert not (spared and pays)
    assert spared or decay < 1.0  # all directions alike: that is the easiest to tell


@pytest.mark.parametrize(("decay", "share"), [(0.9, 0.99), (0.97, 0.98), (0.99, 0.9)])  # the last is nearly flat
def test_directions_of_products_keep_nearly_as_much_as_the_scatter_would(decay: float, share: float) -> None:
    rng = np.random.default_rng(7)
    n_features = 2 * FEW_FEATURES
    points = rng.normal(size=(3000, n_features)) * decay ** np.arange(n_features)
    points = (points - points.mean(axis=0)) @ np.linalg.qr(rng.normal(size=(n_features,) * 2))[0]
    directions = directions_of(points)
    kept = np.sort(np.linalg.eigvalsh(points.T @ points))[::-1][: directions.shape[1]].sum()
    assert (points @ directions).var(axis=0).sum() * len(points) > share * kept


def test_few_distinct_rows_have_directions_too() -> None:
    rng = np.random.default_rng(8)
    points = rng.normal(size=(5, 300))[rng.integers(5, size=400)].astype(np.float32)
    directions = directions_of(points - points.mean(axis=0))
    assert np.isfinite(directions).all()
    np.testing.assert_allclose(directions.T @ directions, np.eye(directions.shape[1]), atol=1e-5)
    exact = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)[2][:4].T
    assert captured(directions, exact.astype(np.float64)) > 0.999


def alone_of(points: np.ndarray, weights: np.ndarray | None = None, seed: int = 0) -> Any:
    weights = np.ones(len(points)) if weights is None else weights
    return directions_alone(local(points), weights, np.random.default_rng(seed))


def spread_as(shares: list[tuple[int, float]], D: int, n: int = 3000) -> np.ndarray:
    """Normal rows (n, D) in turned axes: so many with so much of the variance, and all others with the rest."""
    rng = np.random.default_rng(7)
    deviations = np.concatenate([np.full(d, np.sqrt(share / d)) for d, share in shares])
    rest = D - len(deviations)
    left = 1.0 - sum(share for _, share in shares)
    deviations = np.concatenate([deviations, np.full(rest, np.sqrt(left / rest))])
    turn = np.linalg.qr(rng.normal(size=(D, D)))[0]
    return ((rng.normal(size=(n, D)) * deviations) @ turn).astype(np.float32)


@pytest.mark.parametrize(
    ("D", "shares", "size", "as_in_a_fit"),
    [
        (100, [(16, 0.95)], 16, True),
        (128, [(48, 0.95)], 48, False),  # more than a third of the features
        (128, [(32, 0.5), (16, 0.35)], 48, False),  # nearly enough, where nothing is enough
        (160, [(48, 0.6), (16, 0.25)], 64, False),
        (128, [(32, 0.84), (16, 0.10)], 48, False),  # 32 would be nearly enough, 48 are enough
        (191, [(16, 0.95)], 16, True),
        (63, [(16, 0.85)], None, False),  # rows of middling width begin at 64 features
        (64, [(16, 0.82)], 16, False),
        (95, [(48, 0.95)], None, False),  # more than half of the features
        (96, [(48, 0.95)], 48, False),
        (63, [(32, 0.95)], None, False),
        (64, [(32, 0.95)], 32, False),
        (128, [(48, 0.6)], None, False),
        (47, [(16, 0.95)], None, False),
        (192, [(48, 0.6)], 64, True),
    ],
)
def test_fewer_directions_are_enough_where_no_fit_follows(
    D: int, shares: list[tuple[int, float]], size: int | None, as_in_a_fit: bool
) -> None:
    points = spread_as(shares, D)
    directions, found_so = alone_of(points)
    assert (None if directions is None else directions.shape[1]) == size
    assert found_so == as_in_a_fit
    if as_in_a_fit:
        assert captured(directions[:, :8], directions_of(points)) > 0.9
    elif size is not None:
        assert directions_of(points) is None
        np.testing.assert_allclose(directions.T @ directions, np.eye(size), atol=1e-5)


def test_what_is_left_out_must_not_be_sparse() -> None:
    rng = np.random.default_rng(8)
    leading = rng.normal(size=(3000, 48)) * np.sqrt(0.85 / 48)
    smooth = rng.normal(size=(3000, 80))
    sparse = 10.0 * (rng.random((3000, 80)) < 0.01)
    found = [alone_of(np.hstack([leading, rest * np.sqrt(0.15 / 80)])) for rest in (smooth, sparse)]
    assert found[0][0].shape == (128, 48)
    assert found[1] == (None, False)


def test_few_rows_have_no_more_directions_than_half_as_many() -> None:
    points = np.random.default_rng(10).normal(size=(96, 128)).astype(np.float32)
    variances = np.linalg.svd(points - points.mean(axis=0))[1] ** 2
    assert variances[:64].sum() > module.ENOUGH * variances.sum() > variances[:48].sum()
    directions, _ = alone_of(points)
    assert directions.shape == (128, 48)  # which seem to be nearly enough; 64 would seem to be more than that


@pytest.mark.parametrize("D", [64, 128, 160])
def test_equal_rows_have_no_directions_alone(D: int) -> None:
    assert alone_of(np.zeros((300, D), np.float32)) == (None, False)
