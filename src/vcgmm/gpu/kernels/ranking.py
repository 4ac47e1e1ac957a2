"""Rankings, and lists without repetitions."""

from __future__ import annotations

import triton
import triton.language as tl

from .launching import launched


@launched
@triton.jit
def rank_rows(values, n_places, found, count, PLACES: tl.constexpr, COUNT: tl.constexpr, AT_ONCE: tl.constexpr):
    """Places of the `count` smallest values of a row, ascending; among equals the first places.

    The largest that counts is found bit by bit, by counting how many are smaller; those up to it are then few
    enough to be compared with one another.

    Parameters
    ----------
    values : (n, n_places) float32, IN
    found : (n, count) int, OUT; count is not more than n_places
    PLACES, COUNT : constexpr, powers of two from n_places and from count on
    AT_ONCE : constexpr, values that all are compared with at a time
    """
    here = values + tl.program_id(0).to(tl.int64) * n_places
    target = found + tl.program_id(0).to(tl.int64) * count
    place = tl.arange(0, PLACES)
    inside = place < n_places
    keys = ordered_bits(tl.load(here + place, mask=inside, other=float("inf")))
    keys = tl.where(inside, keys, 0xFFFFFFFF)  # more than of any value
    limit = tl.zeros((), tl.uint32)
    bit = tl.full((), 0x80000000, tl.uint32)
    n_smaller = tl.zeros((), tl.int32)
    for _ in range(32):
        if n_smaller != count:  # else all that count are below the limit, and no other
            n_smaller = tl.sum((keys < (limit | bit)).to(tl.int32), axis=0)
            limit = tl.where(n_smaller <= count, limit | bit, limit)
            bit = bit >> 1
    smaller = (keys < limit).to(tl.int32)
    equal = (keys == limit).to(tl.int32)
    n_smaller = tl.sum(smaller, axis=0)
    both = tl.cumsum(smaller + (equal << 16), axis=0)  # two counts in one number: there are few places
    among_smaller, among_equals = both & 0xFFFF, both >> 16
    taken = (smaller > 0) | ((equal > 0) & (among_equals <= count - n_smaller))
    position = among_smaller + tl.minimum(among_equals, count - n_smaller) - 1
    tl.store(target + position, place.to(target.dtype.element_ty), mask=taken)
    tl.debug_barrier()
    column = tl.arange(0, COUNT)
    own_place = tl.load(target + column, mask=column < count, other=0)
    own = ordered_bits(tl.load(here + own_place, mask=column < count, other=float("inf")))
    rank = tl.zeros((COUNT,), tl.int32)
    for begin in range(0, count, AT_ONCE):
        others = begin + tl.arange(0, AT_ONCE)
        other_place = tl.load(target + others, mask=others < count, other=0)
        other = ordered_bits(tl.load(here + other_place, mask=others < count, other=float("inf")))
        earlier = (other[None, :] == own[:, None]) & (others[None, :] < column[:, None])
        before = ((other[None, :] < own[:, None]) | earlier) & (others < count)[None, :]
        rank += tl.sum(before.to(tl.int32), axis=1)
    tl.debug_barrier()
    tl.store(target + rank, own_place, mask=column < count)


@triton.jit
def ordered_bits(values):
    """Numbers, uint32, that order as float32 values do."""
    values += 0.0  # -0.0 equals 0.0
    bits = values.to(tl.int32, bitcast=True)
    return (bits ^ ((bits >> 31) | -2147483648)).to(tl.uint32, bitcast=True)


@launched
@triton.jit
def order_rows(
    values, n_places, count, ordered, order, PART: tl.constexpr, AT_ONCE: tl.constexpr, DESCENDING: tl.constexpr
):
    """Rows of numbers in order, among equals the first places first: the place of each is how many come before it.

    Of each row the first `count` are put down.

    Parameters
    ----------
    values : (n, n_places) int or float64, IN
    ordered : (n, count) likewise, OUT
    order : (n, count) int64, OUT, where each of them was
    PART : constexpr, places of a row that a program finds
    AT_ONCE : constexpr, values that those are compared with at a time
    """
    row = tl.program_id(0).to(tl.int64) * n_places
    place = tl.program_id(1) * PART + tl.arange(0, PART)
    inside = place < n_places
    value = tl.load(values + row + place, mask=inside, other=0)
    own = comparable(value)
    rank = tl.zeros((PART, AT_ONCE), tl.int32)
    for begin in range(0, n_places, AT_ONCE):
        other = begin + tl.arange(0, AT_ONCE)
        key = comparable(tl.load(values + row + other, mask=other < n_places, other=0))[None, :]
        before = (key > own[:, None]) if DESCENDING else (key < own[:, None])
        before |= (key == own[:, None]) & (other[None, :] < place[:, None])
        rank += (before & (other < n_places)[None, :]).to(tl.int32)
    target = tl.sum(rank, axis=1)
    inside = inside & (target < count)
    target += tl.program_id(0).to(tl.int64) * count
    tl.store(ordered + target, value, mask=inside)
    tl.store(order + target, place.to(tl.int64), mask=inside)


