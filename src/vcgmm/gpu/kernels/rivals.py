"""The two nearest of each point's first winners: its own cluster, and the one it would go to without it."""

from __future__ import annotations

import triton
import triton.language as tl

from .launching import launched

#: What becomes of clusters that are not split.
STAYS, GONE = tl.constexpr(-1), tl.constexpr(-2)


@launched
@triton.jit
def two_nearest(
    points,
    stride,
    n_features,
    scale,
    order,
    n_points,
    winners,
    means,
    mean_stride,
    labels,
    rivals,
    distances,
    N_BEST: tl.constexpr,
    LOOKED_AT: tl.constexpr,
    PER_ROW: tl.constexpr,
    POINTS: tl.constexpr,
    FEATURES: tl.constexpr,
    GRAIN: tl.constexpr,
):
    """Own cluster and rival of some points: the nearest two of their first LOOKED_AT winners.

    Parameters
    ----------
    points, stride, n_features, scale : IN, as in `search.search_tiles`
    order : (n_points,) int64, IN, PER_ROW times all points, or a bit more, those with the same winners next to
        each other if that is known
    winners : (n_points, N_BEST) int32, IN, -1 where there is none, the first one always is
    means : (C, D) float32, IN, rows mean_stride apart
    labels, rivals : (n_points,) int, OUT; a rival is -1 where there is one winner only
    distances : (2, n_points) float32, OUT, squared, to both; infinite to no rival
    GRAIN : constexpr, as in `search.search_tiles`
    """
    stride = stride // GRAIN * GRAIN  # that they are multiples, the compiler cannot know
    n_features = n_features // GRAIN * GRAIN
    place = tl.program_id(0).to(tl.int64) * POINTS + tl.arange(0, POINTS)
    inside = place < n_points
    row = tl.load(order + place, mask=inside, other=0) // PER_ROW
    own = tl.load(winners + row * N_BEST, mask=inside, other=-1)
    rival = own
    near = tl.full((POINTS,), float("inf"), tl.float32)
    far = near
    for k in range(LOOKED_AT):
        cluster = tl.load(winners + row * N_BEST + k, mask=inside, other=-1)
        listed = cluster >= 0
        total = tl.zeros((POINTS,), tl.float32)
        for begin in range(0, n_features, FEATURES):
            feature = begin + tl.arange(0, FEATURES)
            mask = listed[:, None] & (feature < n_features)[None, :]
            y = tl.load(points + row[:, None] * stride + feature[None, :], mask=mask, other=0)
            m = tl.load(
                means + cluster.to(tl.int64)[:, None] * mean_stride + feature[None, :], mask=mask, other=0.0
            )
            away = y.to(tl.float32) * scale - m
            total += tl.sum(tl.where(mask, away * away, 0.0), axis=1)
        distance = tl.where(listed, total, float("inf"))
        nearer, second = distance < near, distance < far
        rival = tl.where(nearer, own, tl.where(second, cluster, rival))
        far = tl.where(nearer, near, tl.where(second, distance, far))
        own = tl.where(nearer, cluster, own)
        near = tl.where(nearer, distance, near)
    tl.store(labels + row, own, mask=inside)
    tl.store(rivals + row, tl.where(far < float("inf"), rival, -1), mask=inside)
    tl.store(distances + row, near, mask=inside)
    tl.store(distances + n_points + row, far, mask=inside)


@launched
@triton.jit
def survey_rivals(order, start, weights, distances, n_points, facts, sizes, MEMBERS: tl.constexpr):
    """Error of every cluster, and what would be lost without it, one program each.

    Parameters
    ----------
    order, start : IN, cluster c has the points order[start[c]:start[c + 1]]
    weights : (n_points,) float32, IN
    distances : (2, n_points) float32, IN, from `two_nearest`
    facts : (2, C) float64, OUT, weighted squared distances, and by how much those would grow
    sizes : (C,) int64, OUT, points of each
    """
    cluster = tl.program_id(0).to(tl.int64)
    n_clusters = tl.num_programs(0).to(tl.int64)
    first = tl.load(start + cluster)
    last = tl.load(start + cluster + 1)
    error = tl.zeros((MEMBERS,), tl.float64)
    loss = tl.zeros((MEMBERS,), tl.float64)
    for begin in range(first, last, MEMBERS):
        place = begin + tl.arange(0, MEMBERS)
        inside = place < last
        row = tl.load(order + place, mask=inside, other=0)
        weight = tl.load(weights + row, mask=inside, other=0.0).to(tl.float64)
        near = tl.load(distances + row, mask=inside, other=0.0).to(tl.float64)
        far = tl.load(distances + n_points + row, mask=inside, other=0.0).to(tl.float64)
        error += weight * near
        loss += weight * (far - near)
    tl.store(facts + cluster, tl.sum(error, axis=0))
    tl.store(facts + n_clusters + cluster, tl.sum(loss, axis=0))
    tl.store(sizes + cluster, last - first)


