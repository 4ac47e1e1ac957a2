"""Lists that hold all clusters, against the mean cost written out, and against the kernel for many."""

from __future__ import annotations

import numpy as np
import pytest

from vcgmm.algorithm.cells import neighbourhoods
from vcgmm.algorithm.cells.few_clusters import order_of_all
from vcgmm.algorithm.cells.natural import Natural
from vcgmm.algorithm.cells.neighbourhoods import Neighbourhoods
from vcgmm.parallel import Workers

N_CLUSTERS, N_FEATURES = 30, 4


def clusters(n_squares: int, offset: float = 0.0) -> Natural:
    rng = np.random.default_rng(0)
    means = (rng.normal(size=(N_CLUSTERS, N_FEATURES)) + offset).astype(np.float32)
    if n_squares == 0:
        return Natural.shared(means)
    variances = rng.uniform(0.2, 2.0, (N_CLUSTERS, n_squares)).astype(np.float32)
    return Natural(means, variances, 0.5 / variances, rng.uniform(0.0, 2.0, N_CLUSTERS).astype(np.float32))


def mean_costs(natural: Natural) -> np.ndarray:
    """E[sum_d p_kd (y_d - mu_kd)^2 + q_k] over y of cluster c, for every c and k."""
    if natural.variances is None or natural.precisions is None or natural.offsets is None:
        return ((natural.means[:, None] - natural.means) ** 2).sum(2, dtype=np.float64)
    costs = np.empty((N_CLUSTERS, N_CLUSTERS))
    for c in range(N_CLUSTERS):
        for k in range(N_CLUSTERS):
            squares = (natural.means[c].astype(np.float64) - natural.means[k]) ** 2 + natural.variances[c]
            costs[c, k] = (natural.precisions[k] * squares).sum() + natural.offsets[k]
    return costs


@pytest.mark.parametrize("offset", [0.0, 1e4])
@pytest.mark.parametrize("n_squares", [0, 1, N_FEATURES])
def test_the_order_is_that_of_the_mean_costs(n_squares: int, offset: float) -> None:
    natural = clusters(n_squares, offset)
    order, costs = order_of_all(natural), mean_costs(natural)
    assert order.dtype == np.int32
    assert (order[:, 0] == np.arange(N_CLUSTERS)).all()
    assert (np.sort(order, axis=1) == np.arange(N_CLUSTERS)).all()
    ordered = np.take_along_axis(costs, order.astype(np.int64), axis=1)[:, 1:]
    assert (np.diff(ordered, axis=1) >= -1e-6 * ordered[:, 1:]).all()


@pytest.mark.parametrize("n_squares", [0, 1, N_FEATURES])
def test_neighbours_are_those_that_are_found_among_many(n_squares: int) -> None:
    natural = clusters(n_squares)
    with Workers(1) as workers:
        few = Neighbourhoods(N_CLUSTERS, 5, N_CLUSTERS, 0, 0, workers)
        many = Neighbourhoods(N_CLUSTERS, 5, N_CLUSTERS - 1, 0, 0, workers)
        assert few.update(natural) == many.update(natural) == N_CLUSTERS**2
    assert few.neighbors.tolist() == many.neighbors.tolist()
    assert few.candidates.tolist() == few.nearest.tolist() == order_of_all(natural).tolist()


def test_beyond_few_clusters_they_are_linked_as_many_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbourhoods, "FEW", N_CLUSTERS - 1)
    monkeypatch.setattr(neighbourhoods, "order_of_all", lambda _: pytest.fail("they are too many"))
    with Workers(1) as workers:
        lists = Neighbourhoods(N_CLUSTERS, 5, N_CLUSTERS, 0, 0, workers)
        lists.update(clusters(0))
    assert lists.neighbors.tolist() == order_of_all(clusters(0))[:, :5].tolist()
    assert (np.sort(lists.candidates, axis=1) == np.arange(N_CLUSTERS)).all()


def test_lists_of_all_need_no_exploration_and_are_ordered_now_and_then() -> None:
    with Workers(1) as workers:
        lists = Neighbourhoods(N_CLUSTERS, 3, N_CLUSTERS, 4, 0, workers)
        linked = [lists.update(clusters(0)) > 0 for _ in range(6)]
    assert linked == [True, True, False, False, True, False]
    assert lists.candidates.shape == (N_CLUSTERS, N_CLUSTERS)


def test_a_cluster_of_no_weight_comes_last() -> None:
    natural = clusters(1)
    assert natural.offsets is not None
    natural.offsets[7] = np.inf
    order = order_of_all(natural)
    assert (np.delete(order[:, -1], 7) == 7).all()
    assert order[7, 0] == 7
