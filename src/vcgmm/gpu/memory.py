"""How much memory of the device a fit needs, said before it begins."""

from __future__ import annotations

import torch

GIGABYTE = 1 << 30

#: Of the free memory that is planned with: the rest is for what kernels and libraries take for themselves.
USABLE = 0.95


def bytes_needed(
    n_points: int, n_features: int, itemsize: int, n_clusters: int, truncation: int, n_candidates: int
) -> int:
    """Bytes on the device that a fit takes at its peak, beside rows that lie there already.

    Parameters
    ----------
    n_points : int
    n_features, n_clusters, truncation, n_candidates : int
    itemsize : int
        Bytes of a stored value; 0 where the rows are used where they lie.
    """
    # Winners twice, shares and distances of old ones in float32; entries, their order and clusters when sorted.
    per_point = truncation * (4 * 4 + 1 + 8 * 4 + 8) + 64
    # Means and sums in float64 a few times over, lists with what is sorted to make them.
    per_cluster = n_features * (8 * 6 + 4 * 4) + n_candidates * 8 * 8
    blocks = 4 * (1 << 29)  # what is converted or compared at a time
    return n_points * (n_features * itemsize + per_point) + n_clusters * per_cluster + blocks


def check_memory(
    device: torch.device, n_points: int, n_features: int, itemsize: int, shape: tuple[int, int, int]
) -> None:
    """Refuse a fit that the device has no room for, and say what would fit.

    Parameters
    ----------
    device : torch.device
    n_points, n_features, itemsize : int
        As in `bytes_needed`.
    shape : tuple
        n_clusters, truncation and n_candidates.

    Raises
    ------
    MemoryError
    """
    if device.type != "cuda":
        return
    free, _ = torch.cuda.mem_get_info(device)
    cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    room = int(USABLE * (free + cached))
    needed = bytes_needed(n_points, n_features, itemsize, *shape)
    if needed <= room:
        return
    fixed = bytes_needed(0, n_features, itemsize, *shape)
    fits = (room - fixed) * n_points // (needed - fixed)
    half = bytes_needed(n_points, n_features, 2, *shape) if itemsize > 2 else needed
    remedies = []
    if half <= room:
        remedies.append("precision='bf16'")
    if fits >= shape[0]:
        remedies.append(f"coreset_size={fits:,} or less".replace(",", "_"))
    remedies.append("fewer components" if not remedies else "device='cpu'")
    raise MemoryError(
        f"A fit to {n_points:,} points of {n_features:,} features with n_components={shape[0]:,} needs about "
        f"{needed / GIGABYTE:.1f} GiB on {device}, where {room / GIGABYTE:.1f} GiB can be used. "
        f"Use {', or '.join(remedies)}."
    )
