from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcgmm.algorithm.coreset.frame import Frame
from vcgmm.algorithm.coreset.lightweight import Coreset
from vcgmm.algorithm.coreset.local_points import LocalPoints
from vcgmm.algorithm.seeding.two_level import ALONE, two_level
from vcgmm.algorithm.starts import start_alone as module
from vcgmm.algorithm.starts.start_alone import Wishes, means_of_labels, runs_of_groups, start_alone
from vcgmm.algorithm.starts.subspace import lift
from vcgmm.data import Selection
from vcgmm.parallel import Workers

INLINE = Workers(1)


def silent(amount: int) -> None:
    """No progress is told."""


def local(points: np.ndarray, workers: Workers = INLINE) -> LocalPoints:
    """Points whose local coordinates are their own."""
    frame = Frame(np.zeros(points.shape[1]), 1.0, np.dtype(np.float32))
    return LocalPoints(Coreset(np.arange(len(points)), points, np.ones(len(points))), frame, workers)


def mixture(n: int, n_features: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping blobs in twelve directions with noise in all, (n, D) float32, and weights (n,)."""
    rng = np.random.default_rng(seed)
    directions = rng.normal(size=(12, n_features)) / np.sqrt(n_features)
    centres = rng.normal(size=(60, 12))
    points = (centres[rng.integers(0, 60, n)] + 0.5 * rng.normal(size=(n, 12))) @ directions
    points += 0.02 * rng.normal(size=(n, n_features))
    return points.astype(np.float32), rng.uniform(0.1, 3.0, n)


def centres_of(
    points: np.ndarray,
    weights: np.ndarray,
    max_iter: int | None,
    n_threads: int = 2,
    lloyd_steps: int | None = None,
    hard: bool = False,
    n_init: int = 1,
) -> np.ndarray:
    with Workers(n_threads) as workers:
        rng, wishes = np.random.default_rng(0), Wishes(max_iter, lloyd_steps, hard, n_init=n_init)
        return start_alone(local(points, workers), weights, 50, wishes, rng, workers, silent)


def error_of(points: np.ndarray, weights: np.ndarray, centres: np.ndarray) -> float:
    squares = ((points[:, None, :] - centres) ** 2).sum(axis=2)
    return float(weights @ squares.min(axis=1))


# ------------------------------------------------------------------------------------------------- means of labels


def plain_means(points: np.ndarray, weights: np.ndarray, labels: np.ndarray, n_clusters: int) -> np.ndarray:
    members = [labels == c for c in range(n_clusters)]
    return np.array([np.average(points[mine], axis=0, weights=weights[mine]) for mine in members])


LAYOUTS = pytest.mark.parametrize("layout", ["rows", "columns", "selection", "integers"])


def rows_and_picks(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """900 rows of small whole numbers, and 500 of them in order."""
    rows = np.round(10 * rng.normal(size=(900, 40))).astype(np.float32)
    return rows, np.sort(rng.choice(900, 500, replace=False))


def laid_out(rows: np.ndarray, picks: np.ndarray, layout: str) -> np.ndarray | Selection:
    source: np.ndarray | Selection = rows[picks]
    if layout == "columns":
        source = np.asfortranarray(source)
    elif layout == "integers":
        source = source.astype(np.int16)
    elif layout == "selection":
        source = Selection(rows, picks)
    return source


@LAYOUTS
def test_means_are_those_of_every_cluster_however_rows_lie(layout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vcgmm.algorithm.coreset.lightweight.FETCHED", 4096)  # several runs of groups
    rng = np.random.default_rng(0)
    rows, picks = rows_and_picks(rng)
    weights, labels = rng.uniform(0.1, 2.0, 500), rng.permutation(np.arange(500) % 23).astype(np.int32)
    source = laid_out(rows, picks, layout)
    frame = Frame(np.full(40, 0.5), 2.0, np.dtype(np.float32))
    found = []
    for n_threads in (1, 3):
        with Workers(n_threads) as workers:
            points = LocalPoints(Coreset(picks, source, weights), frame, workers)
            found.append(means_of_labels(points, weights, labels, 23, workers))
    np.testing.assert_array_equal(*found)
    expected = plain_means(2.0 * (rows[picks].astype(np.float64) - 0.5), weights, labels, 23)
    np.testing.assert_allclose(found[0], expected, rtol=1e-12, atol=1e-12)


@LAYOUTS
def test_clusters_without_points_are_put_on_the_farthest(layout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vcgmm.algorithm.coreset.lightweight.FETCHED", 4096)  # several runs of groups
    rng = np.random.default_rng(0)
    rows, picks = rows_and_picks(rng)
    weights = rng.uniform(0.1, 2.0, 500)
    labels = (2 * (np.arange(500) % 9)).astype(np.int32)  # none of 1, 3, …
    frame = Frame(np.full(40, 0.5), 2.0, np.dtype(np.float32))
    with Workers(3) as workers:
        points = LocalPoints(Coreset(picks, laid_out(rows, picks, layout), weights), frame, workers)
        expected = lift(points.array, weights, labels.copy(), 18, 0, workers).means
        points.forget()
        if layout != "columns":  # where rows are quickly fetched, no copy of all is made
            monkeypatch.setattr(LocalPoints, "fill", None)
        found = means_of_labels(points, weights, labels, 18, workers)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    assert np.bincount(labels, minlength=18).all()


@given(st.lists(st.integers(0, 50), min_size=1, max_size=40), st.integers(1, 120))
def test_runs_hold_all_groups_and_no_more_points_than_allowed(sizes: list[int], most: int) -> None:
    start = np.concatenate([[0], np.cumsum(sizes)])
    runs = runs_of_groups(start, most)
    assert (runs[0], runs[-1]) == (0, len(sizes))
    for a, b in pairwise(runs):
        assert a < b
        assert b - a == 1 or start[b] - start[a] <= most
        assert b == len(sizes) or start[b + 1] - start[a] > most  # as many as there is room for


# ----------------------------------------------------------------------------------------------------- whole start


@pytest.mark.parametrize("n_features", [20, 200], ids=["narrow", "wide"])
@pytest.mark.parametrize("max_iter", [None, 0, 1, 3])
def test_centres_do_not_depend_on_the_number_of_threads(n_features: int, max_iter: int | None) -> None:
    points, weights = mixture(3000, n_features)
    alone, *others = (centres_of(points, weights, max_iter, n) for n in (1, 2, 3))
    assert (alone.shape, alone.dtype) == ((50, n_features), np.float64)
    for other in others:
        np.testing.assert_array_equal(other, alone)


@pytest.mark.parametrize("n_features", [20, 200], ids=["narrow", "wide"])
def test_more_iterations_end_lower(n_features: int) -> None:
    points, weights = mixture(4000, n_features)
    errors = [error_of(points, weights, centres_of(points, weights, n)) for n in (0, 1, 2, 6)]
    assert errors[0] > errors[1] > errors[2] > errors[3]


@pytest.mark.parametrize("n_features", [20, 200], ids=["narrow", "wide"])
@pytest.mark.parametrize("max_iter", [0, 1])
def test_more_steps_inside_cells_end_lower(n_features: int, max_iter: int) -> None:
    points, weights = mixture(4000, n_features)
    errors = [error_of(points, weights, centres_of(points, weights, max_iter, lloyd_steps=n)) for n in (1, 3, 12)]
    assert errors[0] > errors[1] > errors[2]


@pytest.mark.parametrize(("max_iter", "steps"), [(0, 4), (1, 8), (2, 8)])
def test_steps_inside_cells_that_nobody_asked_for(max_iter: int, steps: int) -> None:
    points, weights = mixture(2000, 20)
    plain, same, other = (centres_of(points, weights, max_iter, lloyd_steps=n) for n in (None, steps, steps + 1))
    np.testing.assert_array_equal(plain, same)
    assert (other != plain).any()


def test_none_are_five_where_rows_are_wide_and_none_where_they_are_narrow() -> None:
    for n_features, n in ((20, 0), (200, module.ITERATIONS)):
        points, weights = mixture(2000, n_features)
        np.testing.assert_array_equal(centres_of(points, weights, None), centres_of(points, weights, n))


def test_narrow_rows_without_iterations_are_the_plain_start() -> None:
    points, weights = mixture(2000, 20)
    with Workers(2) as workers:
        plain = two_level(points, weights, 50, np.random.default_rng(0), workers, silent, effort=ALONE)
    np.testing.assert_array_equal(centres_of(points, weights, 0), plain.means)


@pytest.mark.parametrize("n_features", [20, 200], ids=["narrow", "wide"])
def test_one_iteration_is_hard_whatever_is_asked_for(n_features: int) -> None:
    points, weights = mixture(2000, n_features)
    plain, hard = (centres_of(points, weights, 1, hard=hard) for hard in (False, True))
    np.testing.assert_array_equal(plain, hard)


@pytest.mark.parametrize("few", [0, 1000], ids=["lists", "products"])
@pytest.mark.parametrize("n_features", [20, 200], ids=["narrow", "wide"])
def test_hard_iterations_end_lower_and_do_not_depend_on_threads(
    n_features: int, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vcgmm.algorithm.starts.hard_steps.FEW", few)
    points, weights = mixture(4000, n_features)
    found = [centres_of(points, weights, n, hard=True) for n in (0, 1, 3, 8)]
    errors = [error_of(points, weights, centres) for centres in found]
    assert errors[0] > errors[1] > errors[2] > errors[3]
    np.testing.assert_array_equal(centres_of(points, weights, 3, n_threads=1, hard=True), found[2])
    np.testing.assert_array_equal(
        centres_of(points, weights, None, hard=True), centres_of(points, weights, 5, hard=True)
    )


@pytest.mark.parametrize("n_features", [20, 200], ids=["narrow", "wide"])
@pytest.mark.parametrize(("max_iter", "hard"), [(0, False), (1, False), (4, False), (4, True)])
def test_of_several_attempts_the_best_is_taken(
    n_features: int, max_iter: int, hard: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    points, weights = mixture(2000, n_features)
    made: list[module.Found] = []
    attempt = module._attempt

    def spy(*about: Any) -> module.Found:
        made.append(attempt(*about))
        return made[-1]

    monkeypatch.setattr(module, "_attempt", spy)
    first = centres_of(points, weights, max_iter, hard=hard)
    assert np.isnan(made.pop().error) or max_iter == 0  # nobody asks for it
    best = centres_of(points, weights, max_iter, hard=hard, n_init=4)
    errors = [found.error for found in made]
    assert len(set(errors)) == 4
    if n_features == 20 and max_iter < 2:  # rows as they lie
        np.testing.assert_array_equal(first, made[0].means)
        np.testing.assert_array_equal(best, made[int(np.argmin(errors))].means)
    else:
        labels = made[int(np.argmin(errors))].labels
        np.testing.assert_allclose(best, plain_means(points, weights, labels, 50), atol=1e-5)
    assert error_of(points, weights, best) <= 1.02 * error_of(points, weights, first)


def test_rows_are_taken_as_they_lie_where_nothing_has_to_be_done_to_them() -> None:
    points, weights = mixture(200, 20)
    origin, narrow = np.zeros(20), np.dtype(np.float32)
    fixed = points.copy()
    fixed.flags.writeable = False
    picked = Coreset(np.arange(100), Selection(points, np.arange(100)), weights[:100])
    assert LocalPoints(Coreset(None, points, weights), Frame(origin, 1.0, narrow), INLINE).as_they_lie() is points
    others = [
        (picked, Frame(origin, 1.0, narrow)),
        (Coreset(None, points, weights), Frame(origin, 2.0, narrow)),
        (Coreset(None, points, weights), Frame(origin + 0.5, 1.0, narrow)),
        (Coreset(None, points, weights), Frame(origin, 1.0, np.dtype(np.float64))),
        (Coreset(None, np.asfortranarray(points), weights), Frame(origin, 1.0, narrow)),
        (Coreset(None, fixed, weights), Frame(origin, 1.0, narrow)),
    ]
    for coreset, frame in others:
        assert LocalPoints(coreset, frame, INLINE).as_they_lie() is None


@pytest.mark.parametrize("max_iter", [0, 1, 2])
def test_wide_rows_end_at_means_of_points(max_iter: int) -> None:
    points, weights = mixture(2000, 200)
    centres = centres_of(points, weights, max_iter)
    total = weights @ points.astype(np.float64) / weights.sum()
    squares = ((points[:, None, :] - centres) ** 2).sum(axis=2)
    spread = float(weights @ ((points - total) ** 2).sum(axis=1))
    assert float(weights @ squares.min(axis=1)) < 0.5 * spread
    assert (squares.min(axis=0) > 0.0).mean() > 0.9  # but for clusters of one point, no centre stands on one


def middling(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping blobs in 40 of 128 directions, and a quarter of the variance noise in all; rows and weights."""
    rng = np.random.default_rng(seed)
    directions = np.linalg.qr(rng.normal(size=(128, 40)))[0].T
    points = (rng.normal(size=(60, 40))[rng.integers(0, 60, n)] + 0.7 * rng.normal(size=(n, 40))) @ directions
    points += np.sqrt(points.var(axis=0).sum() * 0.25 / 0.75 / 128) * rng.normal(size=(n, 128))
    return points.astype(np.float32), rng.uniform(0.5, 2.0, n)


@pytest.mark.parametrize(("max_iter", "hard"), [(0, False), (1, False), (4, False), (4, True)])
def test_few_directions_of_rows_of_middling_width_are_as_good_and_do_not_depend_on_threads(
    max_iter: int, hard: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    points, weights = middling(6000)
    taken = module.directions_alone(local(points), weights, np.random.default_rng(0))
    assert taken[0].shape == (128, 48)
    few = centres_of(points, weights, max_iter, hard=hard)
    np.testing.assert_array_equal(few, centres_of(points, weights, max_iter, n_threads=3, hard=hard))
    monkeypatch.setattr(module, "directions_alone", lambda *_: (None, False))
    all_of_them = centres_of(points, weights, max_iter, hard=hard)
    assert (few != all_of_them).any()
    assert error_of(points, weights, few) < 1.01 * error_of(points, weights, all_of_them)


def test_rows_of_middling_width_have_no_iterations_unless_they_are_asked_for() -> None:
    points, weights = middling(3000)
    np.testing.assert_array_equal(centres_of(points, weights, None), centres_of(points, weights, 0))
    assert (centres_of(points, weights, 5) != centres_of(points, weights, 0)).any()