@launched
@triton.jit
def end_takers(sizes, cheapest, n_cheapest, ends, CLUSTERS: tl.constexpr):
    """Where the takers of each of some clusters end, if they are listed one after the other; a single program.

    Parameters
    ----------
    sizes : (C,) int64, IN, points of every cluster
    cheapest : (n_cheapest,) int64, IN, clusters
    ends : (n_cheapest,) int64, OUT
    CLUSTERS : constexpr, how many are looked at at a time
    """
    before = tl.zeros((), tl.int64)
    for begin in range(0, n_cheapest, CLUSTERS):
        place = begin + tl.arange(0, CLUSTERS)
        inside = place < n_cheapest
        size = tl.load(sizes + tl.load(cheapest + place, mask=inside, other=0), mask=inside, other=0)
        tl.store(ends + place, before + tl.cumsum(size, axis=0), mask=inside)
        before += tl.sum(size, axis=0)


@launched
@triton.jit
def list_takers(order, start, cheapest, rivals, ends, takers, MEMBERS: tl.constexpr):
    """The rivals of all points of some clusters, one program for each of those.

    Parameters
    ----------
    order, start : IN, as in `survey_rivals`
    cheapest : (k,) int64, IN, clusters
    rivals : (n_points,) int32, IN
    ends : (k,) int64, IN, where the takers of each cluster end
    takers : (...,) int32, OUT
    """
    cluster = tl.load(cheapest + tl.program_id(0))
    first = tl.load(start + cluster)
    last = tl.load(start + cluster + 1)
    target = takers + tl.load(ends + tl.program_id(0)) - last
    for begin in range(first, last, MEMBERS):
        place = begin + tl.arange(0, MEMBERS)
        row = tl.load(order + place, mask=place < last, other=0)
        tl.store(target + place, tl.load(rivals + row, mask=place < last, other=0), mask=place < last)


@launched
@triton.jit
def put_halves(moves, n_moves, centres, n_features, means, used, used_stride, FEATURES: tl.constexpr):
    """The halves of clusters that were split become means, one program for each of those clusters.

    Parameters
    ----------
    moves : (3, n_moves) int64, IN, who has the first half, who has the second, and the place of both in `centres`
    centres : (k, 2, D) float32, IN
    means : (C, D) float64, OUT, of those clusters
    used : (C, D) float32, OUT, the same, rows used_stride apart
    """
    move = tl.program_id(0)
    feature = tl.arange(0, FEATURES)
    halves = centres + tl.load(moves + 2 * n_moves + move) * 2 * n_features
    for half in range(2):
        cluster = tl.load(moves + half * n_moves + move)
        mean = tl.load(halves + half * n_features + feature, mask=feature < n_features, other=0.0)
        tl.store(means + cluster * n_features + feature, mean.to(tl.float64), mask=feature < n_features)
        tl.store(used + cluster * used_stride + feature, mean, mask=feature < n_features)


@launched
@triton.jit
def hand_over(
    labels,
    rivals,
    second,
    fates,
    n_points,
    winners,
    N_BEST: tl.constexpr,
    COLUMNS: tl.constexpr,
    POINTS: tl.constexpr,
):
    """Winners of points after clusters have been moved: one each.

    Parameters
    ----------
    labels, rivals : (n_points,) int, IN, from `two_nearest`
    second : (n_points,) int8, IN, from `halving.halve_cells`
    fates : (C,) int, IN, for clusters that are split who has the second half from now on, for others `STAYS` or
        `GONE`
    winners : (n_points, N_BEST) int32, OUT, -1 but for the first
    COLUMNS : constexpr, the power of two from N_BEST on
    """
    place = tl.program_id(0).to(tl.int64) * POINTS + tl.arange(0, POINTS)
    inside = place < n_points
    label = tl.load(labels + place, mask=inside, other=0)
    fate = tl.load(fates + label, mask=inside, other=STAYS)
    rival = tl.load(rivals + place, mask=inside & (fate == GONE), other=-1)
    in_second = tl.load(second + place, mask=inside & (fate >= 0), other=0) != 0
    label = tl.where(fate == GONE, rival, tl.where(in_second, fate, label))
    put_alone(winners, place, inside, label, N_BEST, COLUMNS)


@launched
@triton.jit
def only_nearest(labels, n_points, winners, N_BEST: tl.constexpr, COLUMNS: tl.constexpr, POINTS: tl.constexpr):
    """Winners of points of which only one cluster each is known.

    Parameters
    ----------
    labels : (n_points,) int, IN
    winners, N_BEST, COLUMNS : as in `hand_over`
    """
    place = tl.program_id(0).to(tl.int64) * POINTS + tl.arange(0, POINTS)
    inside = place < n_points
    put_alone(winners, place, inside, tl.load(labels + place, mask=inside, other=0), N_BEST, COLUMNS)


@triton.jit
def put_alone(winners, place, inside, label, N_BEST: tl.constexpr, COLUMNS: tl.constexpr):
    """One winner each of some points, and none behind it."""
    column = tl.arange(0, COLUMNS)
    tl.store(
        winners + place[:, None] * N_BEST + column[None, :],
        tl.where(column[None, :] == 0, label[:, None], -1),
        mask=inside[:, None] & (column < N_BEST)[None, :],
    )
