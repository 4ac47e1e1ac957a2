"""Sums over points, in an order that follows from the data: those of the M-step, and distances of given pairs."""

from __future__ import annotations

import triton
import triton.language as tl

from .cells import first_piece, members_before, members_of
from .forms import pair_costs
from .launching import launched


@triton.jit
def add_entries(
    points,
    stride,
    n_features,
    scale,
    order,
    parts,
    first,
    last,
    origin,
    feature,
    total,
    total_squares,
    mass,
    PER_ROW: tl.constexpr,
    ENTRIES: tl.constexpr,
    SQUARES: tl.constexpr,
):
    """Add part (y - origin) of the entries order[first:last] to the total (F,), squares likewise, and parts."""
    wide = (feature < n_features)[None, :]
    for begin in range(first, last, ENTRIES):
        entry = begin + tl.arange(0, ENTRIES)
        inside = entry < last
        place = tl.load(order + entry, mask=inside, other=0)
        row = place // PER_ROW
        part = tl.load(parts + place, mask=inside, other=0.0)
        y = tl.load(points + row[:, None] * stride + feature[None, :], mask=inside[:, None] & wide, other=0)
        away = y.to(tl.float32) * scale - origin[None, :]
        total += tl.sum(away * part[:, None], axis=0)
        if SQUARES:
            total_squares += tl.sum(away * away * part[:, None], axis=0)
        mass += part
    return total, total_squares, mass


@launched
@triton.jit
def sum_runs(
    points,
    stride,
    n_features,
    scale,
    order,
    parts,
    start,
    n_segments,
    origins,
    origin_stride,
    sums,
    squares,
    masses,
    SIZE: tl.constexpr,
    STEPS: tl.constexpr,
    PER_ROW: tl.constexpr,
    HALVES: tl.constexpr,
    ENTRIES: tl.constexpr,
    FEATURES: tl.constexpr,
    SQUARES: tl.constexpr,
    GRAIN: tl.constexpr,
):
    """Sums of part (y - origin) over each run of entries, all of one segment, and of its parts.

    Parameters
    ----------
    points, stride, n_features, scale : IN, as in `search.search_tiles`
    order : (n,) int64, IN, the place of each entry in `parts`; the point is PER_ROW times smaller
    parts : (...,) float32, IN, weights
    start : (n_segments + 1,) int64, IN, entries of each segment; with HALVES (2 n_segments + 1,), and those from
        n_segments on are of the same segments once more
    SIZE : constexpr, entries of a run, at most
    STEPS : constexpr, as in `cells.fill_pieces`
    origins : (n_segments, D) float32, IN
    sums : (n_runs, D) float32, OUT, of runs that are not empty
    squares : (n_runs, D) float32, OUT with SQUARES, sums of part (y - origin)^2
    masses : (n_runs,) float32, OUT
    GRAIN : constexpr, as in `search.search_tiles`
    """
    stride = stride // GRAIN * GRAIN  # that they are multiples, the compiler cannot know
    n_features = n_features // GRAIN * GRAIN
    run = tl.program_id(0).to(tl.int64)
    segment, first, last = members_of(start, n_segments, SIZE, run, STEPS, HALVES)
    if first >= last:
        return
    feature = tl.program_id(1) * FEATURES + tl.arange(0, FEATURES)
    wide = feature < n_features
    origin = tl.load(origins + segment * origin_stride + feature, mask=wide, other=0.0)
    total = tl.zeros((FEATURES,), tl.float32)
    total_squares = tl.zeros((FEATURES,), tl.float32)
    mass = tl.zeros((ENTRIES,), tl.float32)
    if HALVES:  # one after the other, so that each is a run of entries
        before = members_before(start, segment, n_segments, HALVES)
        begun = tl.load(start + segment)
        end = before + tl.load(start + segment + 1) - begun
        total, total_squares, mass = add_entries(
            points, stride, n_features, scale, order + (begun - before), parts, first, tl.minimum(last, end),
            origin, feature, total, total_squares, mass, PER_ROW, ENTRIES, SQUARES,
        )  # fmt: skip
        order += tl.load(start + n_segments + segment) - end
        first = tl.maximum(first, end)
    total, total_squares, mass = add_entries(
        points, stride, n_features, scale, order, parts, first, last, origin, feature, total, total_squares, mass,
        PER_ROW, ENTRIES, SQUARES,
    )  # fmt: skip
    tl.store(sums + run * n_features + feature, total, mask=wide)
    if SQUARES:
        tl.store(squares + run * n_features + feature, total_squares, mask=wide)
    if tl.program_id(1) == 0:
        tl.store(masses + run, tl.sum(mass, axis=0))


