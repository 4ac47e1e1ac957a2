from __future__ import annotations

import numpy as np
import pytest

from vcgmm.kernels.parts.exact_sums import rounding_constant
from vcgmm.kernels.parts.selection import LANES
from vcgmm.kernels.search.block_sums import (
    NEGLIGIBLE,
    NEGLIGIBLE_IN_SINGLES,
    add_block,
    add_facts,
    hand_over,
    write_winners,
)

pytestmark = pytest.mark.interpreted

N, D, WIDTH, N_WINNERS, N_CLUSTERS = 9, 3, 8, 2, 12
ORDER, LOW = np.array([5, 3, 11, 0, 1, 2, 10, 4, 9, 6, 7, 8]), 2
CANDIDATES = np.array([[0] * 4, [1, 2, 9, 4]], np.int32)
CELL = 1


def block(seed: int) -> dict[str, np.ndarray]:
    """Winners of a block of points: on the list of cell 1, or not (slot -1 - c), or with hardly any share."""
    rng = np.random.default_rng(seed)
    slots, near = np.zeros((N_WINNERS, LANES), np.int64), np.zeros((N_WINNERS, LANES))
    for j in range(N):
        slots[:, j] = rng.permutation([0, 1, 2, 3, -1 - 5, -1 - 11])[:N_WINNERS]
    near[:, :N] = np.sort(rng.uniform(0.1, 3.0, (N_WINNERS, N)), axis=0)
    shares = np.exp(near[0] - near)
    shares[1, 4] = NEGLIGIBLE / 2
    return {
        "points": rng.normal(size=(len(ORDER), D)),
        "weights": rng.uniform(0.5, 2.0, len(ORDER)),
        "means": rng.normal(size=(N_CLUSTERS, D)),
        "slots": slots,
        "near": near,
        "shares": shares,
        "totals": shares.sum(axis=0),
    }


def test_facts_are_those_of_the_bound_and_negligible_shares_are_left_out() -> None:
    b = block(0)
    parts, facts = np.full((1 + N_WINNERS, LANES), np.nan), np.zeros(6)
    add_facts(N, b["weights"], ORDER, LOW, b["near"], b["shares"], b["totals"].copy(), 0.7, parts, facts)
    gamma = b["weights"][ORDER[LOW : LOW + N]]
    near, totals = b["near"][:, :N], b["totals"][:N]
    expected = gamma * b["shares"][:, :N] / totals
    expected[1, 4] = 0
    np.testing.assert_allclose(parts[0, :N], gamma)
    np.testing.assert_allclose(parts[1:, :N], expected)
    bound = (gamma * (np.log(totals) - 0.7 * near[0])).sum()
    np.testing.assert_allclose(
        facts, [bound, (expected * near).sum(), (gamma * near[0]).sum(), gamma.sum(), 0, 0], rtol=1e-12
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_negligible_goes_by_the_type_of_shares(dtype: type) -> None:
    least = NEGLIGIBLE_IN_SINGLES if dtype is np.float32 else NEGLIGIBLE
    shares = np.array([[1, 1], [1.01 * least, 0.99 * least]], dtype)
    parts, facts = np.full((3, 2), np.nan), np.zeros(6)
    add_facts(2, np.ones(2), np.arange(2), 0, np.zeros((2, 2), dtype), shares, np.ones(2), 1.0, parts, facts)
    np.testing.assert_allclose(parts, [[1, 1], [1, 1], [1.01 * least, 0]], rtol=1e-6)


def test_winners_are_named_and_moves_counted() -> None:
    b = block(1)
    slots = b["slots"][:, :N]
    clusters = np.where(slots >= 0, CANDIDATES[CELL][np.maximum(slots, 0)], -1 - slots)
    winners = np.full((len(ORDER), N_WINNERS), -1, np.int32)
    stay = ORDER[LOW : LOW + 4]
    winners[stay, 0] = clusters[0, :4]
    facts = np.zeros(6)
    write_winners(N, CANDIDATES[CELL], ORDER, LOW, b["slots"], winners, facts)
    np.testing.assert_array_equal(winners[ORDER[LOW : LOW + N]], clusters.T)
    assert (winners[[5, 3, 8]] == -1).all()  # not of this block
    assert facts.tolist() == [0, 0, 0, 0, N - 4, 0]


@pytest.mark.parametrize("seed", range(3))
def test_sums_are_those_about_each_winners_own_mean(seed: int) -> None:
    b = block(seed)
    points, means, slots = b["points"], b["means"], b["slots"]
    parts, facts = np.zeros((1 + N_WINNERS, LANES)), np.zeros(6)
    add_facts(N, b["weights"], ORDER, LOW, b["near"], b["shares"], b["totals"], 0.7, parts, facts)
    rows = np.zeros((LANES, WIDTH))
    rows[:N, :D] = points[ORDER[LOW : LOW + N]] - means[CELL]
    magic, magic_row = rounding_constant(np.full((1, D), 100.0)), np.zeros(N_CLUSTERS, np.int32)
    mass_magic = float(rounding_constant(np.array(100.0)))
    sums, sum_masses = np.zeros((4, WIDTH)), np.zeros(4)
    shifts, masses = np.zeros((N_CLUSTERS, D)), np.zeros(N_CLUSTERS)
    taken = [[j, -1 - slots[k, j]] for k, j in np.argwhere(slots[:, :N] < 0)]
    too_costly = [[3, c] for c in range(N_CLUSTERS) if -1 - c not in slots[:, 3]]
    absent = np.array(taken + too_costly).T.copy()
    add_block(
        N, rows, points, means, ORDER, LOW, slots, parts, absent.shape[1], absent, magic, None, magic_row,
        mass_magic, sums, sum_masses, shifts, None, masses,
    )  # fmt: skip
    hand_over(CELL, CANDIDATES, means, sums, sum_masses, magic, None, magic_row, mass_magic, shifts, None, masses)
    assert not sums.any()
    assert not sum_masses.any()
    expected, expected_masses = np.zeros_like(shifts), np.zeros_like(masses)
    for j in range(N):
        for k in range(N_WINNERS):
            c = int(CANDIDATES[CELL, slots[k, j]]) if slots[k, j] >= 0 else -1 - int(slots[k, j])
            expected[c] += parts[k + 1, j] * (points[ORDER[LOW + j]] - means[c])
            expected_masses[c] += parts[k + 1, j]
    np.testing.assert_allclose(shifts, expected, atol=1e-12)
    np.testing.assert_allclose(masses, expected_masses, atol=1e-12)
