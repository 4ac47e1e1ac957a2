"""Sums over points, in an order that follows from the data: those of the M-step, and distances of given pairs."""

from __future__ import annotations

import triton
import triton.language as tl

from .forms import pair_costs


@triton.jit
def sum_runs(
    points,
    stride,
    n_features,
    scale,
    rows,
    parts,
    run_segment,
    run_first,
    run_last,
    origins,
    sums,
    squares,
    masses,
    ENTRIES: tl.constexpr,
    FEATURES: tl.constexpr,
    SQUARES: tl.constexpr,
):
    """Sums of part (y - origin) over each run of entries, all of one segment, and of its parts.

    Parameters
    ----------
    points, stride, n_features, scale : IN, as in `search.search_tiles`
    rows : (n,) int64, IN, the point of each entry
    parts : (n,) float32, IN, its weight
    run_segment, run_first, run_last : (n_runs,), IN, run r holds the entries first..last-1
    origins : (n_segments, D) float32, IN
    sums : (n_runs, D) float32, OUT
    squares : (n_runs, D) float32, OUT with SQUARES, sums of part (y - origin)^2
    masses : (n_runs,) float32, OUT
    """
    run = tl.program_id(0)
    segment = tl.load(run_segment + run).to(tl.int64)
    first = tl.load(run_first + run)
    last = tl.load(run_last + run)
    feature = tl.program_id(1) * FEATURES + tl.arange(0, FEATURES)
    wide = feature < n_features
    origin = tl.load(origins + segment * n_features + feature, mask=wide, other=0.0)[None, :]
    total = tl.zeros((FEATURES,), tl.float32)
    total_squares = tl.zeros((FEATURES,), tl.float32)
    mass = tl.zeros((ENTRIES,), tl.float32)
    for begin in range(first, last, ENTRIES):
        entry = begin + tl.arange(0, ENTRIES)
        inside = entry < last
        row = tl.load(rows + entry, mask=inside, other=0)
        part = tl.load(parts + entry, mask=inside, other=0.0)
        y = tl.load(
            points + row[:, None] * stride + feature[None, :], mask=inside[:, None] & wide[None, :], other=0
        )
        away = y.to(tl.float32) * scale - origin
        total += tl.sum(away * part[:, None], axis=0)
        if SQUARES:
            total_squares += tl.sum(away * away * part[:, None], axis=0)
        mass += part
    tl.store(sums + run.to(tl.int64) * n_features + feature, total, mask=wide)
    if SQUARES:
        tl.store(squares + run.to(tl.int64) * n_features + feature, total_squares, mask=wide)
    if tl.program_id(1) == 0:
        tl.store(masses + run, tl.sum(mass, axis=0))


@triton.jit
def merge_runs(
    sums,
    masses,
    run_start,
    n_features,
    segment_sums,
    segment_masses,
    FEATURES: tl.constexpr,
):
    """Add the runs of every segment in their order, in float64.

    Parameters
    ----------
    sums, masses : IN, from `sum_runs`
    run_start : (n_segments + 1,) int64, IN, segment s has the runs run_start[s]..run_start[s + 1] - 1
    segment_sums : (n_segments, D) float64, OUT
    segment_masses : (n_segments,) float64, OUT
    """
    segment = tl.program_id(0)
    feature = tl.program_id(1) * FEATURES + tl.arange(0, FEATURES)
    wide = feature < n_features
    total = tl.zeros((FEATURES,), tl.float64)
    mass = tl.zeros((1,), tl.float64)
    for run in range(tl.load(run_start + segment), tl.load(run_start + segment + 1)):
        total += tl.load(sums + run * n_features + feature, mask=wide, other=0.0).to(tl.float64)
        mass += tl.load(masses + run).to(tl.float64)
    tl.store(segment_sums + segment.to(tl.int64) * n_features + feature, total, mask=wide)
    if tl.program_id(1) == 0:
        tl.store(segment_masses + segment + tl.arange(0, 1), mass)


@triton.jit
def pair_distances(
    points,
    stride,
    n_features,
    scale,
    rows,
    ids,
    n_pairs,
    centres,
    precisions,
    offsets,
    out,
    PAIRS: tl.constexpr,
    FEATURES: tl.constexpr,
    FORM: tl.constexpr,
):
    """out[i] = ||y[rows[i]] - centres[ids[i]]||^2, or a cost by FORM (see `forms`): (n_pairs,) float32, OUT."""
    pair = tl.program_id(0).to(tl.int64) * PAIRS + tl.arange(0, PAIRS)
    inside = pair < n_pairs
    row = tl.load(rows + pair, mask=inside, other=0)
    centre = tl.load(ids + pair, mask=inside, other=0).to(tl.int64)
    total = pair_costs(
        points, stride, n_features, scale, row, centre, inside, centres, precisions, offsets, PAIRS, FEATURES, FORM
    )
    tl.store(out + pair, total, mask=inside)