@launched
@triton.jit
def merge_runs(
    sums,
    masses,
    start,
    size,
    n_features,
    segment_sums,
    segment_masses,
    moves,
    before,
    told,
    origins,
    origin_stride,
    wide_origins,
    FEATURES: tl.constexpr,
    HALVES: tl.constexpr,
    MOVES: tl.constexpr,
    BEFORE: tl.constexpr,
    WIDENS: tl.constexpr,
):
    """Add the runs of every segment in their order, in float64.

    Parameters
    ----------
    sums, masses : IN, from `sum_runs`
    start : int64, IN, entries of each segment as in `sum_runs`, that runs of `size` were cut from
    segment_sums : (n_segments, D) float64, OUT
    segment_masses : (n_segments,) float64, OUT
    moves : (n_segments, D) float64, OUT with MOVES, sums over masses, 0 where there is no mass
    before : (n_segments, D) float64, IN with BEFORE, moves of before
    told : (..., n_segments) float64, OUT with MOVES, first 1 where there is any mass, else 0; then, in a row for
        each part of the features, mass times the square of the move; with BEFORE likewise mass times the square of
        the move of before, and mass times the product of the two
    origins : (n_segments, D) float32, IN with WIDENS, rows `origin_stride` apart, that sums are about
    wide_origins : (n_segments, D) float64, OUT with WIDENS, the same
    """
    segment = tl.program_id(0).to(tl.int64)
    feature = tl.program_id(1) * FEATURES + tl.arange(0, FEATURES)
    wide = feature < n_features
    total = tl.zeros((FEATURES,), tl.float64)
    mass = tl.zeros((1,), tl.float64)
    n_segments, n_parts, part = tl.num_programs(0), tl.num_programs(1), tl.program_id(1)
    first = first_piece(start, segment, size, n_segments, HALVES)
    n_entries = members_before(start, segment + 1, n_segments, HALVES)
    n_entries -= members_before(start, segment, n_segments, HALVES)
    for run in range(first, first + (n_entries + size - 1) // size):
        total += tl.load(sums + run * n_features + feature, mask=wide, other=0.0).to(tl.float64)
        mass += tl.load(masses + run).to(tl.float64)
    tl.store(segment_sums + segment * n_features + feature, total, mask=wide)
    if tl.program_id(1) == 0:
        tl.store(segment_masses + segment + tl.arange(0, 1), mass)
    if WIDENS:
        origin = tl.load(origins + segment * origin_stride + feature, mask=wide, other=0.0)
        tl.store(wide_origins + segment * n_features + feature, origin.to(tl.float64), mask=wide)
    if MOVES:
        move = total / tl.where(mass > 0.0, mass, 1.0)
        tl.store(moves + segment * n_features + feature, move, mask=wide)
        place = segment + tl.arange(0, 1)
        if part == 0:
            tl.store(told + place, (mass > 0.0).to(tl.float64))
        gain = mass * tl.sum(tl.where(wide, move * move, 0.0), axis=0)
        tl.store(told + (1 + part) * n_segments + place, gain)
        if BEFORE:
            last = tl.load(before + segment * n_features + feature, mask=wide, other=0.0)
            square = mass * tl.sum(last * last, axis=0)
            cross = mass * tl.sum(tl.where(wide, last * move, 0.0), axis=0)
            tl.store(told + (1 + n_parts + part) * n_segments + place, square)
            tl.store(told + (1 + 2 * n_parts + part) * n_segments + place, cross)


@launched
@triton.jit
def row_products(masses, left, right, n_rows, n_features, products, ROWS: tl.constexpr, FEATURES: tl.constexpr):
    """Products of rows, with themselves and with others, times masses.

    Parameters
    ----------
    masses : (n_rows,) float64, IN
    left, right : (n_rows, n_features) float64, IN
    products : (2, n_rows) float64, OUT, mass left left and mass left right
    """
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    inside = row < n_rows
    square = tl.zeros((ROWS,), tl.float64)
    cross = tl.zeros((ROWS,), tl.float64)
    for begin in range(0, n_features, FEATURES):
        feature = begin + tl.arange(0, FEATURES)
        mask = inside[:, None] & (feature < n_features)[None, :]
        a = tl.load(left + row[:, None] * n_features + feature[None, :], mask=mask, other=0.0)
        b = tl.load(right + row[:, None] * n_features + feature[None, :], mask=mask, other=0.0)
        square += tl.sum(a * a, axis=1)
        cross += tl.sum(a * b, axis=1)
    mass = tl.load(masses + row, mask=inside, other=0.0)
    tl.store(products + row, mass * square, mask=inside)
    tl.store(products + n_rows + row, mass * cross, mask=inside)


@launched
@triton.jit
def add_up(facts, n_facts, rows, n_columns, totals, told, FACTS: tl.constexpr, AT_ONCE: tl.constexpr):
    """Sums of the columns of one table and of the rows of another, one program each; zeros at the end change none.

    Parameters
    ----------
    facts : (n_facts, FACTS) float64, IN
    rows : (n_rows, n_columns) float64, IN
    totals : (FACTS + n_rows,) float64, OUT
    told : (FACTS + n_rows,) float64, OUT, the same once more
    """
    number = tl.program_id(0).to(tl.int64)
    total = tl.zeros((AT_ONCE,), tl.float64)
    if number < FACTS:
        for begin in range(0, n_facts, AT_ONCE):
            place = begin + tl.arange(0, AT_ONCE)
            total += tl.load(facts + place.to(tl.int64) * FACTS + number, mask=place < n_facts, other=0.0)
    else:
        here = rows + (number - FACTS) * n_columns
        for begin in range(0, n_columns, AT_ONCE):
            place = begin + tl.arange(0, AT_ONCE)
            total += tl.load(here + place, mask=place < n_columns, other=0.0)
    total = tl.sum(total, axis=0)
    tl.store(totals + number, total)
    tl.store(told + number, total)


@launched
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
    centre_stride,
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
        points, stride, n_features, scale, row, centre, inside, centres, centre_stride, precisions, offsets, PAIRS,
        FEATURES, FORM,
    )  # fmt: skip
    tl.store(out + pair, total, mask=inside)
