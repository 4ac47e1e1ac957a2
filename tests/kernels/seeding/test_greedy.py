from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcgmm.algorithm import reference
from vcgmm.kernels.nearest.lloyd import lay_in_blocks, spread_rows
from vcgmm.kernels.nearest.nearest_tiles import HEIGHT
from vcgmm.kernels.parts.selection import LANES
from vcgmm.kernels.parts.vectors import lanes
from vcgmm.kernels.seeding.greedy import (
    BATCH_SHARE,
    LARGEST_BATCH,
    distances_and_gains,
    draw_index,
    gain_of,
    seed_cells,
    take_best,
)

pytestmark = pytest.mark.interpreted


# ----------------------------------------------------------------------------------------------------------- draws


@given(
    st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0]), min_size=1, max_size=12).filter(any),
    st.sampled_from([0.0, 0.125, 0.25, 0.5, 0.75]) | st.floats(0.0, 1.0, exclude_max=True),
)
def test_a_draw_inverts_the_running_sum_and_never_meets_a_zero(masses: list[float], uniform: float) -> None:
    running = np.cumsum([*masses, 5.0])
    n = len(masses)
    place = draw_index(running, n, uniform)
    assert masses[place] > 0
    target = uniform * running[n - 1]
    if target < running[n - 1]:
        assert place == np.searchsorted(running[:n], target, side="right")


@pytest.mark.parametrize("uniform", [1.0 - 2.0**-53, 1.0])
def test_a_draw_that_rounding_takes_to_the_end_meets_the_last_entry_that_has_mass(uniform: float) -> None:
    assert draw_index(np.array([1.0, 3.0, 3.0, 3.0]), 4, uniform) == 1
    assert draw_index(np.array([0.0, 3.0, 3.0]), 3, uniform) == 1
    assert draw_index(np.array([3.0, 3.0]), 2, uniform) == 0


def test_draws_follow_the_masses() -> None:
    masses = np.array([3.0, 0.0, 1.0, 4.0])
    running = np.cumsum(masses)
    places = [draw_index(running, 4, (i + 0.5) / 800) for i in range(800)]
    assert np.bincount(places, minlength=4).tolist() == [300, 0, 100, 400]


# ------------------------------------------------------------------------------------------------------- distances