@triton.jit
def comparable(values):
    """Integers that order as values, int or float64, do: any two are equal or not, even those of NaN."""
    if values.dtype == tl.float64:
        bits = (values + 0.0).to(tl.int64, bitcast=True)  # -0.0 equals 0.0
        return bits ^ ((bits >> 63) & 0x7FFFFFFFFFFFFFFF)
    else:  # noqa: RET505 - the compiler takes one type for all that it reads
        return values


@triton.jit
def n_equal_before(own, here, n_places, place, PLACES: tl.constexpr, AT_ONCE: tl.constexpr):
    """How many of the ids at `here` before each place (PLACES,) equal its own (PLACES,): (PLACES,) int32.

    Places go from thread to thread, so that no two of those need to add up anything before the end.
    """
    total = tl.zeros((AT_ONCE, PLACES), tl.int32)
    for begin in range(0, n_places, AT_ONCE):
        earlier = begin + tl.arange(0, AT_ONCE)
        other = tl.load(here + earlier, mask=earlier < n_places, other=-1)
        same = (own[None, :] == other[:, None]) & (earlier[:, None] < place[None, :])
        total += same.to(tl.int32)
    return tl.sum(total, axis=0)


@triton.jit
def store_firsts(own, n_before, target, count, COUNT: tl.constexpr):
    """Store the first `count` of ids (PLACES,) that none before is equal to, and -1 where there are fewer."""
    is_first = ((n_before == 0) & (own >= 0)).to(tl.int32)
    rank = tl.cumsum(is_first, axis=0) - 1
    tl.store(target + rank, own, mask=(is_first > 0) & (rank < count))
    column = tl.arange(0, COUNT)
    missing = (column >= tl.sum(is_first, axis=0)) & (column < count)
    tl.store(target + column, tl.full((COUNT,), -1, target.dtype.element_ty), mask=missing)


