from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcgmm.algorithm import reference
from vcgmm.kernels.nearest.lloyd import (
    ROWS,
    STEP_LENGTH,
    assign_blocks,
    assign_rows,
    cluster_cells,
    lay_in_blocks,
    mean_of_groups,
    spread_rows,
)
from vcgmm.kernels.nearest.nearest_tiles import padded
from vcgmm.kernels.parts.selection import LANES
from vcgmm.kernels.parts.shorts import FEATURES, LARGEST, PRODUCTS, may_be_short

pytestmark = pytest.mark.interpreted


# ---------------------------------------------------------------------------------------------------------- blocks


def blocks_of(rows: np.ndarray, n: int) -> np.ndarray:
    """The first n rows in blocks, in memory that held something else."""
    blocks = np.full((-(-n // LANES), rows.shape[1], LANES), np.nan, rows.dtype)
    lay_in_blocks(n, rows, blocks)
    return blocks


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, LANES - 1, LANES, LANES + 1, 3 * LANES])
def test_blocks_hold_the_first_rows_transposed_and_zeros(n: int, dtype: type) -> None:
    rows = np.random.default_rng(0).normal(size=(3 * LANES + 2, 3)).astype(dtype)
    laid = blocks_of(rows, n).transpose(0, 2, 1).reshape(-1, 3)  # row after row again
    np.testing.assert_array_equal(laid[:n], rows[:n])
    assert not laid[n:].any()


def test_rows_may_end_where_the_last_block_does_not() -> None:
    rows = np.random.default_rng(1).normal(size=(LANES + 3, 2))
    assert not blocks_of(rows, LANES + 3)[1, :, 3:].any()


# ------------------------------------------------------------------------------------------------------ assignment


def assign(rows: np.ndarray, n: int, centres: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nearest centres of the first n rows, squared distances, squared norms of the centres; else -1."""
    dtype, k = rows.dtype, len(centres)
    ids, distances = np.full(n + 2, -1, np.int32), np.full(n + 2, -1, dtype)
    laid = np.full((padded(k), rows.shape[1]), 3.0, dtype)  # what lies in rows that are no centres does not matter
    laid[:k] = centres
    centre_squares = np.empty(len(laid), dtype)
    assign_blocks(
        n, blocks_of(rows, n), (rows**2).sum(axis=1), k, laid, centre_squares, np.empty(LANES, dtype),
        np.empty(LANES, np.int32), ids, distances,
    )  # fmt: skip
    assert (centre_squares[k:] == np.inf).all()
    return ids, distances, centre_squares[:k]


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 1e-4), (np.float64, 1e-12)])
@pytest.mark.parametrize("n", [1, 5, LANES, LANES + 5, 2 * LANES])
@pytest.mark.parametrize("k", [1, 2, 7])
def test_every_row_goes_to_the_nearest_centre(k: int, n: int, dtype: type, rtol: float) -> None:
    rng = np.random.default_rng(0)
    rows, centres = rng.normal(size=(2 * LANES, 3)).astype(dtype), rng.normal(size=(k, 3)).astype(dtype)
    ids, distances, centre_squares = assign(rows, n, centres)
    true = reference.squared_distances(rows[:n].astype(np.float64), centres.astype(np.float64))
    np.testing.assert_array_equal(ids[:n], true.argmin(axis=1))
    np.testing.assert_allclose(distances[:n], true.min(axis=1), rtol=rtol, atol=rtol)
    np.testing.assert_allclose(centre_squares, (centres**2).sum(axis=1), rtol=rtol)
    assert (ids[n:] == -1).all()
    assert (distances[n:] == -1).all()


def test_of_equal_centres_the_first_is_taken() -> None:
    rows = np.random.default_rng(2).integers(-5, 5, (LANES + 9, 2)).astype(np.float32)  # exact, and ties abound
    centres = np.array([[9, 9], [1, 1], [1, 1], [-2, 0], [9, 9]], np.float32)
    ids, distances, _ = assign(rows, len(rows), centres)
    true = reference.squared_distances(rows, centres)
    np.testing.assert_array_equal(ids[: len(rows)], true.argmin(axis=1))
    np.testing.assert_array_equal(distances[: len(rows)], true.min(axis=1))
    assert set(ids[: len(rows)]) <= {0, 1, 3}


def test_rounding_makes_no_distance_negative() -> None:
    rows = (50 + np.random.default_rng(1).normal(size=(30, 3))).astype(np.float32)
    _, distances, _ = assign(rows, 30, rows.copy())
    assert distances[:30].min() >= 0.0


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 1e-4), (np.float64, 1e-12)])
@pytest.mark.parametrize("n", [1, LANES + 1, ROWS, 2 * ROWS + 5])
def test_all_rows_go_to_the_nearest_centre_run_by_run(n: int, dtype: type, rtol: float) -> None:
    rng = np.random.default_rng(0)
    rows, centres = rng.normal(size=(n, 3)).astype(dtype), rng.normal(size=(7, 3)).astype(dtype)
    labels, distances = np.full(n, -1, np.int32), np.full(n, -1, dtype)
    n_runs = -(-n // ROWS)
    for run in range(n_runs):
        assign_rows(run, run + 1, rows, centres, None, labels, distances)
        assert (labels[(run + 1) * ROWS :] == -1).all()
    true = reference.squared_distances(rows.astype(np.float64), centres.astype(np.float64))
    np.testing.assert_array_equal(labels, true.argmin(axis=1))
    np.testing.assert_allclose(distances, true.min(axis=1), rtol=rtol, atol=rtol)
    together = np.empty_like(labels), np.empty_like(distances)
    assign_rows(0, n_runs, rows, centres, None, *together)
    np.testing.assert_array_equal(together[0], labels)
    np.testing.assert_array_equal(together[1], distances)


# ---------------------------------------------------------------------------------------------------- whole steps


def nearest_in_steps(rows: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """The nearest of centres, all of them rounded to steps of which the longest row has LARGEST."""
    steps = rows.dtype.type(LARGEST / np.sqrt((rows**2).sum(axis=1).max()))
    near: np.ndarray = reference.squared_distances(np.rint(steps * rows), np.rint(steps * centres)).argmin(axis=1)
    return near


def test_wide_rows_go_to_the_nearest_centre_in_steps_of_their_run_or_as_floats() -> None:
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(3 * ROWS + 5, FEATURES + 1)).astype(np.float32)
    rows[ROWS + 7] *= 1000.0  # in steps of such a length the others of its run are nowhere
    centres = np.vstack([rows[:PRODUCTS], rng.normal(size=(3, FEATURES + 1))]).astype(np.float32)
    labels, distances = np.full(len(rows), -1, np.int32), np.full(len(rows), -1, np.float32)
    assign_rows(0, 4, rows, centres, True, labels, distances)
    true = reference.squared_distances(rows.astype(np.float64), centres.astype(np.float64))
    for run in range(4):
        here = slice(run * ROWS, (run + 1) * ROWS)
        expected = true[here].argmin(axis=1) if run == 1 else nearest_in_steps(rows[here], centres)
        np.testing.assert_array_equal(labels[here], expected)
    np.testing.assert_allclose(distances, true[np.arange(len(rows)), labels], rtol=1e-4)
    assert not distances[:PRODUCTS].any()  # which are centres themselves, and no rounding
    assert (distances <= 1.01 * true.min(axis=1)).all()


# --------------------------------------------------------------------------------------------------------- samples


@given(st.integers(1, 30), st.floats(0.0, 1.0, exclude_max=True), st.data())
def test_a_sample_takes_a_row_of_every_run_and_the_others_follow(
    size: int, jitter: float, data: st.DataObject
) -> None:
    n = data.draw(st.integers(1, size))
    order = 100 + np.arange(size + 4)[::-1]
    out = np.empty(size, np.int64)
    spread_rows(order, 2, 2 + size, n, jitter, out)
    np.testing.assert_array_equal(np.sort(out), np.sort(order[2 : 2 + size]))
    places = order[2] - out  # back to 0, 1, 2 …
    runs = size * np.arange(n + 1) // n
    assert (runs[:-1] <= places[:n]).all()
    assert (places[:n] < runs[1:]).all()
    assert (np.diff(places[n:]) > 0).all()


# ----------------------------------------------------------------------------------------------------------- cells


@pytest.fixture
def cells() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Points, weights, and two cells of 40 and 25 rows with an empty one between them."""
    rng = np.random.default_rng(2)
    points = rng.normal(size=(65, 2)).astype(np.float32)
    return points, rng.uniform(0.5, 2.0, 65), rng.permutation(65), np.array([0, 40, 40, 65])


def cluster(
    cells: tuple[np.ndarray, ...],
    wanted: list[int],
    sample_per_centre: int,
    n_steps: int,
    *,
    label: bool = True,
    turn: int = 1,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Centres, labels, distances and seeds, which are the first rows of every cell; `turn` -1: last cell first."""
    points, weights, order, start = cells
    seeds = np.concatenate([order[low : low + k] for low, k in zip(start[:-1], wanted, strict=True)])
    centre_start = np.concatenate([[0], np.cumsum(wanted)])
    centres = np.full((len(seeds), points.shape[1]), np.nan)
    labels, distances = np.full(len(points), -1, np.int32), np.empty(len(points), points.dtype)
    cluster_cells(
        0, len(wanted), np.arange(len(wanted))[::turn].copy(), points, weights, order, start, seeds, centre_start,
        sample_per_centre, n_steps, label, may_be_short(points.shape[1]), centres, labels, distances,
    )  # fmt: skip
    return centres, labels, distances, seeds


def test_no_lloyd_step_leaves_the_seeds_as_centres(cells: tuple[np.ndarray, ...]) -> None:
    centres, _, _, seeds = cluster(cells, [4, 0, 3], 100, 0)
    np.testing.assert_allclose(centres, cells[0][seeds], atol=1e-6)


def test_rows_get_the_nearest_centre_of_their_own_cell(cells: tuple[np.ndarray, ...]) -> None:
    points, _, order, _ = cells
    centres, labels, distances, _ = cluster(cells, [4, 0, 3], 5, 3)
    for members, own in ((order[:40], np.arange(4)), (order[40:], np.arange(4, 7))):
        true = reference.squared_distances(points[members], centres[own])
        assert np.isin(labels[members], own).all()
        np.testing.assert_allclose(
            true[np.arange(len(members)), labels[members] - own[0]], true.min(axis=1), atol=1e-5
        )
        np.testing.assert_allclose(distances[members], true.min(axis=1), atol=1e-5)


@pytest.mark.parametrize("size", [ROWS + 1, 2 * ROWS + 77])
def test_rows_of_large_cells_are_labelled_piece_by_piece(size: int) -> None:
    rng = np.random.default_rng(8)
    points, order = rng.normal(size=(size + 30, 3)).astype(np.float32), rng.permutation(size + 30)
    cells = points, np.ones(size + 30), order, np.array([0, 30, size + 30])
    for sample_per_centre in (2, size):  # of a few rows, or of all
        centres, labels, distances, _ = cluster(cells, [3, 5], sample_per_centre, 2)
        for members, own in ((order[:30], np.arange(3)), (order[30:], np.arange(3, 8))):
            true = reference.squared_distances(points[members], centres[own])
            found = true[np.arange(len(members)), labels[members] - own[0]]
            np.testing.assert_allclose(found, true.min(axis=1), atol=1e-5)
            np.testing.assert_allclose(distances[members], true.min(axis=1), atol=1e-5)


def test_steps_are_lloyd_steps_and_all_but_the_last_go_beyond_the_mean(cells: tuple[np.ndarray, ...]) -> None:
    points, weights, order, _ = cells
    rows, masses = points[order[40:]].astype(np.float64), weights[order[40:]]
    centres = points[order[40:43]].astype(np.float64)
    for length in (STEP_LENGTH, STEP_LENGTH, 1.0):
        labels = reference.squared_distances(rows, centres).argmin(axis=1)
        means = [np.average(rows[labels == c], axis=0, weights=masses[labels == c]) for c in range(3)]
        centres += length * (np.array(means) - centres)
    np.testing.assert_allclose(cluster(cells, [4, 0, 3], 100, 3)[0][4:], centres, atol=1e-5)


def test_lloyd_steps_lower_the_error(cells: tuple[np.ndarray, ...]) -> None:
    errors = [float(np.dot(cells[1], cluster(cells, [4, 0, 3], 100, steps)[2])) for steps in (0, 1, 8)]
    assert errors[2] < errors[1] < errors[0]


@pytest.mark.parametrize("turn", [1, -1])
def test_centres_depend_neither_on_the_order_of_cells_nor_on_labels(
    cells: tuple[np.ndarray, ...], turn: int
) -> None:
    centres, labels, distances, _ = cluster(cells, [4, 0, 3], 5, 3)
    others = cluster(cells, [4, 0, 3], 5, 3, turn=turn)
    for one, other in zip((centres, labels, distances), others[:3], strict=True):
        np.testing.assert_array_equal(one, other)
    alone, none, _, _ = cluster(cells, [4, 0, 3], 5, 3, label=False, turn=turn)
    np.testing.assert_array_equal(alone, centres)
    assert (none == -1).all()


def test_lloyd_centres_are_the_weighted_means_of_their_rows(cells: tuple[np.ndarray, ...]) -> None:
    points, weights, _, _ = cells
    centres, labels, _, _ = cluster(cells, [4, 0, 3], 100, 25)
    for c in range(7):
        mine = labels == c
        np.testing.assert_allclose(centres[c], np.average(points[mine], axis=0, weights=weights[mine]), atol=1e-5)


def test_a_centre_that_loses_its_rows_stays() -> None:
    points = np.array([[0.0], [1.0], [10.0]], np.float32)
    centres, labels, distances = np.empty((3, 1)), np.empty(3, np.int32), np.empty(3, np.float32)
    cluster_cells(
        0, 1, np.zeros(1, np.int64), points, np.ones(3), np.arange(3), np.array([0, 3]), np.array([0, 0, 2]),
        np.array([0, 3]), 10, 1, True, None, centres, labels, distances,
    )  # fmt: skip
    np.testing.assert_allclose(centres[:, 0], [0.5, 0.0, 10.0])
    assert labels.tolist() == [1, 0, 2]


@pytest.fixture
def wide_cells() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Points in many dimensions, weights, and cells of 200 and 140 rows; the second far from the origin."""
    rng = np.random.default_rng(6)
    points = rng.normal(size=(340, FEATURES)).astype(np.float32)
    order = rng.permutation(340)
    points[order[200:]] += 30.0
    return points, rng.uniform(0.5, 2.0, 340), order, np.array([0, 200, 340])


@pytest.mark.parametrize("far", [1.0, 1e5], ids=["shorts", "floats"])
def test_lloyd_steps_of_wide_rows_are_lloyd_steps_up_to_near_ties(
    wide_cells: tuple[np.ndarray, ...], far: float
) -> None:
    points, weights, order, _ = wide_cells
    points[order[199]] *= far  # a seed of no cell, with one row in the end
    wanted, n_steps = [20, 16], PRODUCTS // 16
    centres, labels, distances, seeds = cluster(wide_cells, wanted, 100, n_steps)
    for low, high, first, last in ((0, 200, 0, 20), (200, 340, 20, 36)):
        rows, masses = points[order[low:high]].astype(np.float64), weights[order[low:high]]
        expected = points[seeds[first:last]].astype(np.float64)
        for step in range(n_steps):
            near = reference.squared_distances(rows, expected).argmin(axis=1)
            for c in np.unique(near):
                mean = np.average(rows[near == c], axis=0, weights=masses[near == c])
                expected[c] += (STEP_LENGTH if step < n_steps - 1 else 1.0) * (mean - expected[c])
        true = reference.squared_distances(rows, centres[first:last])
        best = reference.squared_distances(rows, expected).min(axis=1)
        assert masses @ true.min(axis=1) == pytest.approx(masses @ best, rel=0.02)
        mine = labels[order[low:high]] - first
        direct = true[np.arange(len(rows)), mine]
        assert (direct <= 1.02 * true.min(axis=1) + 1e-4).all()
        np.testing.assert_allclose(distances[order[low:high]], direct, rtol=1e-3, atol=1e-3)


def test_rows_beyond_the_sample_may_be_longer_than_those_in_it(wide_cells: tuple[np.ndarray, ...]) -> None:
    points, _, order, _ = wide_cells
    sampled, _, _, _ = cluster(wide_cells, [PRODUCTS, 1], 1, 2)
    spread = np.empty(200, np.int64)
    spread_rows(order, 0, 200, PRODUCTS, 0.5, spread)
    points[spread[-1]] *= 500.0  # the last of those that are not in the sample
    centres, labels, distances, _ = cluster(wide_cells, [PRODUCTS, 1], 1, 2)
    np.testing.assert_array_equal(centres[:PRODUCTS], sampled[:PRODUCTS])
    true = reference.squared_distances(points[order[:200]].astype(np.float64), centres[:PRODUCTS])
    direct = true[np.arange(200), labels[order[:200]]]
    np.testing.assert_allclose(direct, true.min(axis=1), rtol=1e-2, atol=1e-4)
    np.testing.assert_allclose(distances[order[:200]], direct, rtol=1e-3, atol=1e-3)


def test_a_cell_is_labelled_in_the_same_pieces_whatever_others_there_are() -> None:
    rng = np.random.default_rng(9)
    sizes, wanted = [3 * ROWS, 3 * ROWS + 200], [PRODUCTS, 2 * PRODUCTS + 4]
    points = rng.normal(size=(sum(sizes), FEATURES)) * np.exp(rng.normal(size=(sum(sizes), 1)))  # far ones
    cells = points.astype(np.float32), np.ones(sum(sizes)), rng.permutation(sum(sizes)), np.cumsum([0, *sizes])
    together = cluster(cells, wanted, 6, 2)
    order, start = cells[2:]
    for i, first in enumerate((0, wanted[0])):
        mine = order[start[i] : start[i + 1]]
        centres, labels, distances, _ = cluster(
            (*cells[:2], mine, np.array([0, len(mine)])), wanted[i : i + 1], 6, 2
        )
        np.testing.assert_array_equal(centres, together[0][first : first + wanted[i]])
        np.testing.assert_array_equal(labels[mine], together[1][mine] - first)
        np.testing.assert_array_equal(distances[mine], together[2][mine])


# ---------------------------------------------------------------------------------------------------------- groups


@pytest.fixture
def groups() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Points, weights, and groups of 12, 1, 0 and 7 of their rows."""
    rng = np.random.default_rng(3)
    points = 100 + rng.normal(size=(25, 3))
    return points, rng.uniform(0.5, 2.0, 25), rng.permutation(25)[:20], np.array([0, 12, 13, 13, 20])


def mean_groups(groups: tuple[np.ndarray, ...], first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
    means = np.full((len(groups[3]) - 1, groups[0].shape[1]), np.nan)
    distances = np.full(len(groups[0]), np.nan, groups[0].dtype)
    mean_of_groups(first, last, *groups, means, distances)
    return means, distances


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 1e-6), (np.float64, 1e-12)])
def test_groups_have_the_weighted_means_of_their_rows(
    groups: tuple[np.ndarray, ...], dtype: type, rtol: float
) -> None:
    points, weights, order, start = groups[0].astype(dtype), *groups[1:]
    means, distances = mean_groups((points, weights, order, start), 0, 4)
    for g in (0, 1, 3):
        mine = order[start[g] : start[g + 1]]
        wide = points[mine].astype(np.float64)
        np.testing.assert_allclose(means[g], np.average(wide, axis=0, weights=weights[mine]), rtol=1e-14)
        direct = ((wide - means[g]) ** 2).sum(axis=1)
        np.testing.assert_allclose(distances[mine], direct, rtol=rtol, atol=1e-20)
    assert not means[2].any()
    assert np.isnan(np.delete(distances, order)).all()  # they belong to no group


def test_groups_are_left_alone_that_others_look_at(groups: tuple[np.ndarray, ...]) -> None:
    together = mean_groups(groups, 0, 4)
    means, distances = mean_groups(groups, 1, 3)
    assert np.isnan(means[[0, 3]]).all()
    np.testing.assert_array_equal(means[1:3], together[0][1:3])
    assert np.flatnonzero(np.isfinite(distances)).tolist() == [groups[2][12]]


def test_a_group_without_weight_has_its_mean_at_the_origin() -> None:
    points = np.array([[3.0, 4.0], [1.0, 0.0]])
    means, distances = mean_groups((points, np.zeros(2), np.arange(2), np.array([0, 2])), 0, 1)
    assert means.tolist() == [[0.0, 0.0]]
    assert distances.tolist() == [25.0, 1.0]
