"""What a fit has found, on its way to the host."""

from __future__ import annotations

import triton
import triton.language as tl

from .launching import launched


@launched
@triton.jit
def bring_home(
    means,
    moves,
    masses,
    neighbors,
    neighbor_stride,
    n_clusters,
    n_features,
    n_neighbors,
    factor,
    means_there,
    masses_there,
    neighbors_there,
    ROWS: tl.constexpr,
    FEATURES: tl.constexpr,
    NEIGHBORS: tl.constexpr,
):
    """Weighted means in data coordinates, masses and neighbours, written to where the host finds them.

    Parameters
    ----------
    means, moves : (C, D) float64, IN, means of an E-step and ways to the weighted means
    masses : (C,) float64, IN
    neighbors : (C, G) int32, IN, rows `neighbor_stride` apart
    factor : float, IN, a power of two, from local coordinates to those of the data
    means_there : (C, D) float64, OUT
    masses_there : (C,) float64, OUT
    neighbors_there : (C, G) int32, OUT
    """
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    inside = row < n_clusters
    for begin in range(0, n_features, FEATURES):
        feature = begin + tl.arange(0, FEATURES)
        mask = inside[:, None] & (feature < n_features)[None, :]
        at = row[:, None] * n_features + feature[None, :]
        mean = tl.load(means + at, mask=mask, other=0.0) + tl.load(moves + at, mask=mask, other=0.0)
        tl.store(means_there + at, mean * factor, mask=mask)
    tl.store(masses_there + row, tl.load(masses + row, mask=inside, other=0.0), mask=inside)
    place = tl.arange(0, NEIGHBORS)
    mask = inside[:, None] & (place < n_neighbors)[None, :]
    near = tl.load(neighbors + row[:, None] * neighbor_stride + place[None, :], mask=mask, other=0)
    tl.store(neighbors_there + row[:, None] * n_neighbors + place[None, :], near, mask=mask)
