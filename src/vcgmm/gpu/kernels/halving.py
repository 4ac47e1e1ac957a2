"""Clusters split in two, each by one program: seeds, Lloyd steps on a sample, and who is in which half."""

from __future__ import annotations

import triton
import triton.language as tl

from .launching import launched


@triton.jit
def pick_row(rows, masses, uniform, ROWS: tl.constexpr):
    """One of rows (ROWS,), drawn by masses (ROWS,) and a number in [0, 1)."""
    at = tl.arange(0, ROWS)
    beyond = tl.cumsum(masses, axis=0) > uniform * tl.sum(masses, axis=0)
    found = tl.min(tl.where(beyond & (masses > 0), at, ROWS), axis=0)
    latest = tl.max(tl.where(masses > 0, at, 0), axis=0)  # rounding may point just past it
    return tl.sum(tl.where(at == tl.minimum(found, latest), rows, 0), axis=0)


@triton.jit
def distances_to(
    points, stride, n_features, scale, rows, inside, other, ROWS: tl.constexpr, FEATURES: tl.constexpr
):
    """Squared distances of rows (ROWS,) to another one."""
    total = tl.zeros((ROWS,), tl.float32)
    for begin in range(0, n_features, FEATURES):
        feature = begin + tl.arange(0, FEATURES)
        wide = feature < n_features
        m = tl.load(points + other * stride + feature, mask=wide, other=0).to(tl.float32) * scale
        y = tl.load(
            points + rows[:, None] * stride + feature[None, :], mask=inside[:, None] & wide[None, :], other=0
        )
        away = y.to(tl.float32) * scale - m[None, :]
        total += tl.sum(tl.where(inside[:, None], away * away, 0.0), axis=1)
    return total


