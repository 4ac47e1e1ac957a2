"""M-steps that the device takes by itself: how far to go, the variance there, and the means."""

from __future__ import annotations

import triton
import triton.language as tl

from .launching import launched

#: Where in the totals of an E-step the scatter is, and what adds up to the gain begins.
SCATTER, GAIN = tl.constexpr(1), tl.constexpr(5)


@triton.jit
def part_sum(totals, first, N_PARTS: tl.constexpr):
    """totals[first] + totals[first + 1] + ..., in this order."""
    total = tl.load(totals + first)
    for part in range(1, N_PARTS):
        total += tl.load(totals + first + part)
    return total


@launched
@triton.jit
def step_on(
    means,
    stride,
    moves,
    n_clusters,
    n_features,
    settings,
    totals,
    step_before,
    found,
    told,
    N_PARTS: tl.constexpr,
    BEFORE: tl.constexpr,
    ROWS: tl.constexpr,
    FEATURES: tl.constexpr,
):
    """`algorithm.mstep.next_step` and `m_step`, to the last bit if sums and products are not fused.

    Parameters
    ----------
    means : (C, D) float32, IN and OUT, rows `stride` apart
    moves : (C, D) float64, IN, ways to the weighted means
    settings : (4,) float64, IN, the longest step, D times the total weight, the least variance, and what share of
        the scatter is too little
    totals : (...,) float64, IN, those of `DeviceSearch.e_step`
    step_before : (1,) float64, IN with BEFORE, length of the last step
    found : (2,) float64, OUT, length of this step, and the variance after it; -1 where too little is left of the
        scatter to know it by a difference
    told : (2,) float64, OUT, the same once more
    BEFORE : constexpr, whether there were moves before, and products with them are among the totals
    """
    longest = tl.load(settings)
    gain = part_sum(totals, GAIN, N_PARTS)
    step = longest
    if BEFORE:
        square = part_sum(totals, GAIN + N_PARTS, N_PARTS)
        cross = part_sum(totals, GAIN + 2 * N_PARTS, N_PARTS)
        known = (square > 0.0) & (longest > 1.0)
        q = cross / tl.where(known, square, 1.0)
        known &= q < 1.0
        step = tl.where(known, tl.minimum(longest, tl.load(step_before) / tl.where(known, 1.0 - q, 1.0)), longest)
    if tl.program_id(0) == 0:
        scatter = tl.load(totals + SCATTER)
        remaining = scatter - (2.0 * step - step * step) * gain
        variance = tl.maximum(remaining / tl.load(settings + 1), tl.load(settings + 2))
        variance = tl.where(remaining < tl.load(settings + 3) * scatter, -1.0, variance)
        tl.store(found, step)
        tl.store(found + 1, variance)
        tl.store(told, step)
        tl.store(told + 1, variance)
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    for begin in range(0, n_features, FEATURES):
        feature = begin + tl.arange(0, FEATURES)
        inside = (row < n_clusters)[:, None] & (feature < n_features)[None, :]
        here = means + row[:, None] * stride + feature[None, :]
        mean = tl.load(here, mask=inside, other=0.0).to(tl.float64)
        move = tl.load(moves + row[:, None] * n_features + feature[None, :], mask=inside, other=0.0)
        tl.store(here, tl.fma(step + tl.zeros_like(move), move, mean).to(tl.float32), mask=inside)


@launched
@triton.jit
def go_along(means, moves, n_clusters, n_features, wide, used, stride, ROWS: tl.constexpr, FEATURES: tl.constexpr):
    """Weighted means from those of an E-step and the ways to them, as they are kept and as they are used.

    Parameters
    ----------
    means, moves : (C, D) float64, IN
    wide : (C, D) float64, OUT, their sums
    used : (C, D) float32, OUT, the same, rows `stride` apart
    """
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    for begin in range(0, n_features, FEATURES):
        feature = begin + tl.arange(0, FEATURES)
        inside = (row < n_clusters)[:, None] & (feature < n_features)[None, :]
        at = row[:, None] * n_features + feature[None, :]
        mean = tl.load(means + at, mask=inside, other=0.0) + tl.load(moves + at, mask=inside, other=0.0)
        tl.store(wide + at, mean, mask=inside)
        tl.store(used + row[:, None] * stride + feature[None, :], mean.to(tl.float32), mask=inside)
