from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcgmm.kernels.selection import LANES
from vcgmm.kernels.winners import choose_absent, choose_winners, truncated_posterior

pytestmark = pytest.mark.interpreted


def test_shares_are_relative_to_the_nearest() -> None:
    near = np.array([[0.5, 2.0], [1.5, 2.0]])
    shares, totals = np.empty((2, 2)), np.empty(2)
    truncated_posterior(2, near, 0.7, shares, totals)
    np.testing.assert_allclose(shares, [[1.0, 1.0], [np.exp(-0.7), 1.0]])
    np.testing.assert_allclose(totals, shares.sum(axis=0))
    truncated_posterior(2, near, -1.0, shares, totals)
    assert shares.tolist() == [[1.0, 1.0], [0.0, 0.0]]
    assert totals.tolist() == [1.0, 1.0]


@given(st.integers(0, 1 << 20), st.integers(1, 4))
def test_winners_are_the_least_of_candidates_and_old_ones(seed: int, n_winners: int) -> None:
    """Candidates by products, some of them far and taken directly, and old winners that are on no list."""
    rng = np.random.default_rng(seed)
    n, n_clusters, D, L = 7, 12, 3, 8
    points, means = rng.normal(size=(n, D)), rng.normal(size=(n_clusters, D))
    precisions, offsets = rng.uniform(0.2, 3.0, size=(n_clusters, 1)), rng.uniform(0, 2, n_clusters)
    costs = precisions[:, 0] * ((points[:, None] - means) ** 2).sum(axis=2) + offsets
    candidates = rng.permutation(n_clusters)[:L].astype(np.int32)
    is_far = rng.random(L) < 0.3
    old = np.array([rng.permutation(n_clusters)[:n_winners] for _ in range(n)], np.int32)
    old[0, -1] = -1
    position = np.full(n_clusters, -1, np.int32)
    position[candidates[~is_far]] = np.flatnonzero(~is_far)
    of_candidates = np.zeros((L, LANES))
    of_candidates[:, :n] = costs[:, candidates].T
    best = np.zeros(n_winners * LANES, np.int64)
    for j in range(n):
        best[j::LANES] = np.argsort(costs[j, candidates], kind="stable")[:n_winners]
    slots, near = np.empty((n_winners, LANES), np.int64), np.empty((n_winners, LANES))
    absent = np.empty((2, 2 * n_winners * LANES), np.int64)
    order = np.arange(n)
    n_absent = choose_winners(
        n, best, L - 1, of_candidates, is_far, candidates, position, order, 0, old, slots, near, absent,
        np.empty(L, np.int32),
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
