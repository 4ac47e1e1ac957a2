from __future__ import annotations

import numpy as np
import pytest

from vcgmm.algorithm.reference import squared_distances
from vcgmm.kernels.seeding.rivals import LOOKED_AT, two_nearest

pytestmark = pytest.mark.interpreted


def found(points: np.ndarray, winners: np.ndarray, means: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    winners, distances = winners.copy(), np.full((2, len(points)), -7, points.dtype)
    two_nearest(0, len(points), points, winners, means, distances)
    assert (winners[:, 2:] == -1).all()
    return winners[:, 0], winners[:, 1] if winners.shape[1] > 1 else np.empty(0), distances


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["sorted", "shuffled"])
def test_own_cluster_and_rival_are_the_nearest_two_of_the_first_winners(dtype: type, order: str) -> None:
    rng = np.random.default_rng(0)
    points, means = rng.normal(size=(40, 3)).astype(dtype), rng.normal(size=(12, 3)).astype(dtype)
    direct = squared_distances(points, means)
    winners = np.argsort(direct, axis=1)[:, :5].astype(np.int32)
    if order == "shuffled":
        winners = rng.permuted(winners, axis=1)
    labels, rivals, distances = found(points, winners, means)
    for n in range(40):
        first = winners[n, :LOOKED_AT]
        nearest = first[np.argsort(direct[n, first])]
        assert (labels[n], rivals[n]) == (nearest[0], nearest[1])
        assert distances[:, n] == pytest.approx(direct[n, nearest[:2]], rel=1e-5)


def test_a_part_of_the_points_leaves_the_others_alone() -> None:
    points, means = np.arange(6.0)[:, None], np.array([[0.0], [5.0]])
    winners = np.tile(np.array([[0, 1]], np.int32), (6, 1))
    distances = np.zeros((2, 6))
    two_nearest(2, 4, points, winners, means, distances)
    assert winners.tolist() == [[0, 1], [0, 1], [0, 1], [1, 0], [0, 1], [0, 1]]
    assert distances.tolist() == [[0, 0, 4, 4, 0, 0], [0, 0, 9, 9, 0, 0]]


def test_no_winner_beside_the_first_is_no_rival() -> None:
    points, means = np.zeros((2, 2)), np.array([[1.0, 0.0], [0.0, 3.0]])
    winners = np.array([[0, -1, -1], [1, -1, 0]], np.int32)
    labels, rivals, distances = found(points, winners, means)
    assert labels.tolist() == [0, 0]
    assert rivals.tolist() == [-1, 1]
    assert distances.tolist() == [[1.0, 1.0], [np.inf, 9.0]]
    labels, _, distances = found(points, winners[:, :1].copy(), means)
    assert labels.tolist() == [0, 1]
    assert distances.tolist() == [[1.0, 9.0], [np.inf, np.inf]]