@launched
@triton.jit
def halve_cells(
    points,
    stride,
    n_features,
    scale,
    order,
    start,
    cells,
    weights,
    means,
    mean_stride,
    uniforms,
    centres,
    second,
    n_second,
    errors,
    gains,
    STEPS: tl.constexpr,
    N_TRIALS: tl.constexpr,
    ROWS: tl.constexpr,
    FEATURES: tl.constexpr,
    GRAIN: tl.constexpr,
):
    """Split a cell in two by a 2-means on ROWS of its points at most, then look at all of them.

    The first seed is drawn by weight, the second is the best of N_TRIALS draws by weight and squared distance.

    Parameters
    ----------
    points, stride, n_features, scale : IN, as in `search.search_tiles`
    order, start : IN, cell c has the points order[start[c]:start[c + 1]]
    cells : (k,) int64, IN, which to split
    weights : (N',) float32, IN
    means : (C, D) float32, IN, rows mean_stride apart; what sums are taken about
    uniforms : (k, 1 + N_TRIALS) float32, IN
    centres : (k, 2, D) float32, OUT, of both halves
    second : (N',) int8, OUT, for points of these cells, 1 in the second half, else 0
    n_second : (k,) int64, OUT, how many those are
    errors : (C,) float64, IN, weighted squared distances of all points of every cell
    gains : (k,) float64, OUT, what those are more than to the nearer centre; minus infinity where the cell cannot
        be split, since its points are all the same or all in one half
    GRAIN : constexpr, as in `search.search_tiles`
    """
    stride = stride // GRAIN * GRAIN  # that they are multiples, the compiler cannot know
    n_features = n_features // GRAIN * GRAIN
    at = tl.program_id(0).to(tl.int64)
    cell = tl.load(cells + at)
    first = tl.load(start + cell)
    size = tl.load(start + cell + 1) - first
    tl.store(gains + at, float("-inf"))
    tl.store(n_second + at, 0)
    if size < 2:
        return
    slot = tl.arange(0, ROWS)
    n_sampled = tl.minimum(size, ROWS)
    inside = slot < n_sampled
    row = tl.load(order + first + (2 * slot + 1) * size // (2 * n_sampled), mask=inside, other=0)
    weight = tl.load(weights + row, mask=inside, other=0.0)
    draws = uniforms + at * (1 + N_TRIALS)

    one = pick_row(row, weight, tl.load(draws), ROWS)
    near = distances_to(points, stride, n_features, scale, row, inside, one, ROWS, FEATURES)
    left = tl.sum(weight * near, axis=0)
    if left <= 0:
        return
    other, least = one, left
    for trial in range(N_TRIALS):
        tried = pick_row(row, weight * near, tl.load(draws + 1 + trial), ROWS)
        distance = distances_to(points, stride, n_features, scale, row, inside, tried, ROWS, FEATURES)
        error = tl.sum(weight * tl.minimum(near, distance), axis=0)
        other = tl.where(error < least, tried, other)
        least = tl.minimum(least, error)
    here = centres + at * 2 * n_features
    there = here + n_features
    for begin in range(0, n_features, FEATURES):
        feature = begin + tl.arange(0, FEATURES)
        wide = feature < n_features
        a = tl.load(points + one * stride + feature, mask=wide, other=0).to(tl.float32) * scale
        b = tl.load(points + other * stride + feature, mask=wide, other=0).to(tl.float32) * scale
        tl.store(here + feature, a, mask=wide)
        tl.store(there + feature, b, mask=wide)
    tl.debug_barrier()

    for _ in range(STEPS):
        score = tl.zeros((ROWS,), tl.float32)
        for begin in range(0, n_features, FEATURES):
            feature = begin + tl.arange(0, FEATURES)
            wide = feature < n_features
            a = tl.load(here + feature, mask=wide, other=0.0)
            b = tl.load(there + feature, mask=wide, other=0.0)
            y = tl.load(
                points + row[:, None] * stride + feature[None, :], mask=inside[:, None] & wide[None, :], other=0
            )
            beyond = (y.to(tl.float32) * scale - (0.5 * (a + b))[None, :]) * (b - a)[None, :]
            score += tl.sum(tl.where(wide[None, :], beyond, 0.0), axis=1)
        one_part = tl.where(score > 0, 0.0, weight)
        other_part = tl.where(score > 0, weight, 0.0)
        one_mass, other_mass = tl.sum(one_part, axis=0), tl.sum(other_part, axis=0)
        tl.debug_barrier()
        for begin in range(0, n_features, FEATURES):
            feature = begin + tl.arange(0, FEATURES)
            wide = feature < n_features
            zero = tl.load(means + cell * mean_stride + feature, mask=wide, other=0.0)
            y = tl.load(
                points + row[:, None] * stride + feature[None, :], mask=inside[:, None] & wide[None, :], other=0
            )
            away = y.to(tl.float32) * scale - zero[None, :]
            a = zero + tl.sum(away * one_part[:, None], axis=0) / one_mass
            b = zero + tl.sum(away * other_part[:, None], axis=0) / other_mass
            # Who has no points stays.
            a = tl.where(one_mass > 0, a, tl.load(here + feature, mask=wide, other=0.0))
            b = tl.where(other_mass > 0, b, tl.load(there + feature, mask=wide, other=0.0))
            tl.store(here + feature, a, mask=wide)
            tl.store(there + feature, b, mask=wide)
        tl.debug_barrier()

    error = tl.zeros((ROWS,), tl.float64)
    count = tl.zeros((ROWS,), tl.int64)
    one_mass = tl.zeros((ROWS,), tl.float32)
    other_mass = tl.zeros((ROWS,), tl.float32)
    for begin_row in range(0, size, ROWS):
        inside = begin_row + slot < size
        row = tl.load(order + first + begin_row + slot, mask=inside, other=0)
        weight = tl.load(weights + row, mask=inside, other=0.0)
        to_one = tl.zeros((ROWS,), tl.float32)
        to_other = tl.zeros((ROWS,), tl.float32)
        for begin in range(0, n_features, FEATURES):
            feature = begin + tl.arange(0, FEATURES)
            wide = feature < n_features
            a = tl.load(here + feature, mask=wide, other=0.0)[None, :]
            b = tl.load(there + feature, mask=wide, other=0.0)[None, :]
            y = tl.load(
                points + row[:, None] * stride + feature[None, :], mask=inside[:, None] & wide[None, :], other=0
            )
            y = y.to(tl.float32) * scale
            to_one += tl.sum((y - a) * (y - a), axis=1)
            to_other += tl.sum((y - b) * (y - b), axis=1)
        is_second = (to_other < to_one) & inside
        tl.store(second + row, is_second.to(tl.int8), mask=inside)
        error += weight.to(tl.float64) * tl.minimum(to_one, to_other).to(tl.float64)
        count += is_second.to(tl.int64)
        one_mass += tl.where(is_second, 0.0, weight)
        other_mass += tl.where(is_second, weight, 0.0)
    if tl.minimum(tl.sum(one_mass, axis=0), tl.sum(other_mass, axis=0)) > 0:
        tl.store(gains + at, tl.load(errors + cell) - tl.sum(error, axis=0))
        tl.store(n_second + at, tl.sum(count, axis=0))
