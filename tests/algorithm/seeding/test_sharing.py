from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vcgmm.algorithm.seeding.sharing import share_by_error, share_by_potential


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=8),
    st.integers(0, 50),
    st.data(),
)
def test_shares_sum_to_the_number_of_clusters(
    cells: list[tuple[int, int]], seed: int, data: st.DataObject
) -> None:
    lengths = np.array([drawn + spare for drawn, spare in cells])
    available = np.array([drawn for drawn, _ in cells])
    n_cells = np.count_nonzero(available)
    rng = np.random.default_rng(seed)
    potentials = np.concatenate([np.sort(rng.random(k) * rng.choice([0, 1, 100]))[::-1] for k in lengths])
    n_clusters = data.draw(st.integers(n_cells, available.sum() + 3))
    shares = share_by_potential(potentials, np.concatenate([[0], np.cumsum(lengths)]), available, n_clusters)
    assert shares.sum() == min(n_clusters, available.sum())
    assert (shares <= available).all()
    assert (shares[available > 0] >= 1).all()


@given(st.lists(st.integers(0, 5), min_size=1, max_size=8), st.integers(0, 100), st.integers(1, 30))
def test_shares_go_by_worth_and_among_equals_to_the_first(lengths: list[int], seed: int, n_clusters: int) -> None:
    rng = np.random.default_rng(seed)
    start = np.concatenate([[0], np.cumsum(lengths)])
    potentials = rng.integers(0, 4, start[-1]).astype(float)
    available = np.minimum(lengths, rng.integers(0, 6, len(lengths)))
    ranked = []
    for cell, n_seeds in enumerate(available):
        for k in range(n_seeds):
            at = start[cell] + k
            ranked.append((k > 0, -(potentials[at - 1] / k if k else potentials[at]), at, cell))
    expected = [cell for *_, cell in sorted(ranked)[:n_clusters]]
    shares = share_by_potential(potentials, start, available, n_clusters)
    assert shares.tolist() == np.bincount(np.array(expected, int), minlength=len(lengths)).tolist()


def test_shares_equalise_the_error_per_cluster() -> None:
    halving = 2.0 ** -np.arange(10)
    potentials = np.concatenate([1024 * halving, halving])
    shares = share_by_potential(potentials, np.array([0, 10, 20]), np.array([10, 10]), 11)
    assert shares.tolist() == [9, 2] or shares.tolist() == [10, 1]
    assert share_by_potential(potentials, np.array([0, 10, 20]), np.array([10, 10]), 4).tolist() == [3, 1]


def test_a_cell_expects_its_part_of_its_parents_clusters() -> None:
    errors = np.array([16.0, 1.0, 0.0, 1.0, 0.0])
    sizes = np.array([100, 100, 50, 3, 0])
    parents = np.array([0, 0, 0, 1, 1])
    expected = share_by_error(errors, sizes, parents, np.array([18, 9]))
    assert expected.tolist() == [16, 2, 1, 3, 0]
