from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcgmm.kernels.seeding.moves import pair_moves, plan_moves

pytestmark = pytest.mark.interpreted


def plain_choice(
    losses: np.ndarray, cells: np.ndarray, gains: np.ndarray, takers: list[np.ndarray]
) -> tuple[list[int], list[int]]:
    """Clusters taken away, and for each of them the place of one that is split."""
    cheapest = iter(np.argsort(losses, kind="stable").tolist())
    involved: set[int] = set()
    removed, split = [], []
    for place in np.argsort(-gains, kind="stable").tolist():
        if cells[place] in involved:
            continue
        involved.add(cells[place])
        for cluster in cheapest:
            if involved.isdisjoint([cluster, *takers[cluster]]):
                break
        else:
            break
        if not gains[place] > losses[cluster]:
            break
        involved.update([cluster, *takers[cluster]])
        removed.append(cluster)
        split.append(place)
    return removed, split


@given(st.integers(0, 10_000))
def test_pairs_are_those_of_the_plain_choice(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 40))
    losses = np.where(rng.random(n) < 0.1, np.inf, rng.exponential(size=n).round(1))
    cells = rng.permutation(n)[: int(rng.integers(1, n + 1))]
    gains = (rng.exponential(size=len(cells)) * rng.choice([0.5, 4.0])).round(1)
    takers = [rng.choice(n, int(rng.integers(0, 4))).astype(np.int32) for _ in range(n)]

    cheapest, dearest = np.argsort(losses, kind="stable"), np.argsort(-gains, kind="stable")
    lengths = np.array([len(takers[c]) for c in cheapest])
    last, listed = np.cumsum(lengths), np.concatenate([takers[c] for c in cheapest])
    moves = np.empty((2, len(cells)), np.int64)
    n_moves = pair_moves(
        cheapest, losses[cheapest], last - lengths, last, listed, cells[dearest], gains[dearest],
        np.zeros(n, bool), moves,
    )  # fmt: skip

    removed, split = plain_choice(losses, cells, gains, takers)
    assert cheapest[moves[0, :n_moves]].tolist() == list(removed)
    assert dearest[moves[1, :n_moves]].tolist() == list(split)


@given(st.integers(0, 10_000))
def test_a_plan_says_who_goes_where(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 40))
    k = n // 2
    losses, sizes = rng.exponential(size=n).round(1), rng.integers(2, 9, n)
    cells = rng.permutation(n)[:k]
    gains, n_second = (rng.exponential(size=k) * rng.choice([0.5, 4.0])).round(1), rng.integers(1, 4, k)
    takers = [rng.choice(n, size).astype(np.int32) for size in sizes]
    cheapest, dearest = np.argsort(losses, kind="stable")[:k], np.argsort(-gains, kind="stable")
    parts = [
        cells,
        sizes,
        n_second,
        dearest,
        gains[dearest],
        cheapest,
        np.cumsum(sizes[cheapest]),
        losses[cheapest],
    ]
    numbers = np.concatenate([part.view(np.int64) for part in (*parts, np.array([100.0]))])
    listed = np.concatenate([takers[c] for c in cheapest])
    chosen, facts = np.empty(n + 3 * k, np.int64), np.empty(5)
    n_moves = plan_moves(numbers, numbers.view(np.float64), listed, n, k, 4, chosen, facts)

    moves = np.empty((2, k), np.int64)
    last = np.cumsum(sizes[cheapest])
    expected = pair_moves(
        cheapest, losses[cheapest], last - sizes[cheapest], last, listed, cells[dearest], gains[dearest],
        np.zeros(n, bool), moves,
    )  # fmt: skip
    assert n_moves == expected
    gone, best = moves[:, :n_moves]
    removed, places = cheapest[gone], dearest[best]
    fates = np.full(n, -1)
    fates[removed], fates[cells[places]] = -2, removed
    assert chosen[:n].tolist() == fates.tolist()
    assert chosen[n : n + 3 * n_moves].tolist() == [*cells[places], *removed, *places]
    n_points = sizes[removed].sum() + n_second[places].sum()
    gained = gains[places].sum() - losses[removed].sum()
    np.testing.assert_allclose(
        facts, [100.0, gained, n_points, np.minimum(sizes[cells], 4).sum(), sizes[cells].sum()], atol=1e-12
    )