def surveyed(
    rows: np.ndarray, picks: list[int], masses: np.ndarray | None = None, distances: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Distances of all rows to those picked, and what each of these would save."""
    n, dtype, m = len(rows), rows.dtype, -(-len(picks) // HEIGHT) * HEIGHT
    room = -(-n // LANES) * LANES
    squares, at, costs = np.zeros(room, dtype), np.zeros(room, dtype), np.zeros(room, dtype)
    squares[:n] = (rows**2).sum(axis=1, dtype=dtype)
    if masses is not None and distances is not None:
        at[:n], costs[:n] = masses, distances
    blocks = np.full((room // LANES + 1, rows.shape[1], LANES), np.nan, dtype)  # whatever was there before
    lay_in_blocks(n, rows, blocks)
    out, gains = np.full((m, room), np.nan, dtype), np.full(len(picks), np.nan, dtype)
    distances_and_gains(
        n, len(picks), rows, blocks, squares, at, costs, np.array([*picks, -1]),
        np.full((m + 1, rows.shape[1]), np.nan, dtype), np.full(m + 1, np.nan, dtype), out,
        np.full((m + 1, lanes(dtype.itemsize)), np.nan, dtype), np.full(m + 1, -1), gains,
    )  # fmt: skip
    return out[: len(picks), :n], gains


def distances_of(rows: np.ndarray, picks: list[int]) -> np.ndarray:
    return surveyed(rows, picks)[0]


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 1e-4), (np.float64, 1e-12)])
@pytest.mark.parametrize("n_features", [1, 3, 40])
@pytest.mark.parametrize("n", [23, LANES, 2 * LANES + 1])
def test_candidates_have_their_distances_to_all_rows(n: int, n_features: int, dtype: type, rtol: float) -> None:
    rows = np.random.default_rng(0).normal(size=(n, n_features)).astype(dtype)
    picks = [4, 0, n - 1, 4, 7]
    expected = reference.squared_distances(rows.astype(np.float64), rows.astype(np.float64))[picks]
    np.testing.assert_allclose(distances_of(rows, picks), expected, rtol=rtol, atol=1e-3 * rtol)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(st.sampled_from([0.0, 1.0, 1e3, 1e6]), st.integers(1, 40), st.integers(0, 1000))
def test_equal_rows_have_distance_zero_wherever_they_are(
    dtype: type, offset: float, n_features: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    rows = (offset * rng.normal(size=n_features) + rng.normal(size=(5, n_features))).astype(dtype)
    rows = rows[rng.integers(0, 5, 17)]
    picks = [0, 3, 9, 16, 9]
    distances = distances_of(rows, picks)
    assert (distances >= 0).all()
    np.testing.assert_array_equal(distances == 0, (rows[picks][:, None] == rows).all(axis=2))


def test_near_rows_far_from_the_origin_keep_their_digits() -> None:
    rng = np.random.default_rng(1)
    rows = np.repeat(rng.normal(size=(4, 6)) * 1000, 5, axis=0)
    rows = (rows + rng.normal(size=rows.shape)).astype(np.float32)
    expected = reference.squared_distances(rows.astype(np.float64), rows.astype(np.float64))
    np.testing.assert_allclose(distances_of(rows, list(range(20))), expected, rtol=1e-4)


# ----------------------------------------------------------------------------------------------------------- gains


def naive_gains(masses: np.ndarray, distances: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    return np.maximum(distances - candidates, 0.0) @ masses


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 1e-4), (np.float64, 1e-12)])
@given(st.integers(1, 2 * LANES + 3), st.integers(1, 9), st.sampled_from([0.0, 1e3]), st.integers(0, 1000))
def test_candidates_come_with_what_they_save(
    dtype: type, rtol: float, n: int, n_picks: int, offset: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    rows = (offset + rng.normal(size=(n, 3))).astype(dtype)
    rows[n // 2 :] = rows[: n - n // 2]  # equal ones, at whose distance rounding would be most of it
    picks = rng.integers(0, n, n_picks).tolist()
    masses, distances = rng.random(n).astype(dtype), (8 * rng.random(n)).astype(dtype)
    exact = reference.squared_distances(rows.astype(np.float64), rows.astype(np.float64))[picks]
    gains = surveyed(rows, picks, masses, distances)[1]
    expected = naive_gains(masses.astype(np.float64), distances.astype(np.float64), exact)
    np.testing.assert_allclose(gains, expected, rtol=rtol, atol=1e-3 * rtol)


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 1e-5), (np.float64, 1e-13)])
def test_a_gain_is_what_a_candidate_takes_off_the_error(dtype: type, rtol: float) -> None:
    rng = np.random.default_rng(2)
    masses, distances, candidates = (rng.random(shape).astype(dtype) for shape in (12, 12, (3, 12)))
    for b in range(3):
        with_it = np.minimum(distances[:10], candidates[b, :10])
        expected = masses[:10] @ distances[:10] - masses[:10] @ with_it
        assert gain_of(10, masses, distances, candidates, b) == pytest.approx(expected, rel=rtol)


@given(st.integers(1, 9), st.integers(1, 8), st.integers(1, 6), st.integers(0, 10_000))
def test_the_best_are_those_that_computing_every_gain_anew_would_take(
    n: int, n_candidates: int, largest: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)  # small integers: sums are exact, and ties abound
    masses = rng.integers(0, 3, n).astype(np.float32)
    distances = rng.integers(0, largest + 1, n).astype(np.float32)
    candidates = rng.integers(0, largest + 1, (n_candidates, n)).astype(np.float32)
    gains, known_at = np.full(n_candidates, np.inf, np.float32), np.full(n_candidates, -1)
    for pick in range(n_candidates + 1):
        expected = naive_gains(masses, distances, candidates)
        best = take_best(pick, n, n_candidates, masses, distances, candidates, gains, known_at)
        if expected.max() == 0:
            assert best == -1
            return
        assert best == expected.argmax()
        assert gains[best] == expected[best]
        np.minimum(distances, candidates[best], out=distances)
        gains[best] = 0


def test_only_gains_that_still_lead_are_computed_anew() -> None:
    masses, distances = np.ones(3), np.array([10.0, 10.0, 10.0])
    candidates = np.array([[0.0, 10.0, 10.0], [1.0, 10.0, 10.0], [10.0, 3.0, 10.0], [10.0, 10.0, 9.0]])
    gains, known_at = np.full(4, np.inf), np.full(4, -1)
    assert take_best(0, 3, 4, masses, distances, candidates, gains, known_at) == 0
    assert known_at.tolist() == [0, 0, 0, 0]
    assert gains.tolist() == [10.0, 9.0, 7.0, 1.0]
    distances[0], gains[0] = 0.0, 0.0
    assert take_best(1, 3, 4, masses, distances, candidates, gains, known_at) == 2
    assert known_at.tolist() == [0, 1, 1, 0]
    assert gains.tolist() == [0.0, 0.0, 7.0, 1.0]


# ----------------------------------------------------------------------------------------------------------- cells


@pytest.fixture
def cells() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Points, weights, and two cells of 40 and 25 rows with an empty one between them."""
    rng = np.random.default_rng(2)
    points = rng.normal(size=(65, 2)).astype(np.float32)
    return points, rng.uniform(0.5, 2.0, 65), rng.permutation(65), np.array([0, 40, 40, 65])


def draw_seeds(
    points: np.ndarray,
    weights: np.ndarray,
    order: np.ndarray,
    start: np.ndarray,
    wanted: list[int],
    sample_per_seed: int = 100,
    n_trials: int = 1,
    cuts: tuple[int, ...] = (),
    uniforms: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Seeds and potentials; `cuts` part the cells into calls of their own."""
    seed_start = np.concatenate([[0], np.cumsum(wanted)])
    if uniforms is None:
        uniforms = np.random.default_rng(0).random((seed_start[-1], n_trials))
    seeds, potentials = np.full(seed_start[-1], -7, np.int64), np.full(seed_start[-1], np.nan)
    cells = np.arange(len(wanted))[::-1].copy()
    for first, last in itertools.pairwise([0, *cuts, len(wanted)]):
        seed_cells(
            first, last, cells, points, weights, order, start, seed_start, sample_per_seed, uniforms, seeds,
            potentials,
        )  # fmt: skip
    return seeds, potentials


def draw_alone(
    points: np.ndarray, weights: np.ndarray, uniforms: np.ndarray, sample_per_seed: int = 100
) -> tuple[np.ndarray, np.ndarray]:
    """Seeds and potentials of one cell of all rows."""
    n = len(points)
    bounds = np.array([0, n])
    return draw_seeds(points, weights, np.arange(n), bounds, [len(uniforms)], sample_per_seed, uniforms=uniforms)


def inverted(masses: np.ndarray, uniform: float) -> int:
    return int(np.searchsorted(np.cumsum(masses), uniform * masses.sum(), side="right"))


def naive_seeds(points: np.ndarray, weights: np.ndarray, uniforms: np.ndarray) -> list[int]:
    """Greedy D^2 sampling in batches, with every gain computed anew for every seed."""
    between = reference.squared_distances(points, points)
    seeds = [inverted(weights, uniforms[0, 0])]
    near = between[seeds[0]]
    while len(seeds) < len(uniforms):
        batch = min(len(uniforms) - len(seeds), LARGEST_BATCH, max(1, len(seeds) // BATCH_SHARE))
        draws = [inverted(weights * near, u) for u in uniforms[len(seeds) : len(seeds) + batch].ravel()]
        for _ in range(batch):
            gains = naive_gains(weights, near, between[draws])
            if gains.max() > 0:
                seeds.append(draws[gains.argmax()])
                near = np.minimum(near, between[seeds[-1]])
    return seeds


@pytest.mark.parametrize("n_trials", [1, 3])
def test_a_cell_draws_its_own_rows_and_none_twice(cells: tuple[np.ndarray, ...], n_trials: int) -> None:
    points, weights, order, start = cells
    seeds, _ = draw_seeds(points, weights, order, start, [30, 0, 25], n_trials=n_trials)
    assert set(seeds[:30]) <= set(order[:40])
    assert set(seeds[30:]) == set(order[40:])
    assert len(set(seeds)) == 55


@pytest.mark.parametrize("n_trials", [1, 3])
def test_potentials_are_the_error_of_the_seeds_so_far(cells: tuple[np.ndarray, ...], n_trials: int) -> None:
    points, weights, order, start = cells
    seeds, potentials = draw_seeds(points, weights, order, start, [18, 0, 14], n_trials=n_trials)
    for members, first, last in ((order[:40], 0, 18), (order[40:], 18, 32)):
        for k in range(first, last):
            error = reference.quantization_error(points[members], weights[members], points[seeds[first : k + 1]])
            assert potentials[k] == pytest.approx(error, rel=1e-4)
        assert (np.diff(potentials[first:last]) < 0).all()


def test_cells_do_not_depend_on_each_other(cells: tuple[np.ndarray, ...]) -> None:
    points, weights, order, start = cells
    together = draw_seeds(points, weights, order, start, [20, 0, 12], n_trials=3)
    for cuts in ((1,), (1, 2)):
        apart = draw_seeds(points, weights, order, start, [20, 0, 12], n_trials=3, cuts=cuts)
        np.testing.assert_array_equal(apart[0], together[0])
        np.testing.assert_array_equal(apart[1], together[1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sample_per_seed", [2, 100])
@pytest.mark.parametrize("sizes", [(150, 0, 3, 64, 70), (70, 64, 3, 0, 150)])
def test_what_a_cell_leaves_behind_is_nothing_to_the_next(
    sizes: tuple[int, ...], sample_per_seed: int, dtype: type
) -> None:
    rng = np.random.default_rng(11)
    start = np.concatenate([[0], np.cumsum(sizes)])
    points = (1e4 * rng.normal(size=(len(sizes), 1)) + rng.normal(size=(len(sizes), 5))).astype(dtype)
    points = np.repeat(points, sizes, axis=0) + rng.normal(size=(start[-1], 5)).astype(dtype)
    about = (points, rng.uniform(0.5, 2.0, start[-1]), rng.permutation(start[-1]), start)
    wanted = [min(size, 40) if size != 64 else 0 for size in sizes]
    together = draw_seeds(*about, wanted, sample_per_seed, 3)
    apart = draw_seeds(*about, wanted, sample_per_seed, 3, cuts=tuple(range(1, len(sizes))))
    np.testing.assert_array_equal(apart[0], together[0])
    np.testing.assert_array_equal(apart[1], together[1])


def test_cells_of_which_nobody_wants_seeds_have_none() -> None:
    points = np.random.default_rng(5).normal(size=(4, 2))
    seeds, _ = draw_seeds(points, np.ones(4), np.arange(4), np.array([0, 2, 4]), [0, 0])
    assert len(seeds) == 0


def test_an_empty_cell_has_no_seeds() -> None:
    points = np.random.default_rng(5).normal(size=(4, 2))
    seeds, potentials = draw_seeds(points, np.ones(4), np.arange(4), np.array([0, 0, 4]), [2, 3])
    assert seeds[:2].tolist() == [-1, -1]
    assert potentials[:2].tolist() == [0.0, 0.0]
    assert (seeds[2:] >= 0).all()


def test_a_cell_asked_for_more_seeds_than_it_has_rows_gives_all() -> None:
    points = np.random.default_rng(6).normal(size=(3, 2))
    seeds, potentials = draw_alone(points, np.ones(3), np.random.default_rng(0).random((5, 2)))
    assert sorted(seeds) == [-1, -1, 0, 1, 2]
    assert seeds[3:].tolist() == [-1, -1]
    assert potentials[2:].tolist() == [0.0, 0.0, 0.0]


# ------------------------------------------------------------------------------------------------- which are taken


@given(st.integers(0, 1000))
def test_one_draw_for_each_of_the_first_seeds_is_plain_d2_sampling(seed: int) -> None:
    rng = np.random.default_rng(seed)
    points, weights = rng.normal(size=(20, 2)), rng.uniform(0.5, 2.0, 20)
    uniforms = rng.random((2 * BATCH_SHARE, 1))
    seeds, _ = draw_alone(points, weights, uniforms)
    assert seeds[0] == inverted(weights, uniforms[0, 0])
    for c in range(1, len(seeds)):
        masses = reference.d2_probabilities(points, weights, points[seeds[:c]])
        assert seeds[c] == inverted(masses, uniforms[c, 0])


def test_of_several_draws_the_one_that_lowers_the_error_most_is_taken() -> None:
    rng = np.random.default_rng(4)
    points, weights = rng.normal(size=(30, 2)), rng.uniform(0.5, 2.0, 30)
    uniforms = rng.random((2 * BATCH_SHARE, 4))
    seeds, _ = draw_alone(points, weights, uniforms)
    masses, chosen = weights, []
    for c in range(len(uniforms)):
        draws = [inverted(masses, u) for u in uniforms[c, : 4 if c else 1]]
        errors = [reference.quantization_error(points, weights, points[[*chosen, draw]]) for draw in draws]
        chosen.append(draws[int(np.argmin(errors))])
        masses = weights * reference.squared_distances(points, points[chosen]).min(axis=1)
    assert seeds.tolist() == chosen


@given(st.integers(1, 4), st.integers(0, 1000))
def test_of_a_batch_those_are_taken_that_lower_the_error_most_in_turn(n_trials: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(50, 2 * LANES + 20))
    points, weights = rng.normal(size=(n, 3)), rng.uniform(0.5, 2.0, n)
    uniforms = rng.random((BATCH_SHARE * LARGEST_BATCH + 12, n_trials))
    seeds, potentials = draw_alone(points, weights, uniforms)
    assert seeds.tolist() == naive_seeds(points, weights, uniforms)
    assert potentials[-1] == pytest.approx(reference.quantization_error(points, weights, points[seeds]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n_groups", "n_features"), [(13, 2), (13, 64), (14, 48)])
@pytest.mark.parametrize("heavy", [1.0, 1e6])
def test_a_row_that_a_batch_draws_again_and_again_is_taken_once(
    heavy: float, n_groups: int, n_features: int, dtype: type
) -> None:
    rng = np.random.default_rng(7)
    n = 3 * n_groups
    points = rng.normal(size=(n, n_features))
    if heavy > 1:
        centres = np.repeat(rng.normal(size=(n_groups, n_features)), 3, axis=0)
        points = 3 * rng.permutation(centres) + rng.normal(size=(n, n_features))
    weights = np.where(np.arange(n) % 3 == 0, heavy, 1.0)
    for uniform in (0.15, 0.45, 0.55, 0.75):
        seeds, potentials = draw_alone(points.astype(dtype), weights, np.full((n, 3), uniform))
        assert len(set(seeds)) == n
        assert potentials[-1] == 0.0


# --------------------------------------------------------------------------------------------------------- samples


def test_potentials_of_a_sample_stand_for_the_whole_cell() -> None:
    points = np.repeat(np.random.default_rng(3).normal(size=(4, 2)), 10, axis=0).astype(np.float32)
    uniforms = np.random.default_rng(0).random((2, 1))
    everything = draw_alone(points, np.ones(40), uniforms)
    sampled = draw_alone(points, np.ones(40), uniforms, sample_per_seed=4)
    assert points[everything[0]].tolist() == points[sampled[0]].tolist()
    np.testing.assert_allclose(sampled[1], everything[1], rtol=1e-5)


def test_potentials_of_a_sample_are_its_error_by_its_share_of_the_weight() -> None:
    rng = np.random.default_rng(10)
    points, weights, uniforms = rng.normal(size=(100, 2)), rng.uniform(0.5, 2.0, 100), rng.random((20, 3))
    seeds, potentials = draw_alone(points, weights, uniforms, sample_per_seed=2)
    rows = np.empty(100, np.int64)
    spread_rows(np.arange(100), 0, 100, 40, uniforms[0, 0], rows)
    sample = rows[:40]
    factor = weights.sum() / weights[sample].sum()
    assert np.isin(seeds, sample).all()
    for k in range(20):
        error = reference.quantization_error(points[sample], weights[sample], points[seeds[: k + 1]])
        assert potentials[k] == pytest.approx(factor * error)


def test_seeds_come_from_a_sample_of_the_cell() -> None:
    rng = np.random.default_rng(8)
    seeds, potentials = draw_alone(
        rng.normal(size=(90, 2)), rng.uniform(0.5, 2.0, 90), rng.random((9, 2)), sample_per_seed=1
    )
    assert sorted(seed // 10 for seed in seeds) == list(range(9))  # one row of every tenth
    assert potentials[-1] == 0.0


# ------------------------------------------------------------------------------------------------------------ ends


@pytest.mark.parametrize("n_trials", [1, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_cell_of_equal_rows_runs_out_of_seeds(dtype: type, n_trials: int) -> None:
    points = np.repeat(np.array([[1.0, 2.0], [5.0, 2.0]], dtype), 5, axis=0)
    seeds, potentials = draw_alone(points, np.ones(10), np.random.default_rng(0).random((4, n_trials)))
    assert (seeds[:2] >= 0).all()
    assert points[seeds[0], 0] != points[seeds[1], 0]
    assert seeds[2:].tolist() == [-1, -1]
    assert potentials[1:].tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(st.sampled_from([1.0, 1e3, 1e6]), st.integers(1, 20), st.integers(1, 40), st.integers(0, 1000))
def test_every_different_row_becomes_a_seed_once_however_far_it_is(
    dtype: type, distance: float, n: int, n_features: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    points = (distance * rng.normal(size=n_features) + rng.normal(size=(n, n_features))).astype(dtype)
    points = points[np.concatenate([np.arange(n), rng.integers(0, n, 15)])]
    points[0] = 0.0  # the rows are looked at from here
    n_different = len(np.unique(points, axis=0))
    seeds, potentials = draw_alone(points, np.ones(n + 15), rng.random((n_different + 3, 3)))
    assert (seeds[:n_different] >= 0).all()
    assert len(np.unique(points[seeds[:n_different]], axis=0)) == n_different
    assert seeds[n_different:].tolist() == [-1] * 3
    assert potentials[n_different - 1 :].tolist() == [0.0] * 4


@pytest.mark.parametrize("n_features", [1, 40])
@pytest.mark.parametrize("distance", [1e5, 1e6])
@given(st.integers(0, 1000))
def test_rows_that_differ_in_their_last_bits_alone_become_seeds_too(
    distance: float, n_features: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    points = np.full((25, n_features), distance, np.float32)
    ulps = rng.permutation(200)[:25]
    points[:, -1] += ulps * np.spacing(np.float32(distance))
    points[0] = 0.0  # the rows are looked at from here
    seeds, _ = draw_alone(points, np.ones(25), rng.random((25, 3)))
    assert sorted(seeds) == list(range(25))


@given(st.lists(st.booleans(), min_size=2, max_size=25).filter(any), st.integers(0, 1000))
def test_rows_without_weight_are_never_drawn(heavy: list[bool], seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = len(heavy)
    weights = np.where(heavy, rng.uniform(0.5, 2.0, n), 0.0)
    seeds, potentials = draw_alone(rng.normal(size=(n, 2)).astype(np.float32), weights, rng.random((n, 3)))
    n_heavy = sum(heavy)
    assert sorted(seeds[:n_heavy]) == np.flatnonzero(heavy).tolist()
    assert (seeds[n_heavy:] == -1).all()
    assert (potentials[n_heavy - 1 :] == 0.0).all()


@pytest.mark.parametrize(("weight", "spread"), [(1e-60, 1.0), (1e-36, 1e-6), (1e-30, 1e-20)])
def test_a_cell_whose_masses_underflow_ends_with_the_seeds_it_has(weight: float, spread: float) -> None:
    rng = np.random.default_rng(9)
    points = (spread * rng.normal(size=(12, 2))).astype(np.float32)
    seeds, potentials = draw_alone(points, np.full(12, weight), rng.random((6, 2)))
    assert seeds[0] >= 0
    assert seeds[1:].tolist() == [-1] * 5
    assert (potentials >= 0).all()
    assert (potentials <= 1e-45).all()
    assert potentials[1:].tolist() == [0.0] * 5
