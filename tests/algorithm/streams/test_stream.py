"""Merge and reduce: what is kept of a stream."""

from __future__ import annotations

import math

import numpy as np
import pytest

from vcgmm.algorithm.streams.merging import Weighted, merge, reduce
from vcgmm.algorithm.streams.stream import Stream, absorb, begin
from vcgmm.parallel import Workers

INLINE = Workers(1)
SIZE = 40


def rows(n: int, seed: int = 0) -> Weighted:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)) * [1.0, 3.0], rng.uniform(0.5, 1.5, n)


def feed(points: np.ndarray, weights: np.ndarray, block: int, size: int | None = SIZE, seed: int = 0) -> tuple:  # type: ignore[type-arg]
    stream, kept = Stream(seed), None
    for first in range(0, len(points), block):
        part = (points[first : first + block], weights[first : first + block])
        stream, kept = absorb(stream, kept, part, len(part[0]), size, 1, INLINE)
    return stream, kept


def test_merging_is_concatenation() -> None:
    a, b = rows(5), rows(7, 1)
    points, weights = merge([a, b])
    np.testing.assert_array_equal(points, np.vstack([a[0], b[0]]))
    np.testing.assert_array_equal(weights, np.concatenate([a[1], b[1]]))


def test_reducing_keeps_the_scale_of_weights() -> None:
    points, weights = rows(500)
    expected = reduce(points, weights, 50, np.random.default_rng(0), INLINE)
    for unit in (1e-300, 1e200):
        drawn = reduce(points, weights * unit, 50, np.random.default_rng(0), INLINE)
        np.testing.assert_allclose(drawn.weights / unit, expected.weights)


def test_rows_are_kept_as_they_come_up_to_twice_the_size() -> None:
    points, weights = rows(2 * SIZE - 1)
    stream, kept = feed(points, weights, 7)
    np.testing.assert_array_equal(kept[0], points)
    np.testing.assert_array_equal(kept[1], weights)
    assert (stream.levels, stream.lengths, stream.n_rows) == ((0,), (79,), 79)
    one_more, kept = absorb(stream, kept, rows(1, 5), 1, SIZE, 1, INLINE)
    assert one_more.levels == (1,)
    assert len(kept[1]) <= SIZE


@pytest.mark.parametrize("n_blocks", [2, 3, 7, 8, 13, 64, 200])
def test_there_is_one_coreset_of_each_level_as_in_a_binary_number(n_blocks: int) -> None:
    points, weights = rows(SIZE * n_blocks)
    stream, kept = feed(points, weights, SIZE)
    bits = [level for level in range(12) if n_blocks >> level & 1]
    assert sorted(stream.levels) == bits
    assert stream.levels == tuple(sorted(stream.levels, reverse=True))
    assert sum(stream.lengths) == len(kept[0]) == len(kept[1])
    assert max(stream.lengths) <= SIZE
    assert stream.n_rows == len(points)


def test_memory_grows_with_the_logarithm_of_the_stream() -> None:
    stream, kept, most = Stream(0), None, 0
    for block in range(600):
        stream, kept = absorb(stream, kept, rows(33, block), 33, SIZE, 1, INLINE)
        most = max(most, len(kept[1]))
    assert most <= SIZE * (2 + math.log2(600 * 33 / SIZE))
    assert kept[1].sum() == pytest.approx(600 * 33, rel=0.2)


def test_a_large_block_counts_as_the_level_it_stands_for() -> None:
    points, weights = rows(SIZE * 9)
    stream, _ = feed(points, weights, SIZE * 9)
    assert stream.levels == (3,)


def test_without_a_size_every_row_is_kept() -> None:
    points, weights = rows(1000)
    stream, kept = feed(points, weights, 99, size=None)
    np.testing.assert_array_equal(kept[0], points)
    assert stream.n_reductions == 0


def test_sums_over_what_is_kept_are_unbiased_and_their_variance_at_most_doubles() -> None:
    points, weights = rows(SIZE * 32)

    def cost(kept: Weighted) -> float:
        return float(kept[1] @ ((kept[0] - [2.0, -1.0]) ** 2).sum(axis=1))

    exact = cost((points, weights))
    streamed = np.array([cost(feed(points, weights, 16, seed=seed)[1]) for seed in range(150)]) / exact
    at_once = [reduce(points, weights, SIZE, np.random.default_rng(seed), INLINE) for seed in range(150)]
    direct = np.array([cost((one.points, one.weights)) for one in at_once]) / exact
    assert abs(streamed.mean() - 1) < 4 * streamed.std() / math.sqrt(150)
    assert streamed.var() < 3 * direct.var()  # 2, and room for chance: variances of 150 vary by a fifth


def test_the_same_seed_keeps_the_same_points() -> None:
    points, weights = rows(SIZE * 20)
    first, again, other = (feed(points, weights, 50, seed=seed)[1][0] for seed in (1, 1, 2))
    assert first.tobytes() == again.tobytes()
    assert first.tobytes() != other.tobytes()


def test_blocks_may_be_overwritten() -> None:
    points, weights = rows(10)
    _, kept = absorb(Stream(0), None, (points, weights), 10, SIZE, 1, INLINE)
    before = kept[0].copy()
    points[:] = 0
    np.testing.assert_array_equal(kept[0], before)


def test_different_points_are_not_lost() -> None:
    points = np.repeat(np.arange(20.0)[:, None], 50, axis=0)
    stream, kept = Stream(0), None
    for part in np.array_split(points, 10):
        stream, kept = absorb(stream, kept, (part, np.ones(len(part))), len(part), 5, 20, INLINE)
    assert len(np.unique(kept[0])) == 20


@pytest.mark.parametrize(
    ("n_points", "n_rows", "size", "level"),
    [(50, 50, 40, 0), (79, 1000, 40, 0), (80, 80, 40, 1), (100, 640, 40, 4), (999, 999, None, 0)],
)
def test_a_stream_begins_at_the_level_of_a_coreset(
    n_points: int, n_rows: int, size: int | None, level: int
) -> None:
    stream = begin(3, n_points, n_rows, size, 7.5)
    assert (stream.levels, stream.lengths, stream.n_rows, stream.scatter) == ((level,), (n_points,), n_rows, 7.5)
