"""The two nearest of each point's winners: its own cluster, and the one it would go to without it."""

from __future__ import annotations

import triton
import triton.language as tl

from .launching import launched


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
    POINTS: tl.constexpr,
    FEATURES: tl.constexpr,
):
    """Own cluster and rival of some points: the nearest and the second nearest of their winners.

    Parameters
    ----------
    points, stride, n_features, scale : IN, as in `search.search_tiles`
    order : (n_points,) int64, IN, all points, those with the same winners next to each other if that is known
    winners : (n_points, N_BEST) int32, IN, -1 where there is none, the first one always is
    means : (C, D) float32, IN, rows mean_stride apart
    labels, rivals : (n_points,) int32, OUT; a rival is -1 where there is one winner only
    distances : (2, n_points) float32, OUT, squared, to both; infinite to no rival
    """
    place = tl.program_id(0).to(tl.int64) * POINTS + tl.arange(0, POINTS)
    inside = place < n_points
    row = tl.load(order + place, mask=inside, other=0)
    own = tl.load(winners + row * N_BEST, mask=inside, other=-1)
    rival = own
    near = tl.full((POINTS,), float("inf"), tl.float32)
    far = near
    for k in range(N_BEST):
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
