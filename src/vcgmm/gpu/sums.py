"""Sums of weighted points by cluster, bit by bit the same from run to run."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton

from .cells import cut, sort_by_group
from .kernels.sums import merge_runs, sum_runs
from .points import DevicePoints

#: Entries that one program adds up in float32; beyond, sums are merged in float64.
RUN = 512

#: Entries and features that a program holds at a time, and features of a warp: few long reads are the fastest.
ENTRIES, FEATURES, WARP_FEATURES = 8, 1024, 256


@dataclass(frozen=True)
class Entries:
    """Points with weights, sorted by the cluster that they count for.

    Attributes
    ----------
    rows : (n,) int64 tensor
    parts : (n,) float32 tensor
    start : (C + 1,) int64 tensor
        Cluster c has the entries start[c]..start[c + 1] - 1.
    """

    rows: torch.Tensor
    parts: torch.Tensor
    start: torch.Tensor

    def clusters(self) -> torch.Tensor:
        """The cluster of every entry, (n,) int32."""
        places = torch.arange(len(self.rows), device=self.rows.device)
        return (torch.searchsorted(self.start, places, right=True) - 1).to(torch.int32)


def entries_of(winners: torch.Tensor, parts: torch.Tensor, n_clusters: int) -> Entries:
    """All winners (N', C') int32 of positive part (N', C') float32, by cluster; within one by point."""
    positive = torch.nonzero(parts.view(-1)).view(-1)
    groups = sort_by_group(winners.view(-1)[positive], n_clusters)
    entries = positive[groups.order]
    del positive
    kept = parts.view(-1)[entries]
    return Entries(torch.div(entries, winners.shape[1], rounding_mode="floor"), kept, groups.start)


def weighted_sums(
    points: DevicePoints, entries: Entries, origins: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Sums of part (y - origin) and of parts, by cluster.

    Parameters
    ----------
    points : DevicePoints
    entries : Entries
    origins : (C, D) float32 tensor

    Returns
    -------
    sums : (C, D) float64 tensor
    masses : (C,) float64 tensor
    """
    n_features, device = points.n_features, points.device
    runs = cut(entries.start, RUN)
    n_clusters = len(entries.start) - 1
    run_sums = torch.empty((len(runs), n_features), dtype=torch.float32, device=device)
    run_masses = torch.empty(len(runs), dtype=torch.float32, device=device)
    features = min(FEATURES, triton.next_power_of_2(n_features))
    n_parts = triton.cdiv(n_features, features)
    if len(runs):
        sum_runs[(len(runs), n_parts)](
            points.stored, points.stored.stride(0), n_features, points.scale, entries.rows, entries.parts,
            runs.group, runs.first, runs.last, origins, run_sums, run_masses, ENTRIES=ENTRIES, FEATURES=features,
            num_warps=max(1, features // WARP_FEATURES),
        )  # fmt: skip
    sums = torch.empty((n_clusters, n_features), dtype=torch.float64, device=device)
    masses = torch.empty(n_clusters, dtype=torch.float64, device=device)
    merge_runs[(n_clusters, n_parts)](
        run_sums, run_masses, runs.start, n_features, sums, masses, FEATURES=features
    )
    return sums, masses
