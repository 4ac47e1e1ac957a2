"""Groups of points: what is in each, and a sample of each."""

from __future__ import annotations

import triton
import triton.language as tl

from .launching import launched


@launched
@triton.jit
def survey_groups(order, start, weights, distances, facts, masses, MEMBERS: tl.constexpr):
    """Size, weight and weighted squared error of every group, one program each.

    Parameters
    ----------
    order : (n,) int64, IN
    start : (n_groups + 1,) int64, IN, group g has the points order[start[g]:start[g + 1]]
    weights, distances : (N,) float32, IN
    facts : (3, n_groups) float64, OUT
    masses : (n_groups,) float64, OUT, the weights once more
    """
    group = tl.program_id(0).to(tl.int64)
    first = tl.load(start + group)
    last = tl.load(start + group + 1)
    mass = tl.zeros((MEMBERS,), tl.float64)
    error = tl.zeros((MEMBERS,), tl.float64)
    for begin in range(first, last, MEMBERS):
        place = begin + tl.arange(0, MEMBERS)
        row = tl.load(order + place, mask=place < last, other=0)
        weight = tl.load(weights + row, mask=place < last, other=0.0).to(tl.float64)
        distance = tl.load(distances + row, mask=place < last, other=0.0).to(tl.float64)
        mass += weight
        error += weight * distance
    n_groups = tl.num_programs(0)
    tl.store(facts + group, (last - first).to(tl.float64))
    total = tl.sum(mass, axis=0)
    tl.store(facts + n_groups + group, total)
    tl.store(masses + group, total)
    tl.store(facts + 2 * n_groups + group, tl.sum(error, axis=0))


@launched
@triton.jit
def sample_groups(
    order,
    start,
    sample_start,
    n_groups,
    uniforms,
    sample,
    STEPS: tl.constexpr,
    MEMBERS: tl.constexpr,
):
    """Of every group one member from each of as many equal runs as are wanted.

    Parameters
    ----------
    order, start : IN, as in `survey_groups`
    sample_start : (n_groups + 1,) int64, IN, the sample of group g is sample[sample_start[g]:sample_start[g + 1]]
    uniforms : (n_sampled,) float64, IN; there may be more
    sample : (n_sampled,) int64, OUT
    STEPS : constexpr, 2^STEPS is more than n_groups
    """
    place = tl.program_id(0).to(tl.int64) * MEMBERS + tl.arange(0, MEMBERS)
    inside = place < tl.load(sample_start + n_groups)
    low = tl.zeros((MEMBERS,), tl.int64)
    high = tl.zeros((MEMBERS,), tl.int64) + n_groups
    for _ in range(STEPS):  # bisection: the last group that begins no later
        middle = (low + high) // 2
        begun = tl.load(sample_start + middle) <= place
        low, high = tl.where(begun, middle, low), tl.where(begun, high, middle)
    first = tl.load(start + low)
    size = tl.load(start + low + 1) - first
    begin = tl.load(sample_start + low)
    count = tl.load(sample_start + low + 1) - begin
    jitter = tl.load(uniforms + place, mask=inside, other=0.0)
    length = size.to(tl.float64) / tl.maximum(count, 1).to(tl.float64)
    chosen = (((place - begin).to(tl.float64) + jitter) * length).to(tl.int64)
    row = tl.load(order + first + tl.minimum(chosen, size - 1), mask=inside, other=0)
    tl.store(sample + place, row, mask=inside)


@launched
@triton.jit
def gather_columns(
    points, stride, n_features, scale, order, n_rows, columns, ROWS: tl.constexpr, FEATURES: tl.constexpr
):
    """Coordinates of some points, feature by feature.

    Parameters
    ----------
    points, stride, n_features, scale : IN, as in `search.search_tiles`
    order : (n_rows,) int64, IN
    columns : (n_features, n_rows) float32, OUT
    """
    place = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    feature = tl.program_id(1).to(tl.int64) * FEATURES + tl.arange(0, FEATURES)
    mask = (place < n_rows)[:, None] & (feature < n_features)[None, :]
    row = tl.load(order + place, mask=place < n_rows, other=0)
    y = tl.load(points + row[:, None] * stride + feature[None, :], mask=mask, other=0).to(tl.float32) * scale
    tl.store(columns + feature[:, None] * n_rows + place[None, :], tl.trans(y), mask=tl.trans(mask))


@launched
@triton.jit
def gather_rows(
    points, stride, n_features, scale, order, n_rows, room, width, ROWS: tl.constexpr, FEATURES: tl.constexpr
):
    """Coordinates of some points, row by row.

    Parameters
    ----------
    points, stride, n_features, scale : IN, as in `search.search_tiles`
    order : (n_rows,) int64, IN
    room : (n_rows, width) float32, OUT, 0 beyond the features
    """
    place = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    feature = tl.program_id(1).to(tl.int64) * FEATURES + tl.arange(0, FEATURES)
    inside = (place < n_rows)[:, None]
    row = tl.load(order + place, mask=place < n_rows, other=0)
    y = tl.load(
        points + row[:, None] * stride + feature[None, :], mask=inside & (feature < n_features)[None, :], other=0
    )
    tl.store(
        room + place[:, None] * width + feature[None, :],
        y.to(tl.float32) * scale,
        mask=inside & (feature < width)[None, :],
    )