@triton.jit
def proposed(place, cluster, nearest, order, start, n_clusters, length, n_neighbors, room, BAND: tl.constexpr):
    """Who is proposed to a cluster at some places (P,): int32, -1 for nobody.  See `join_lists`."""
    own = nearest + cluster * length
    head = 1 + n_neighbors * n_neighbors
    followers = head + length - room
    tail = followers + room
    in_union = (place >= 1) & (place < head)
    via = tl.load(own + (place - 1) // n_neighbors, mask=in_union, other=0).to(tl.int64)
    union = tl.load(nearest + via * length + (place - 1) % n_neighbors, mask=in_union, other=-1)
    in_head = (place >= head) & (place < followers)
    in_tail = (place >= tail) & (place < tail + room)
    rank = tl.where(in_head, place - head, place - tail + length - room)
    listed = tl.load(own + rank, mask=in_head | in_tail, other=-1)
    at = tl.load(start + cluster) + place - followers
    following = (place >= followers) & (place < tail) & (at < tl.load(start + cluster + 1))
    follower = (tl.load(order + at, mask=following, other=0) // BAND % n_clusters).to(tl.int32)
    found = tl.where(in_union, union, tl.where(following, follower, listed))
    return tl.where(place == 0, cluster.to(tl.int32), found)


@launched
@triton.jit
def join_lists(
    nearest,
    order,
    start,
    n_clusters,
    length,
    n_neighbors,
    room,
    n_places,
    proposals,
    candidates,
    BAND: tl.constexpr,
    PLACES: tl.constexpr,
    COUNT: tl.constexpr,
    AT_ONCE: tl.constexpr,
):
    """The first `length` different ones of: itself, neighbours of neighbours, the nearest, followers, the others.

    Parameters
    ----------
    nearest : (C, length) int32, IN, the nearest of each cluster, itself first; the first n_neighbors of them are
        its neighbours, the last `room` come after the followers
    order, start : IN, places in the lists, band by band, by who is listed there: `neighbourhoods.follower_groups`
    n_places : int, IN, 1 + n_neighbors^2 + length + room
    proposals : (C, n_places) int32, scratch
    candidates : (C, length) int32, OUT
    PLACES, COUNT : constexpr, powers of two from n_places and from length on
    AT_ONCE : constexpr, ids that all are compared with at a time
    """
    cluster = tl.program_id(0).to(tl.int64)
    place = tl.arange(0, PLACES)
    own = proposed(place, cluster, nearest, order, start, n_clusters, length, n_neighbors, room, BAND)
    here = proposals + cluster * n_places
    tl.store(here + place, own, mask=place < n_places)
    tl.debug_barrier()
    n_before = n_equal_before(own, here, n_places, place, PLACES, AT_ONCE)
    store_firsts(own, n_before, candidates + cluster * length, length, COUNT)


@launched
@triton.jit
def compare_all(
    means,
    stride,
    first,
    n_rows,
    n_clusters,
    distances,
    ROWS: tl.constexpr,
    OTHERS: tl.constexpr,
    FEATURES: tl.constexpr,
):
    """Squared distances between some clusters and all, by products with all digits about the first of all.

    Parameters
    ----------
    means : (n_clusters, stride) float32, IN, 0 beyond the features
    first, n_rows : int, IN, which some
    distances : (n_rows, n_clusters) float32, OUT, of a cluster to itself -infinity
    """
    place = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    row = (first + place).to(tl.int64)
    other = (tl.program_id(1) * OTHERS + tl.arange(0, OTHERS)).to(tl.int64)
    products = tl.zeros((ROWS, OTHERS), tl.float32)
    row_squares = tl.zeros((ROWS,), tl.float32)
    other_squares = tl.zeros((OTHERS,), tl.float32)
    for begin in range(0, stride, FEATURES):
        feature = begin + tl.arange(0, FEATURES)
        wide = feature < stride
        zero = tl.load(means + feature, mask=wide, other=0.0)[None, :]
        there = (place < n_rows)[:, None] & wide[None, :]
        a = tl.load(means + row[:, None] * stride + feature[None, :], mask=there, other=0.0) - zero
        there = (other < n_clusters)[:, None] & wide[None, :]
        b = tl.load(means + other[:, None] * stride + feature[None, :], mask=there, other=0.0) - zero
        products = tl.dot(a, tl.trans(b), products, input_precision="tf32x3")
        row_squares += tl.sum(a * a, axis=1)
        other_squares += tl.sum(b * b, axis=1)
    squares = row_squares[:, None] + other_squares[None, :] - 2.0 * products
    squares = tl.where(row[:, None] == other[None, :], float("-inf"), squares)  # itself comes first
    tl.store(
        distances + place[:, None].to(tl.int64) * n_clusters + other[None, :],
        squares,
        mask=(place < n_rows)[:, None] & (other < n_clusters)[None, :],
    )


@launched
@triton.jit
def list_by_band(nearest, n_clusters, length, n_listed, listed, BAND: tl.constexpr, PLACES: tl.constexpr):
    """Who is listed, band by band, and within a band cluster by cluster: `neighbourhoods.follower_groups`.

    Parameters
    ----------
    nearest : (n_clusters, length) int32, IN, itself first
    listed : (n_listed,) int16 or int32, OUT, n_clusters where there is nobody; a cluster has whole bands of places
    BAND : constexpr, places of a band
    """
    at = tl.program_id(0).to(tl.int64) * PLACES + tl.arange(0, PLACES)
    cluster = at // BAND % n_clusters
    place = 1 + at // BAND // n_clusters * BAND + at % BAND
    inside = at < n_listed
    who = tl.load(nearest + cluster * length + place, mask=inside & (place < length), other=n_clusters)
    tl.store(listed + at, who.to(listed.dtype.element_ty), mask=inside)


@launched
@triton.jit
def mark_listed(lists, length, n_words, marks, COUNT: tl.constexpr, WORDS: tl.constexpr):
    """A bit for every cluster that is on a list, one program for each list.

    Parameters
    ----------
    lists : (C, length) int32, IN, no cluster twice; -1: none
    marks : (C, n_words) int32, OUT, 32 clusters a number
    COUNT, WORDS : constexpr, powers of two from length and from n_words on
    """
    here = marks + tl.program_id(0).to(tl.int64) * n_words
    word = tl.arange(0, WORDS)
    tl.store(here + word, tl.zeros((WORDS,), tl.int32), mask=word < n_words)
    tl.debug_barrier()  # all are cleared before any is set
    column = tl.arange(0, COUNT)
    own = lists + tl.program_id(0).to(tl.int64) * length
    who = tl.load(own + column, mask=column < length, other=-1)
    there = who >= 0
    who = tl.where(there, who, 0)
    tl.atomic_or(here + who // 32, 1 << (who % 32), mask=there)
