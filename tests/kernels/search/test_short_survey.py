from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcgmm.kernels.parts.selection import FEW, LANES, NARROW, key_indices, key_type
from vcgmm.kernels.parts.vectors import ROWS, VECTORS, lanes
from vcgmm.kernels.search.short_survey import LARGEST, are_in_reach, shorten_each, survey_in_steps

pytestmark = pytest.mark.interpreted

#: What no candidate costs.
DEAREST = np.float32(1.6e38)


@dataclass
class Found:
    slots: np.ndarray  # (points, FEW)
    near: np.ndarray  # (points, FEW), of as many as are asked for


def squares(rows: np.ndarray) -> np.ndarray:
    return (rows.astype(np.float64) ** 2).sum(axis=1).astype(np.float32)


def shortened(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    pairs, units = np.zeros((len(rows), (rows.shape[1] + 1) // 2), np.float32), np.empty(len(rows), np.float32)
    shorten_each(len(rows), rows, squares(rows), pairs, units)
    return pairs, units


def surveyed(points: np.ndarray, rows: np.ndarray, n_winners: int = FEW) -> Found:
    """Of candidates, as many as there are, for at most LANES points."""
    n, D = points.shape
    m = -(-len(rows) // ROWS) * ROWS
    room = -(-D // lanes(4)) * lanes(4)
    local, norms = np.zeros((LANES, room), np.float32), np.zeros(LANES, np.float32)
    local[:n, :D], norms[:n] = points, squares(points)
    filled, constants = np.zeros((m, D), np.float32), np.full(m, DEAREST)
    filled[: len(rows)], constants[: len(rows)] = rows, squares(rows)
    row_pairs, row_units = np.zeros((m, (D + 1) // 2), np.float32), np.zeros(m, np.float32)
    row_pairs[: len(rows)], row_units[: len(rows)] = shortened(rows)
    indices = key_indices(m, key_type(points.dtype, m))
    near, best = np.full((FEW, LANES), np.nan, np.float32), np.full(FEW * LANES, -1, indices.dtype)
    survey_in_steps(
        n, n_winners, local, filled, constants, norms, row_pairs, row_units, np.zeros(LANES, np.float32), indices,
        np.full(VECTORS * lanes(4) * (room + 1), np.nan, np.float32), near, best, local, np.arange(n), n // 2,
    )  # fmt: skip
    assert np.isnan(near[:, n:]).all()
    return Found(best.reshape(FEW, LANES)[:, :n].T & ~indices[-2], near[:, :n].T)


def distances(points: np.ndarray, rows: np.ndarray) -> np.ndarray:
    exact: np.ndarray = ((points[:, None].astype(np.float64) - rows) ** 2).sum(axis=2)
    return exact


# ------------------------------------------------------------------------------------------------------------ rows


@given(st.integers(0, 1 << 20), st.integers(1, 70), st.sampled_from([1e-9, 1.0, 1e14]))
def test_every_row_is_rounded_in_steps_of_its_own(seed: int, D: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    rows = (scale * rng.normal(size=(5, D)) * 10.0 ** rng.integers(-3, 3, size=(5, 1))).astype(np.float32)
    rows[3, 1:] = 0  # all in one number, which still fits into 16 bits
    pairs, units = shortened(rows)
    shorts = pairs.view(np.int16)
    assert (shorts[:, D:] == 0).all()
    np.testing.assert_allclose(units * np.float32(LARGEST), np.linalg.norm(rows.astype(float), axis=1), rtol=1e-6)
    assert np.abs(shorts[:, :D] - rows / units[:, None]).max() <= 0.51
    assert abs(int(shorts[3, 0])) == pytest.approx(LARGEST, abs=1)


def test_a_row_that_is_none_or_next_to_nothing_becomes_0() -> None:
    pairs, _ = shortened(np.array([[0, 0, 0], [1e-21, 0, 0]], np.float32))
    assert not pairs.any()


@pytest.mark.parametrize(("square", "answer"), [(0.9e37, True), (1.1e37, False), (np.inf, False), (np.nan, False)])
def test_rows_of_enormous_norms_are_out_of_reach(square: float, answer: bool) -> None:
    norms = np.array([0, 1e20, square, np.inf], np.float32)
    assert are_in_reach(3, norms) == answer
    assert are_in_reach(2, norms)


# ------------------------------------------------------------------------------------------------------ candidates


@given(
    seed=st.integers(0, 1 << 20),
    D=st.integers(1, 80),
    n=st.integers(1, LANES),
    m=st.integers(FEW, 3 * ROWS),
    n_winners=st.integers(1, FEW),
)
def test_the_least_are_found_to_rounding_and_their_costs_exactly(
    seed: int, D: int, n: int, m: int, n_winners: int
) -> None:
    rng = np.random.default_rng(seed)
    points, rows = (rng.normal(size=(k, D)).astype(np.float32) for k in (n, m))
    found, true = surveyed(points, rows, n_winners), distances(points, rows)
    taken = np.take_along_axis(true, found.slots, axis=1)
    # each of D roundings is off by half a step at most, in both rows, and a key leaves away the last of its bits
    norms = np.sqrt(squares(points))[:, None] * np.sqrt(squares(rows)).max()
    slack = 2 * norms * np.sqrt(D) / LARGEST + 2.0**-15 * true.max()
    assert (taken <= np.sort(true, axis=1)[:, :FEW] + slack).all()
    assert all(len(set(slots)) == FEW for slots in found.slots.tolist())
    np.testing.assert_allclose(found.near[:, :n_winners], taken[:, :n_winners], rtol=1e-5, atol=1e-12)
    assert np.isnan(found.near[:, n_winners:]).all()


@pytest.mark.parametrize("m", [130, NARROW + 1])
def test_hardly_any_of_the_least_is_missed(m: int) -> None:
    rng = np.random.default_rng(m)
    points, rows = (rng.normal(size=(k, 100)).astype(np.float32) for k in (LANES, m))
    true = np.argsort(distances(points, rows), axis=1)[:, :FEW]
    same = [
        len(set(a) & set(b)) for a, b in zip(true.tolist(), surveyed(points, rows).slots.tolist(), strict=True)
    ]
    assert np.mean(same) > 0.99 * FEW


def test_a_candidate_that_is_a_point_costs_nothing() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(9, 65)).astype(np.float32)
    found = surveyed(rows, rows)
    np.testing.assert_array_equal(found.slots[:, 0], np.arange(9))
    np.testing.assert_array_equal(found.near[:, 0], 0)


def test_candidates_far_and_near_are_told_apart() -> None:
    """One step for all rows would be larger than the nearest are apart."""
    D = 64
    rows = np.zeros((ROWS, D), np.float32)
    rows[:, 0] = [1e-3, 2e-3, 4e-3, 8e-3, 16e-3, 1.0, 1e3, 1e6]
    points = np.zeros((2, D), np.float32)
    points[1, 1] = 1e-3
    np.testing.assert_array_equal(surveyed(points, rows).slots, [list(range(FEW))] * 2)
