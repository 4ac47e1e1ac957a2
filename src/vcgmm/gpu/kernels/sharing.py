"""Which seeds of which cells become clusters, and how many points of each cell then count."""

from __future__ import annotations

import triton
import triton.language as tl

from .launching import launched

#: Worth of a first seed of a cell: more than that of any other.
FIRST = tl.constexpr(1 << 62)


@triton.jit
def group_of(start, n_groups, place, STEPS: tl.constexpr):
    """The group of each place: the last one that begins no later, by start (n_groups + 1,) int64."""
    low = place * 0
    high = low + n_groups
    for _ in range(STEPS):
        middle = (low + high) // 2
        begun = tl.load(start + middle) <= place
        low, high = tl.where(begun, middle, low), tl.where(begun, high, middle)
    return low


@launched
@triton.jit
def worths_of_seeds(
    seeds,
    potentials,
    start,
    n_cells,
    n_seeds,
    worths,
    cleared,
    n_cleared,
    STEPS: tl.constexpr,
    SEEDS: tl.constexpr,
):
    """What each seed would add, as `share_by_potential` (`algorithm.seeding.sharing`): numbers of the same order.

    Parameters
    ----------
    seeds : (n_seeds,) int64, IN, -1 where a cell has no more
    potentials : (n_seeds,) float64, IN, not negative
    start : (n_cells + 1,) int64, IN, seeds of each cell
    worths : (n_seeds,) int64, OUT, -1 for those that are not there
    cleared : (n_cleared,) int64, OUT, 0, for those who come next
    STEPS : constexpr, 2^STEPS is more than n_cells
    """
    seed = tl.program_id(0).to(tl.int64) * SEEDS + tl.arange(0, SEEDS)
    inside = seed < n_seeds
    cell = group_of(start, n_cells, seed, STEPS)
    place = seed - tl.load(start + cell)
    is_first = place == 0
    potential = tl.load(potentials + tl.where(is_first, seed, seed - 1), mask=inside, other=0.0)
    potential = tl.maximum(potential, 0.0) / tl.maximum(place, 1).to(tl.float64)
    worth = potential.to(tl.int64, bitcast=True) >> 1  # floats that are not negative order as their bits do
    worth += tl.where(is_first, FIRST, 0)
    there = tl.load(seeds + seed, mask=inside, other=-1) >= 0
    tl.store(worths + seed, tl.where(there, worth, -1), mask=inside)
    for begin in range(tl.program_id(0) * SEEDS, n_cleared, tl.num_programs(0) * SEEDS):
        slot = begin + tl.arange(0, SEEDS)
        tl.store(cleared + slot, tl.zeros((SEEDS,), tl.int64), mask=slot < n_cleared)


@launched
@triton.jit
def count_chosen(worths, order, n_chosen, start, n_cells, counts, STEPS: tl.constexpr, SEEDS: tl.constexpr):
    """How many seeds of each cell are among the first.

    Parameters
    ----------
    worths : (n_seeds,) int64, IN, the largest first
    order : (n_seeds,) int64, IN, whose they are
    start : (n_cells + 1,) int64, IN, seeds of each cell
    counts : (n_cells,) int64, IN and OUT, 0 before
    STEPS : constexpr, 2^STEPS is more than n_cells
    """
    place = tl.program_id(0).to(tl.int64) * SEEDS + tl.arange(0, SEEDS)
    inside = place < n_chosen
    inside &= tl.load(worths + place, mask=inside, other=-1) >= 0
    cell = group_of(start, n_cells, tl.load(order + place, mask=inside, other=0), STEPS)
    tl.atomic_add(counts + cell, 1, mask=inside)  # integers: in whatever order


