from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcgmm.kernels.jit import kernel
from vcgmm.kernels.parts.selection import FEW, LANES
from vcgmm.kernels.search.first_look import AT_A_LOOK, NOT_KNOWN, NOT_LISTED, first_look, look_up
from vcgmm.kernels.search.winners import choose_absent, choose_winners, truncated_posterior

pytestmark = pytest.mark.interpreted


@kernel
def looked(best, mask, first, n, n_winners, near, there, missing):  # type: ignore[no-untyped-def]
    return first_look(best, mask, first, n, n_winners, near, there, missing)


def test_shares_are_relative_to_the_nearest() -> None:
    near = np.array([[0.5, 2.0], [1.5, 2.0]])
    shares, totals = np.empty((2, 2)), np.empty(2)
    truncated_posterior(2, near, 0.7, shares, totals)
    np.testing.assert_allclose(shares, [[1.0, 1.0], [np.exp(-0.7), 1.0]])
    np.testing.assert_allclose(totals, shares.sum(axis=0))
    truncated_posterior(2, near, -1.0, shares, totals)
    assert shares.tolist() == [[1.0, 1.0], [0.0, 0.0]]
    assert totals.tolist() == [1.0, 1.0]


@given(
    st.integers(0, 1 << 20),
    st.integers(1, FEW + 2),
    st.integers(1, 40),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_winners_are_the_least_of_candidates_and_old_ones(
    seed: int, n_winners: int, n: int, may_be_far: bool, some_are: bool, all_known: bool
) -> None:
    """Candidates by products, some of them far and taken directly, and old winners that are on no list.

    Where not all costs are known, none is far, and costs are distances.
    """
    all_known |= n_winners > FEW
    may_be_far &= all_known
    rng = np.random.default_rng(seed)
    n_clusters, D, L = 12, 3, 8
    points, means = rng.normal(size=(n, D)), rng.normal(size=(n_clusters, D))
    precisions, offsets = rng.uniform(0.2, 3.0, size=(n_clusters, 1)), rng.uniform(0, 2, n_clusters)
    if not all_known:
        precisions[:], offsets[:] = 1, 0
    costs = precisions[:, 0] * ((points[:, None] - means) ** 2).sum(axis=2) + offsets
    candidates = rng.permutation(n_clusters)[:L].astype(np.int32)
    is_far = rng.random(L) < (0.3 if may_be_far and some_are else 0.0)
    old = np.array([rng.permutation(n_clusters)[:n_winners] for _ in range(n)], np.int32)
    old[0, -1] = -1
    position = np.full(n_clusters, -1, np.int32)
    position[candidates[~is_far]] = np.flatnonzero(~is_far)
    of_candidates = np.zeros((L, LANES))
    of_candidates[:, :n] = costs[:, candidates].T
    rows = max(n_winners, FEW)
    best = np.zeros(rows * LANES, np.int64)
    for j in range(n):
        ranked = np.argsort(costs[j, candidates], kind="stable")
        k = rng.integers(n_winners)
        if k + 1 < n_winners or candidates[ranked[k]] in old[j]:  # keys are rounded: the order of two may be wrong
            ranked[[k, k + 1]] = ranked[[k + 1, k]]
        best[j::LANES] = ranked[:rows]
    slots, near = np.empty((rows, LANES), np.int64)[:n_winners], np.empty((rows, LANES))[:n_winners]
    if not all_known:  # but those of the best
        for j in range(n):
            near[:, j] = of_candidates[best[j::LANES][:n_winners], j]
        of_candidates[:] = rng.choice([np.nan, 0])
    absent = np.empty((2, 2 * n_winners * LANES), np.int64)
    order = np.arange(n)
    n_absent = choose_winners(
        n, best, L - 1, of_candidates, all_known, means[candidates], points, is_far if may_be_far else None,
        bool(is_far.any()), candidates, position, order, 0, old, slots, near, absent, np.empty(L, np.int32),
        np.empty((FEW, LANES), np.int32), np.empty(2 * FEW, np.int64),
    )  # fmt: skip
    pairs = list(zip(*absent[:, :n_absent].tolist(), strict=True))
    assert len(pairs) == len(set(pairs))  # nothing is computed twice
    choose_absent(
        n_absent, absent, np.empty(n_absent, np.int64), np.empty(n_absent), points, means, precisions, offsets,
        order, 0, slots, near,
    )  # fmt: skip
    for j in range(n):
        known = sorted({*candidates.tolist(), *(c for c in old[j].tolist() if c >= 0)}, key=lambda c: costs[j, c])
        found = [int(candidates[slot]) if slot >= 0 else int(-1 - slot) for slot in slots[:, j]]
        assert found == known[:n_winners]
        np.testing.assert_allclose(near[:, j], costs[j, found])


@pytest.mark.parametrize("order_type", [np.int32, np.int64])
@given(seed=st.integers(0, 1 << 20), n_winners=st.integers(1, FEW), is_narrow=st.booleans(), known=st.booleans())
def test_what_is_looked_up_and_the_first_look_at_it(
    order_type: type, seed: int, n_winners: int, is_narrow: bool, known: bool
) -> None:
    rng = np.random.default_rng(seed)
    dtype, key = (np.float32, np.int32) if is_narrow else (np.float64, np.int64)
    n, n_clusters, L = int(rng.integers(1, 2 * AT_A_LOOK + 1)), 14, 8
    costs = rng.integers(6, size=(L, LANES)).astype(dtype)  # many are equal
    best = np.empty(FEW * LANES, key)
    for j in range(LANES):
        best[j::LANES] = np.argsort(costs[:, j] + rng.choice([0, 1e-3, 2], L, p=[0.8, 0.1, 0.1]))[:FEW]
        best[j::LANES] += 8 * rng.integers(99, size=FEW).astype(key)  # what else keys hold
    position = np.where(rng.random(n_clusters) < 0.7, rng.integers(L, size=n_clusters), NOT_LISTED).astype(
        np.int32
    )
    winners = rng.integers(-1, n_clusters, size=(n + 3, n_winners)).astype(np.int32)
    order = rng.permutation(n + 3).astype(order_type)[: n + 2]  # nothing lies behind the last point
    slots, near = np.full((FEW, LANES), -9), np.full((FEW, LANES), -9, dtype)
    there = np.full((FEW, LANES), -9, np.int32)
    mask = key(L - 1)
    look_up(n, best, mask, costs, known, position, order, 2, winners, slots[:n_winners], near[:n_winners], there)
    for j in range(n):
        chosen, old = best[j::LANES][:n_winners] & mask, winners[order[2 + j]]
        np.testing.assert_array_equal(slots[:n_winners, j], chosen)
        np.testing.assert_array_equal(near[:n_winners, j], costs[chosen, j] if known else -9)
        np.testing.assert_array_equal(there[:n_winners, j], np.where(old < 0, NOT_KNOWN, position[old]))
    for array in (slots, near, there):
        assert (array[n_winners:] == -9).all()
        assert (array[:, n:] == -9).all()

    near[:n_winners, :n] = np.sort(near[:n_winners, :n], axis=0) if seed % 3 == 0 else near[:n_winners, :n]
    for first in range(0, n, AT_A_LOOK):
        missing = np.full(2 * FEW, -9)
        odd = int(looked(best, mask, first, n, n_winners, near, there, missing))
        for j in range(first, min(first + AT_A_LOOK, n)):
            bit, chosen = 1 << (j - first), best[j::LANES][:n_winners] & mask
            assert bool(odd & bit) == bool((np.diff(near[:n_winners, j]) < 0).any())
            for k, slot in enumerate(there[:n_winners, j]):
                assert bool(missing[k] & bit) == (slot == NOT_LISTED)
                assert bool(missing[FEW + k] & bit) == (slot >= 0 and slot not in chosen)
        beyond = ~((1 << min(AT_A_LOOK, n - first)) - 1)
        assert not odd & beyond
        assert not (missing[[*range(n_winners), *range(FEW, FEW + n_winners)]] & beyond).any()
