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
    """Points with weights, sorted by the cluster that they count for; those behind start[C] count for none.

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
        """The cluster of every entry, (n,) int32; any for those that count for none."""
        places = torch.arange(len(self.rows), device=self.rows.device)
        found = torch.searchsorted(self.start, places, right=True) - 1
        return found.clamp(max=len(self.start) - 2).to(torch.int32)


def entries_of(winners: torch.Tensor, parts: torch.Tensor, n_clusters: int) -> Entries:
    """All winners (N', C') int32 by cluster, within one by point; those whose part (N', C') is 0 come last."""
    groups = sort_by_group(torch.where(parts > 0, winners, n_clusters).view(-1), n_clusters)
    rows = torch.div(groups.order, winners.shape[1], rounding_mode="floor")
    return Entries(rows, parts.view(-1)[groups.order], groups.start)


def weighted_sums(
    points: DevicePoints, entries: Entries, origins: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Sums of part (y - origin) and of parts, by cluster; likewise `sums_and_squares`."""
    sums, _, masses = _sums(points, entries, origins, squares=False)
    return sums, masses


def sums_and_squares(
    points: DevicePoints, entries: Entries, origins: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Sums of part (y - origin), of part (y - origin)^2 and of parts, by cluster.

    Parameters
    ----------
    points : DevicePoints
    entries : Entries
    origins : (C, D) float32 tensor

    Returns
    -------
    sums, squares : (C, D) float64 tensor
    masses : (C,) float64 tensor
    """
    return _sums(points, entries, origins, squares=True)


def _sums(
    points: DevicePoints, entries: Entries, origins: torch.Tensor, *, squares: bool
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    n_features, device = points.n_features, points.device
    runs = cut(entries.start, RUN, len(entries.rows))
    n_clusters = len(entries.start) - 1
    run_sums = torch.empty((1 + squares, len(runs), n_features), dtype=torch.float32, device=device)
    run_masses = torch.empty(len(runs), dtype=torch.float32, device=device)
    features = min(FEATURES, triton.next_power_of_2(n_features))
    n_parts = triton.cdiv(n_features, features)
    if len(runs):
        sum_runs[(len(runs), n_parts)](
            points.stored, points.stored.stride(0), n_features, points.scale, entries.rows, entries.parts,
            runs.group, runs.first, runs.last, origins, run_sums[0], run_sums[-1], run_masses, ENTRIES=ENTRIES,
            FEATURES=features, SQUARES=squares, num_warps=max(1, features // WARP_FEATURES),
        )  # fmt: skip
    sums = torch.empty((1 + squares, n_clusters, n_features), dtype=torch.float64, device=device)
    masses = torch.empty(n_clusters, dtype=torch.float64, device=device)
    for of_runs, merged in zip(run_sums, sums, strict=True):
        merge_runs[(n_clusters, n_parts)](
            of_runs, run_masses, runs.start, n_features, merged, masses, FEATURES=features
        )
    return sums[0], sums[-1], masses


def sums_of_pieces(facts: torch.Tensor, start: torch.Tensor) -> torch.Tensor:
    """Sums of facts (n_pieces, k) float64 over the pieces of each group, (n_groups, k) float64, in their order."""
    n_groups, width = len(start) - 1, facts.shape[1]
    sums = torch.empty((n_groups, width), dtype=torch.float64, device=facts.device)
    unused = torch.empty(n_groups, dtype=torch.float64, device=facts.device)
    merge_runs[(n_groups, 1)](facts, facts, start, width, sums, unused, FEATURES=triton.next_power_of_2(width))
    return sums
