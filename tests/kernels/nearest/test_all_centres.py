from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

from vcgmm.algorithm import reference
from vcgmm.kernels.nearest.all_centres import (
    CENTRES,
    POINTS,
    insert_smaller,
    log_sum_joint,
    nearest_centre,
    nearest_centres,
    product_slack,
    squared_norms,
    update_nearest,
)
from vcgmm.kernels.nearest.nearest_tiles import padded
from vcgmm.kernels.nearest.two_nearest import look, round_centres, way_of_rounding
from vcgmm.kernels.parts.shorts import LARGEST

pytestmark = pytest.mark.interpreted


def norms(rows: np.ndarray) -> np.ndarray:
    out = np.empty(len(rows), rows.dtype)
    squared_norms(rows, out)
    return out


def rounded(centres: np.ndarray) -> tuple[float, np.ndarray, np.ndarray, float]:
    """Steps, short integers, their squared norms, and the way to them, whatever there is to be gained."""
    m, n_features = padded(len(centres)), centres.shape[1]
    pairs, squares = np.empty((m, (n_features + 1) // 2), np.float32), np.empty(m, np.int32)
    steps = LARGEST / max(float(np.linalg.norm(centres.astype(np.float64), axis=1).max()), 1e-9)
    return steps, pairs, squares, round_centres(centres, steps, pairs, squares)


def one_nearest(
    points: np.ndarray, centres: np.ndarray, first: int = 0, last: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """By floats alone, and by short integers first, which must not matter."""
    slack = product_slack(points.dtype, points.shape[1])
    none = 0.0, np.empty((0, 0), np.float32), np.empty(0, np.int32), 0.0
    found = []
    for short in (none, rounded(centres)):
        ids, distances = np.full(len(points), -1, np.int32), np.full(len(points), -1, points.dtype)
        end = len(points) if last is None else last
        nearest_centre(first, end, points, centres, norms(centres), slack, *short, ids, distances)
        found.append((ids, distances))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
    return found[0]


def k_nearest(points: np.ndarray, centres: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    ids, distances = np.empty((len(points), k), np.int32), np.empty((len(points), k), points.dtype)
    slack = product_slack(points.dtype, points.shape[1])
    nearest_centres(0, len(points), points, centres, norms(centres), slack, ids, distances)
    return ids, distances


def brute(points: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """All squared distances, in float64."""
    return ((points[:, None].astype(np.float64) - centres[None].astype(np.float64)) ** 2).sum(axis=2)


def assert_nearest(points: np.ndarray, centres: np.ndarray) -> None:
    """No centre is nearer than the one found, up to the rounding of a direct distance."""
    tolerance = 8 * points.shape[1] * np.finfo(points.dtype).eps
    ids, distances = one_nearest(points, centres)
    direct = brute(points, centres)
    found = direct[np.arange(len(points)), ids]
    assert (found <= direct.min(axis=1) * (1 + tolerance)).all()
    np.testing.assert_allclose(distances, found, rtol=tolerance)


def assert_k_nearest(points: np.ndarray, centres: np.ndarray, k: int) -> None:
    tolerance = 8 * points.shape[1] * np.finfo(points.dtype).eps
    ids, distances = k_nearest(points, centres, k)
    direct = brute(points, centres)
    np.testing.assert_allclose(distances, np.sort(direct, axis=1)[:, :k], rtol=tolerance)
    np.testing.assert_allclose(distances, np.take_along_axis(direct, ids, axis=1), rtol=tolerance)
    assert all(len(set(row)) == k for row in ids.tolist())
    assert (np.diff(distances, axis=1) >= 0).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "n_centres"), [(3, 1), (POINTS + 2, 7), (5, CENTRES + 3)])
def test_no_centre_is_nearer_than_the_one_found(dtype: type, n: int, n_centres: int) -> None:
    rng = np.random.default_rng(n)
    assert_nearest(rng.normal(size=(n, 3)).astype(dtype), rng.normal(size=(n_centres, 3)).astype(dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("n", "n_centres", "k"), [(3, 1, 1), (POINTS + 2, 7, 3), (5, CENTRES + 3, 4), (4, 6, 6), (4, 6, 5)]
)
def test_no_centres_are_nearer_than_the_k_found(dtype: type, n: int, n_centres: int, k: int) -> None:
    rng = np.random.default_rng(n + k)
    assert_k_nearest(rng.normal(size=(n, 3)).astype(dtype), rng.normal(size=(n_centres, 3)).astype(dtype), k)


@given(
    dtype=st.sampled_from([np.float32, np.float64]),
    n=st.integers(1, 70),
    n_centres=st.integers(1, 40),
    D=st.integers(1, 20),
    decimals=st.integers(0, 6),
    tails=st.floats(0.0, 12.0),
    seed=st.integers(0, 1000),
)
def test_short_integers_leave_no_doubt_behind(
    dtype: type, n: int, n_centres: int, D: int, decimals: int, tails: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n + n_centres, D)) * np.exp(tails * rng.normal(size=(n + n_centres, 1)))
    rows = np.round(rows, decimals).astype(dtype)  # few decimals: ties abound; tails: some lie very far off
    assert_nearest(rows[:n], rows[n:])


def test_most_of_what_is_rounded_is_certain_and_what_is_not_is_found_out() -> None:
    rng = np.random.default_rng(7)
    centres = rng.normal(size=(60, 16)).astype(np.float32)
    centres[:4] = centres[4:8] + np.float32(1e-5)
    points = np.vstack([rng.normal(size=(300, 16)), centres[:8]]).astype(np.float32)
    points[5] *= 1e6
    steps, short_centres, short_squares, way = rounded(centres)
    n = len(points)
    pairs = np.empty((384, 8), np.float32)
    columns, near = np.empty((6, 8, 64), np.float32), np.empty((2, 384), np.int32)
    ids, certain = np.empty(384, np.int32), np.empty(384, np.bool_)
    n_certain = look(
        n,
        points,
        norms(points),
        steps,
        short_centres,
        short_squares,
        way,
        pairs,
        columns,
        *near,
        ids,
        certain,
    )
    assert n_certain == certain[:n].sum() > 0.7 * 300
    assert not certain[5]  # too long
    assert not certain[300:n].any()  # about as near to one as to another
    direct = brute(points, centres)
    np.testing.assert_array_equal(ids[:n][certain[:n]], direct.argmin(axis=1)[certain[:n]])
    off = np.linalg.norm(steps * points.astype(np.float64) - pairs[:n].view(np.int16), axis=1)
    ways = [way_of_rounding(points, i, np.float32(steps)) for i in range(n)]
    assert (np.delete(off, 5) <= np.delete(ways, 5)).all()
    assert not pairs[5].any()  # it was left out


@pytest.mark.parametrize("offset", [30.0, 1000.0])
def test_near_ties_far_from_the_origin_are_settled_directly(offset: float) -> None:
    rng = np.random.default_rng(0)
    points = (offset + rng.normal(size=(20, 4))).astype(np.float32)
    centres = (offset + rng.normal(size=(15, 4))).astype(np.float32)
    assert_nearest(points, centres)
    assert_k_nearest(points, centres, 3)


def test_a_centre_far_out_does_not_blur_the_others() -> None:
    rng = np.random.default_rng(1)
    centres = np.vstack([rng.normal(size=(6, 2)), [[1e6, 1e6]]]).astype(np.float32)
    points = np.vstack([rng.normal(size=(10, 2)), [[1e6, 1e6 - 1]]]).astype(np.float32)
    assert_nearest(points, centres)
    assert_k_nearest(points, centres, 2)


def test_repeated_centres_yield_the_lowest_index() -> None:
    rng = np.random.default_rng(2)
    once = rng.normal(size=(50, 5)).astype(np.float32)
    centres = np.vstack([once, once[::-1], once])  # three copies, over more than one tile
    points = np.vstack([rng.normal(size=(20, 5)).astype(np.float32), once[:10]])
    ids, _ = one_nearest(points, centres)
    np.testing.assert_array_equal(ids, brute(points, once).argmin(axis=1))


def test_a_point_on_its_centre_is_at_distance_zero() -> None:
    points = (100 + np.random.default_rng(3).normal(size=(12, 7))).astype(np.float32)
    ids, distances = one_nearest(points, points)
    np.testing.assert_array_equal(ids, np.arange(12))
    assert not distances.any()
    _, distances = k_nearest(points, points, 2)
    assert not distances[:, 0].any()
    assert distances[:, 1].all()


def test_a_range_leaves_the_other_points_alone() -> None:
    rng = np.random.default_rng(4)
    points, centres = rng.normal(size=(6, 2)).astype(np.float32), rng.normal(size=(3, 2)).astype(np.float32)
    ids, distances = one_nearest(points, centres, 2, 4)
    assert (ids[[0, 1, 4, 5]] == -1).all()
    assert (distances[[0, 1, 4, 5]] == -1).all()
    np.testing.assert_array_equal(ids[2:4], brute(points, centres).argmin(axis=1)[2:4])


def test_a_tile_updates_the_best_and_the_runner_up() -> None:
    values = np.array([[3, 1], [1, 2], [2, 1]], np.float32)
    best, second = np.array([2, 5], np.float32), np.array([9, 9], np.float32)
    ids = np.array([0, 1], np.int32)
    update_nearest(4, np.zeros(7, np.float32), -values / 2, best, second, ids)
    assert best.tolist() == [1, 1]
    assert second.tolist() == [2, 1]
    assert ids.tolist() == [5, 4]


def test_an_ascending_list_takes_in_what_is_smaller_than_its_last() -> None:
    values, indices = np.array([1, 3, 5], np.float32), np.array([10, 30, 50], np.int32)
    for value, index in ((5.0, 99), (4.0, 40), (0.0, 0)):
        insert_smaller(np.float32(value), index, values, indices)
    assert values.tolist() == [0, 1, 3]
    assert indices.tolist() == [0, 10, 30]


@pytest.mark.parametrize("precision", [0.3, 1e4])
def test_the_log_sum_runs_over_all_centres(precision: float) -> None:
    rng = np.random.default_rng(5)
    points, centres = rng.normal(size=(POINTS + 3, 3)), rng.normal(size=(9, 3))
    out = np.empty(len(points))
    log_sum_joint(0, len(points), points, centres, norms(centres), precision, out)
    expected = logsumexp(-precision * reference.squared_distances(points, centres), axis=1)
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-14 * precision)


def test_many_centres_are_summed_in_smaller_blocks() -> None:
    rng = np.random.default_rng(6)
    n_centres = (1 << 19) // POINTS + 1
    points, centres = rng.normal(size=(3, 2)), rng.normal(size=(n_centres, 2))
    out = np.empty(3)
    log_sum_joint(0, 3, points, centres, norms(centres), 2.0, out)
    np.testing.assert_allclose(out, logsumexp(-2.0 * brute(points, centres), axis=1), rtol=1e-12)
