from __future__ import annotations

import numpy as np
import pytest

from vcgmm.algorithm.random import distinct_clusters, generator, random_clusters


class Rationed:
    """A generator that gives up where rejection sampling would hardly ever end."""

    def __init__(self, calls: int) -> None:
        self.calls = calls
        self.rng = np.random.default_rng(0)

    def __getattr__(self, name: str):
        self.calls -= 1
        if self.calls < 0:
            pytest.fail("asked for random numbers again and again")
        return getattr(self.rng, name)


@pytest.mark.parametrize(
    ("size", "n_clusters"), [(0, 0), (0, 5), (1, 1), (3, 3), (2, 1000), (5, 9), (5, 10), (50, 100), (300, 1000)]
)
def test_clusters_of_a_row_are_distinct(size: int, n_clusters: int) -> None:
    out = distinct_clusters(20, size, n_clusters, Rationed(1000))  # type: ignore[arg-type]
    assert out.shape == (20, size)
    assert out.dtype == np.int32
    assert all(len(set(row)) == size for row in out.tolist())
    if size:
        assert out.min() >= 0
        assert out.max() < n_clusters


@pytest.mark.parametrize(("size", "n_clusters"), [(2, 6), (4, 6)])
def test_every_cluster_is_equally_likely(size: int, n_clusters: int) -> None:
    out = distinct_clusters(6000, size, n_clusters, np.random.default_rng(1))
    counts = np.bincount(out.ravel(), minlength=n_clusters)
    expected = 6000 * size / n_clusters
    assert (np.abs(counts - expected) < 5 * np.sqrt(expected)).all()


def test_random_clusters_lie_in_range() -> None:
    out = random_clusters((500, 2), 7, np.random.default_rng(2))
    assert out.dtype == np.int32
    assert set(out.ravel()) == set(range(7))


def test_streams_are_keyed_by_purpose() -> None:
    assert generator(1, 2).random() == generator(1, 2).random()
    drawn = {generator(*key).random() for key in ((1, 2), (1, 3), (2, 2), (1, 2, 0), (1,))}
    assert len(drawn) == 5
