"""What is to be known of all rows before a fit: mean and scatter, and how many differ."""

from __future__ import annotations

import triton
import triton.language as tl

from .launching import launched


@triton.jit
def widened(values):
    """Values of any type in float64."""
    if values.dtype.primitive_bitwidth < 32:
        values = values.to(tl.float32)
    return values.to(tl.float64)


@launched
@triton.jit
def survey_blocks(
    rows, stride, n_rows, n_features, size, means, scatters, ROWS: tl.constexpr, FEATURES: tl.constexpr
):
    """Mean and scatter of every block of rows that follow one another, read once more for the scatter.

    Parameters
    ----------
    rows : (n_rows, n_features) of any type, IN, `stride` apart
    size : int, IN, rows of a block, of the last one what is left
    means : (n_blocks, n_features) float64, OUT
    scatters : (n_blocks, n_features) float64, OUT, sums of squared distances to the block's mean
    ROWS : constexpr, rows that are read at a time
    """
    block = tl.program_id(0).to(tl.int64)
    first = block * size
    last = tl.minimum(first + size, n_rows)
    feature = tl.program_id(1) * FEATURES + tl.arange(0, FEATURES)
    wide = feature < n_features
    total = tl.zeros((FEATURES,), tl.float64)
    for begin in range(first, last, ROWS):
        row = begin + tl.arange(0, ROWS)
        mask = (row < last)[:, None] & wide[None, :]
        total += tl.sum(
            widened(tl.load(rows + row[:, None] * stride + feature[None, :], mask=mask, other=0)), axis=0
        )
    mean = total / (last - first).to(tl.float64)
    scatter = tl.zeros((FEATURES,), tl.float64)
    for begin in range(first, last, ROWS):
        row = begin + tl.arange(0, ROWS)
        mask = (row < last)[:, None] & wide[None, :]
        y = widened(tl.load(rows + row[:, None] * stride + feature[None, :], mask=mask, other=0))
        away = tl.where(mask, y - mean[None, :], 0.0)
        scatter += tl.sum(away * away, axis=0)
    tl.store(means + block * n_features + feature, mean, mask=wide)
    tl.store(scatters + block * n_features + feature, scatter, mask=wide)


@launched
@triton.jit
def merge_blocks(
    means, scatters, n_rows, n_features, size, n_blocks, merged, BLOCKS: tl.constexpr, FEATURES: tl.constexpr
):
    """Mean and scatter of all rows from those of blocks.

    Parameters
    ----------
    means, scatters, n_rows, n_features, size : IN, as in `survey_blocks`
    merged : (2, n_features) float64, OUT, the mean, and the sums of squared distances to it
    BLOCKS : constexpr, blocks that are read at a time
    """
    feature = tl.program_id(0) * FEATURES + tl.arange(0, FEATURES)
    wide = feature < n_features
    total = tl.zeros((FEATURES,), tl.float64)
    for begin in range(0, n_blocks, BLOCKS):
        block = begin + tl.arange(0, BLOCKS).to(tl.int64)
        mask = (block < n_blocks)[:, None] & wide[None, :]
        count = tl.minimum(size, n_rows - block * size).to(tl.float64)
        at = block[:, None] * n_features + feature[None, :]
        total += tl.sum(
            tl.where(mask, tl.load(means + at, mask=mask, other=0.0) * (count / n_rows)[:, None], 0.0), axis=0
        )
    scatter = tl.zeros((FEATURES,), tl.float64)
    for begin in range(0, n_blocks, BLOCKS):
        block = begin + tl.arange(0, BLOCKS).to(tl.int64)
        mask = (block < n_blocks)[:, None] & wide[None, :]
        count = tl.minimum(size, n_rows - block * size).to(tl.float64)
        at = block[:, None] * n_features + feature[None, :]
        away = tl.load(means + at, mask=mask, other=0.0) - total[None, :]
        own = tl.load(scatters + at, mask=mask, other=0.0)
        scatter += tl.sum(tl.where(mask, own + count[:, None] * away * away, 0.0), axis=0)
    tl.store(merged + feature, total, mask=wide)
    tl.store(merged + n_features + feature, scatter, mask=wide)


@launched
@triton.jit
def mean_of_some(
    points, stride, n_features, scale, step, n_rows, middle, ROWS: tl.constexpr, FEATURES: tl.constexpr
):
    """Mean of every so-many-th point.

    Parameters
    ----------
    points, stride, n_features, scale : IN, as in `search.search_tiles`
    step : int, IN, from one point that is looked at to the next
    n_rows : int, IN, how many are looked at
    middle : (n_features,) float32, OUT
    ROWS : constexpr, points that are read at a time
    """
    feature = tl.program_id(0) * FEATURES + tl.arange(0, FEATURES)
    wide = feature < n_features
    total = tl.zeros((FEATURES,), tl.float32)
    for begin in range(0, n_rows, ROWS):
        row = begin + tl.arange(0, ROWS).to(tl.int64)
        mask = (row < n_rows)[:, None] & wide[None, :]
        y = tl.load(points + (row * step)[:, None] * stride + feature[None, :], mask=mask, other=0)
        total += tl.sum(y.to(tl.float32) * scale, axis=0)
    tl.store(middle + feature, total / n_rows, mask=wide)


