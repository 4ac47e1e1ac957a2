"""How much memory of the device a fit needs, said before it begins."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ..algorithm.starts.directions import CHOICES, LEAST_GAIN
from .cells.neighbourhoods import POOL_VALUES
from .cells.sums import RUN
from .coreset.points import GIGABYTE

#: Of the free memory that is planned with: the rest is for what kernels and libraries take for themselves.
USABLE = 0.95


@dataclass(frozen=True)
class Shape:
    """What of a fit its memory depends on, beside its points.

    Attributes
    ----------
    n_clusters, truncation, n_candidates : int
    n_variances : int
        Variances that a cluster has in the M-step; 0 where all clusters share one and have equal weights.
    """

    n_clusters: int
    truncation: int
    n_candidates: int
    n_variances: int = 0


def bytes_needed(n_points: int, n_features: int, itemsize: int, shape: Shape) -> int:
    """Bytes on the device that a fit takes at its peak, beside rows that lie there already.

    Parameters
    ----------
    n_points : int
    n_features : int
    itemsize : int
        Bytes of a stored value; 0 where the rows are used where they lie.
    shape : Shape
    """
    # Winners, shares and keys, distances of old winners; keys, places and what a sort of them needs besides.
    per_point = shape.truncation * (4 * 3 + 4 + 4 + 8 * 3) + 64
    # What a start in few dimensions looks at.
    per_point += 4 * min(n_features // LEAST_GAIN, CHOICES[-1])
    # Sums of runs in float32: at least one for each cluster.
    per_run = 4 * n_features * (2 if shape.n_variances else 1)
    # Means, moves and sums in float64 a few times over, lists with what is sorted to make them.
    per_cluster = n_features * (8 * 8 + 4 * 3) + shape.n_candidates * 8 * 8
    # Variances and sums of squares in float64 a few times over; variances and precisions in float32.
    per_cluster += shape.n_variances * (8 * 6 + 4 * 4) + (n_features * 8 if shape.n_variances else 0)
    n_runs = shape.n_clusters + n_points * shape.truncation // RUN
    every_point = n_points * (n_features * itemsize + per_point)
    every_cluster = shape.n_clusters * per_cluster + n_runs * per_run
    return every_point + every_cluster + block_bytes(n_points, n_features, shape)


def block_bytes(n_points: int, n_features: int, shape: Shape) -> int:
    """Of those, bytes of what is converted or compared at a time: from some points on no more."""
    blocks = 4 * min(1 << 29, n_points * max(n_features, shape.n_clusters))
    if shape.n_variances > 1:  # precisions of the clusters that are compared, and their products with the means
        blocks += 3 * 4 * POOL_VALUES
    return blocks


def check_memory(device: torch.device, n_points: int, n_features: int, itemsize: int, shape: Shape) -> None:
    """Refuse a fit that the device has no room for, and say what would fit.

    Parameters
    ----------
    device : torch.device
    n_points, n_features, itemsize, shape
        As in `bytes_needed`.

    Raises
    ------
    MemoryError
    """
    if device.type != "cuda":
        return
    free, _ = torch.cuda.mem_get_info(device)
    needed = bytes_needed(n_points, n_features, itemsize, shape)
    if needed <= USABLE * free:
        return
    cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)  # takes milliseconds
    room = int(USABLE * (free + cached))
    if needed <= room:
        return
    fixed = bytes_needed(0, n_features, itemsize, shape) - block_bytes(0, n_features, shape)
    fixed += block_bytes(n_points, n_features, shape)  # fewer points might do with less
    fits = (room - fixed) * n_points // (needed - fixed)
    half = bytes_needed(n_points, n_features, 2, shape) if itemsize > 2 else needed
    remedies = []
    if half <= room:
        remedies.append("precision='bf16'")
    if fits >= shape.n_clusters:
        remedies.append(f"coreset_size={fits:,} or less".replace(",", "_"))
    remedies.append("fewer components" if not remedies else "device='cpu'")
    raise MemoryError(
        f"A fit to {n_points:,} points of {n_features:,} features with n_components={shape.n_clusters:,} needs "
        f"about {needed / GIGABYTE:.1f} GiB on {device}, where {room / GIGABYTE:.1f} GiB can be used. "
        f"Use {', or '.join(remedies)}."
    )