@launched
@triton.jit
def begin_cells(counts, point_start, n_cells, per_centre, centre_start, sample_start, told, CELLS: tl.constexpr):
    """Where centres of every cell begin, and some of its points: so many a centre, or all; by one program.

    Parameters
    ----------
    counts : (n_cells,) int64, IN, centres of each cell
    point_start : (n_cells + 1,) int64, IN, points of each cell
    centre_start, sample_start : (n_cells + 1,) int64, OUT
    told : (n_cells,) int64, OUT, the counts once more
    """
    zero = tl.zeros((1,), tl.int64)
    tl.store(centre_start + tl.arange(0, 1), zero)
    tl.store(sample_start + tl.arange(0, 1), zero)
    n_centres, n_sampled = tl.zeros((), tl.int64), tl.zeros((), tl.int64)
    for begin in range(0, n_cells, CELLS):
        cell = begin + tl.arange(0, CELLS)
        inside = cell < n_cells
        count = tl.load(counts + cell, mask=inside, other=0)
        tl.store(told + cell, count, mask=inside)
        size = tl.load(point_start + cell + 1, mask=inside, other=0)
        size -= tl.load(point_start + cell, mask=inside, other=0)
        some = tl.minimum(size, per_centre * count)
        tl.store(centre_start + cell + 1, n_centres + tl.cumsum(count, axis=0), mask=inside)
        tl.store(sample_start + cell + 1, n_sampled + tl.cumsum(some, axis=0), mask=inside)
        n_centres += tl.sum(count, axis=0)
        n_sampled += tl.sum(some, axis=0)


@launched
@triton.jit
def take_seeds(seeds, start, n_cells, n_seeds, centre_start, taken, STEPS: tl.constexpr, SEEDS: tl.constexpr):
    """The first seeds of every cell, as many as it has centres.

    Parameters
    ----------
    seeds : (n_seeds,) int64, IN
    start : (n_cells + 1,) int64, IN, seeds of each cell
    centre_start : (n_cells + 1,) int64, IN
    taken : (n_centres,) int64, OUT
    STEPS : constexpr, 2^STEPS is more than n_cells
    """
    seed = tl.program_id(0).to(tl.int64) * SEEDS + tl.arange(0, SEEDS)
    inside = seed < n_seeds
    cell = group_of(start, n_cells, seed, STEPS)
    target = tl.load(centre_start + cell) + seed - tl.load(start + cell)
    inside &= target < tl.load(centre_start + cell + 1)
    tl.store(taken + target, tl.load(seeds + seed, mask=inside, other=0), mask=inside)


@launched
@triton.jit
def draw_in_strata(
    points,
    stride,
    n_features,
    scale,
    order,
    n_rows,
    n_strata,
    uniforms,
    weights,
    near,
    drawn,
    width,
    MEMBERS: tl.constexpr,
    FEATURES: tl.constexpr,
    BY_DISTANCE: tl.constexpr,
):
    """One of each stratum, which is every n_strata-th row: any, or by weight and distance.

    Parameters
    ----------
    points, stride, n_features, scale : IN, as in `search.search_tiles`
    order : (n_rows,) int64, IN
    uniforms : (n_strata,) float64, IN
    weights : (N,) float32, IN with BY_DISTANCE
    near : (n_rows,) float32, IN with BY_DISTANCE, squared distances
    drawn : (n_strata, width) float32, OUT, coordinates of those, 0 beyond the features
    MEMBERS : constexpr, a power of two, no stratum has more
    FEATURES : constexpr, how many are read at a time
    """
    stratum = tl.program_id(0).to(tl.int64)
    member = tl.arange(0, MEMBERS)
    place = stratum + member * n_strata
    inside = place < n_rows
    uniform = tl.load(uniforms + stratum)
    mass = inside.to(tl.float64)
    if BY_DISTANCE:
        row = tl.load(order + place, mask=inside, other=0)
        mass = tl.load(weights + row, mask=inside, other=0.0).to(tl.float64)
        mass *= tl.load(near + place, mask=inside, other=0.0).to(tl.float64)
    target = uniform * tl.sum(mass, axis=0)
    beyond = (tl.cumsum(mass, axis=0) > target) & (mass > 0)
    latest = tl.max(tl.where(mass > 0, member, 0), axis=0)  # rounding may point just past the last of any mass
    pick = tl.minimum(tl.min(tl.where(beyond, member, MEMBERS), axis=0), latest)
    source = points + tl.load(order + stratum + pick * n_strata) * stride
    for begin in range(0, width, FEATURES):
        feature = begin + tl.arange(0, FEATURES)
        y = tl.load(source + feature, mask=feature < n_features, other=0)
        tl.store(drawn + stratum * width + feature, y.to(tl.float32) * scale, mask=feature < width)