@launched
@triton.jit
def hash_rows(
    rows, stride, n_rows, n_features, odd, hashes, seen, n_seen, ROWS: tl.constexpr, FEATURES: tl.constexpr
):
    """A fingerprint of every row, equal for equal rows.

    Parameters
    ----------
    rows : (n_rows, n_features) of any type, IN, `stride` apart
    odd : (n_features,) int64, IN
    hashes : (n_rows,) int64, OUT
    seen : (n_seen,) int8, OUT, 1 at the fingerprints' places, of which there is a power of two; else as it was
    """
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    inside = row < n_rows
    total = tl.zeros((ROWS,), tl.int64)
    for begin in range(0, n_features, FEATURES):
        feature = begin + tl.arange(0, FEATURES)
        wide = feature < n_features
        mask = inside[:, None] & wide[None, :]
        y = tl.load(rows + row[:, None] * stride + feature[None, :], mask=mask, other=0)
        pattern = bits_of(y).to(tl.int64)
        factor = tl.load(odd + feature, mask=wide, other=0)[None, :]
        mixed = tl.where(y == 0, 0, pattern) * factor  # -0.0 equals 0.0
        total += tl.sum((mixed ^ (mixed >> 29)) * factor, axis=1)
    tl.store(hashes + row, total, mask=inside)
    tl.store(seen + ((total ^ (total >> 32)) & (n_seen - 1)), tl.full((ROWS,), 1, tl.int8), mask=inside)


@triton.jit
def bits_of(values):
    """Values of any type as integers of as many bits."""
    if values.dtype.primitive_bitwidth == 64:
        bits = values.to(tl.int64, bitcast=True)
    elif values.dtype.primitive_bitwidth == 32:
        bits = values.to(tl.int32, bitcast=True)
    elif values.dtype.primitive_bitwidth == 16:
        bits = values.to(tl.int16, bitcast=True)
    else:
        bits = values.to(tl.int8, bitcast=True)
    return bits


@triton.jit
def away_from(points, stride, n_features, scale, row, inside, feature, origin):
    """Coordinates (R, F) of some rows about an origin (F,), and a 1 behind the last feature."""
    wide = inside[:, None] & (feature < n_features)[None, :]
    y = tl.load(points + row[:, None] * stride + feature[None, :], mask=wide, other=0).to(tl.float32) * scale
    y = tl.where(wide, y - origin[None, :], 0.0)
    return tl.where(inside[:, None] & (feature == n_features)[None, :], 1.0, y)


@launched
@triton.jit
def scatter_rows(
    points,
    stride,
    n_features,
    scale,
    weights,
    rows,
    n_rows,
    products,
    ROWS: tl.constexpr,
    FEATURES: tl.constexpr,
):
    """Weighted products of all features of some points, and of a 1 behind the last, for each block of them.

    Coordinates are taken about the mean of the first block.

    Parameters
    ----------
    points, stride, n_features, scale : IN, as in `search.search_tiles`
    weights : (N,) float32, IN
    rows : (n_rows,) int64, IN
    products : (n_blocks, D + 1, D + 1) float32, OUT
    ROWS : constexpr, rows of a block
    """
    block = tl.program_id(0)
    feature = tl.program_id(1) * FEATURES + tl.arange(0, FEATURES)
    other = tl.program_id(2) * FEATURES + tl.arange(0, FEATURES)
    place = tl.arange(0, ROWS)
    zero = tl.zeros((FEATURES,), tl.float32)
    row = tl.load(rows + place, mask=place < n_rows, other=0)
    n_first = tl.minimum(n_rows, ROWS).to(tl.float32)
    origin = (
        tl.sum(away_from(points, stride, n_features, scale, row, place < n_rows, feature, zero), axis=0) / n_first
    )
    beyond = (
        tl.sum(away_from(points, stride, n_features, scale, row, place < n_rows, other, zero), axis=0) / n_first
    )
    place += block * ROWS
    inside = place < n_rows
    row = tl.load(rows + place, mask=inside, other=0)
    a = away_from(points, stride, n_features, scale, row, inside, feature, origin)
    b = away_from(points, stride, n_features, scale, row, inside, other, beyond)
    a *= tl.load(weights + row, mask=inside, other=0.0)[:, None]
    width = n_features + 1
    tl.store(
        products + (block * width + feature[:, None]) * width + other[None, :],
        tl.dot(tl.trans(a), b, input_precision="tf32x3"),
        mask=(feature < width)[:, None] & (other < width)[None, :],
    )


@launched
@triton.jit
def add_blocks(products, n_blocks, n_values, total, BLOCKS: tl.constexpr, VALUES: tl.constexpr):
    """Numbers of all blocks added up, value by value.

    Parameters
    ----------
    products : (n_blocks, n_values) float32, IN
    total : (n_values,) float64, OUT
    BLOCKS : constexpr, the power of two from n_blocks on
    """
    value = tl.program_id(0) * VALUES + tl.arange(0, VALUES)
    block = tl.arange(0, BLOCKS)
    mask = (block < n_blocks)[:, None] & (value < n_values)[None, :]
    found = tl.load(products + block[:, None] * n_values + value[None, :], mask=mask, other=0.0)
    tl.store(total + value, tl.sum(found.to(tl.float64), axis=0), mask=value < n_values)


@launched
@triton.jit
def multiply_parts(left, right, n, size, parts, AT_ONCE: tl.constexpr):
    """Products of numbers one by one, added up by part, one program each.

    Parameters
    ----------
    left, right : (n,) float32, IN
    size : int, IN, numbers of a part
    parts : (n_parts,) float64, OUT
    """
    first = tl.program_id(0).to(tl.int64) * size
    last = tl.minimum(first + size, n)
    total = tl.zeros((AT_ONCE,), tl.float64)
    for begin in range(first, last, AT_ONCE):
        place = begin + tl.arange(0, AT_ONCE)
        one = tl.load(left + place, mask=place < last, other=0.0).to(tl.float64)
        total += one * tl.load(right + place, mask=place < last, other=0.0).to(tl.float64)
    tl.store(parts + tl.program_id(0), tl.sum(total, axis=0))
