"""Sums of weighted points by cluster, bit by bit the same from run to run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from ..coreset.points import DevicePoints
from ..device.arena import empty
from ..device.room import Room
from ..device.sizes import pieces_of, power_of_two
from ..kernels.sums import merge_runs, sum_runs
from .pieces import Pieces, most_pieces
from .sorting import prepare_sort

#: Entries that one program adds up in float32; beyond, sums are merged in float64.
RUN = 512

#: Entries and features that a program holds at a time, and features of a warp: few long reads are the fastest.
ENTRIES, FEATURES, WARP_FEATURES = 8, 1024, 256

#: Entries where rows are shorter than this: one short read after the other would take too long.
SHORT_ENTRIES, SHORT_FEATURES = 32, 64


@dataclass(frozen=True)
class Entries:
    """Points with weights, sorted by the cluster that they count for; those behind start[C] count for none.

    Attributes
    ----------
    order : (n,) int64 tensor
        Places in `parts`.
    parts : (N' per_row,) float32 tensor
        Weights; point n has those from n per_row on.
    start : (C + 1,) or (2 C + 1,) int64 tensor
        Cluster c has the entries start[c]..start[c + 1] - 1; with halves also those that are found in the same way
        C farther on.
    per_row : int
    halves : bool
    """

    order: torch.Tensor
    parts: torch.Tensor
    start: torch.Tensor
    per_row: int = 1
    halves: bool = False

    @property
    def n_clusters(self) -> int:
        """C."""
        return (int(self.start.shape[0]) - 1) // (2 if self.halves else 1)

    def rows(self) -> torch.Tensor:
        """The point of every entry, (n,) int64."""
        return torch.div(self.order, self.per_row, rounding_mode="floor")

    def clusters(self) -> torch.Tensor:
        """The cluster of every entry, (n,) int32; any for those that count for none."""
        places = torch.arange(len(self.order), device=self.order.device)
        found = torch.searchsorted(self.start, places, right=True) - 1
        return (found.clamp(max=len(self.start) - 2) % self.n_clusters).to(torch.int32)


@dataclass(frozen=True)
class Sums:
    """Sums by cluster about its origin.

    Attributes
    ----------
    shifts : (C, D) float64 tensor
        Of part (y - origin).
    squares : (C, D) float64 tensor
        Of part (y - origin)^2; the shifts where they were not asked for.
    masses : (C,) float64 tensor
        Of parts.
    moves : (C, D) float64 tensor
        shifts / masses, 0 where there is no mass.
    told : (..., C) float64 tensor
        What the host wants to know the sums of: 1 where there is any mass, else 0; in `n_parts` rows what adds up
        to mass times squared move; where there were moves before, in as many rows each the same for the squares of
        those and for their products with the moves now.
    n_parts : int
    """

    shifts: torch.Tensor
    squares: torch.Tensor
    masses: torch.Tensor
    moves: torch.Tensor
    told: torch.Tensor
    n_parts: int


def entries_of(keys: torch.Tensor, parts: torch.Tensor, n_clusters: int) -> Entries:
    """All winners (N', C') by cluster, within one by point: first those who are nearest, then all others.

    Parameters
    ----------
    keys : (N', C') int tensor
        Clusters in the first column; in the others clusters too, but n_clusters more, or 2 n_clusters for nobody.
    parts : (N', C') float32 tensor
    n_clusters : int
    """
    entries, launch = prepare_entries(Room(keys.device), keys, parts, n_clusters)
    launch()
    return entries


def prepare_entries(
    room: Room, keys: torch.Tensor, parts: torch.Tensor, n_clusters: int
) -> tuple[Entries, Callable[[], None]]:
    """Likewise, as soon as and as often as it is launched."""
    (order, start), launch = prepare_sort(room, keys.view(-1), 2 * n_clusters)
    return Entries(order, parts.view(-1), start, keys.shape[1], halves=True), launch


def weighted_sums(
    points: DevicePoints,
    entries: Entries,
    origins: torch.Tensor,
    *,
    squares: bool = False,
    before: torch.Tensor | None = None,
) -> Sums:
    """Sums of weighted points by cluster.

    Parameters
    ----------
    points : DevicePoints
    entries : Entries
    origins : (C, D) float32 tensor
    squares : bool
        Whether to take those of squares as well.
    before : (C, D) float64 tensor, optional
        Moves that products are to be taken with.
    """
    sums, launch = prepare_sums(Room(points.device), points, entries, origins, before, squares=squares)
    launch()
    return sums


def prepare_sums(
    room: Room,
    points: DevicePoints,
    entries: Entries,
    origins: torch.Tensor,
    before: torch.Tensor | None,
    turn: int = 0,
    squares: bool = False,
    wide_origins: torch.Tensor | None = None,
) -> tuple[Sums, Callable[[], None]]:
    """Likewise, as soon as and as often as it is launched; memory of the other turn is left as it is.

    Origins are put into `wide_origins` (C, D) float64, where that is given.
    """
    n_features, n_clusters = points.n_features, entries.n_clusters
    n_runs = most_pieces(n_clusters, RUN, entries.order.shape[0])
    run_sums, run_masses = room("run sums", (n_runs, n_features)), room("run masses", (n_runs,))
    run_squares = room("run squares", (n_runs, n_features)) if squares else run_sums
    features = min(FEATURES, power_of_two(n_features))
    n_parts = pieces_of(n_features, features)
    sum_up = sum_runs.bound(
        (n_runs, n_parts), points.stored, points.stored.stride(0), n_features, points.scale, entries.order,
        entries.parts, entries.start, n_clusters, origins, origins.stride(0), run_sums, run_squares, run_masses,
        SIZE=RUN, STEPS=n_clusters.bit_length(), PER_ROW=entries.per_row, HALVES=entries.halves,
        ENTRIES=SHORT_ENTRIES if features <= SHORT_FEATURES else ENTRIES,
        FEATURES=features, SQUARES=squares, GRAIN=points.grain, num_warps=max(1, features // WARP_FEATURES),
    )  # fmt: skip
    shape, wide = (n_clusters, n_features), torch.float64
    shifts, of_squares = room("shifts", shape, wide), room("squares", shape, wide) if squares else None
    moves, masses = room(("moves", turn), shape, wide), room(("masses", turn), (n_clusters,), wide)
    n_told = 1 + n_parts * (1 if before is None else 3)
    told = room(("told", n_told), (n_told, n_clusters), wide)
    merges = [
        merge_runs.bound(
            (n_clusters, n_parts), given, run_masses, entries.start, RUN, n_features, found, masses, moves,
            moves if before is None else before, told, origins, origins.stride(0),
            moves if wide_origins is None else wide_origins, FEATURES=features, HALVES=entries.halves,
            MOVES=given is run_sums, BEFORE=given is run_sums and before is not None,
            WIDENS=given is run_sums and wide_origins is not None,
        )
        for given, found in ((run_sums, shifts), (run_squares, of_squares))
        if found is not None
    ]  # fmt: skip

    def launch() -> None:
        sum_up()
        for merge in merges:
            merge()

    return Sums(shifts, shifts if of_squares is None else of_squares, masses, moves, told, n_parts), launch


def sums_of_pieces(facts: torch.Tensor, pieces: Pieces) -> torch.Tensor:
    """Sums of facts (n_pieces, k) float64 over the pieces of each group, (n_groups, k) float64, in their order."""
    n_groups, width = len(pieces.start) - 1, facts.shape[1]
    sums = empty((n_groups, width), torch.float64, facts.device)
    unused = empty((n_groups,), torch.float64, facts.device)
    merge_runs[(n_groups, 1)](
        facts, facts, pieces.start, pieces.size, width, sums, unused, sums, sums, unused, sums, width, sums,
        FEATURES=power_of_two(width), HALVES=False, MOVES=False, BEFORE=False, WIDENS=False,
    )  # fmt: skip
    return sums
