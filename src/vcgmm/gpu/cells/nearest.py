"""Nearest centres of points on the device: among the list of each point's cell, or among all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch

from ..coreset.points import DevicePoints, upload
from ..device.arena import empty
from ..device.constants import equal_starts
from ..device.room import Room
from ..device.sizes import pieces_of, power_of_two
from ..device.tiling import Tiling, aligned, tiling
from ..kernels.forms import LARGEST
from ..kernels.narrow import nearest_of_tiles
from ..kernels.search import search_tiles, unlisted_costs
from ..kernels.sums import pair_distances
from .costs import Costs
from .pieces import Groups, Pieces, cut
from .sorting import label_type

#: Pairs, and features of them, that one program compares.
PAIRS, PAIR_FEATURES = 32, 128

#: Points whose old winners one program looks up, and those not listed that it compares at a time.
LOOKED_UP, COMPARED = 64, 16

#: Rows of so many features at most are held as a whole while the nearest centre is looked for, so many at a time,
#: and so many centres of lists that are long on average or short.
NARROW, NARROW_POINTS, NARROW_CENTRES, NARROW_FEW, LONG = 64, 128, 128, 32, 64

#: Centres whose middle coordinates are taken for those of all, at most.
MIDDLED = 1024

#: Numbers that a tile of an E-step adds up.
N_FACTS = 4


@dataclass(frozen=True)
class Lists:
    """Centres to be compared with the points of each cell.

    Attributes
    ----------
    ids : (...,) int32 tensor
    start : (n_cells + 1,) int64 tensor
        The list of cell i is ids[start[i]:start[i + 1]].
    longest : int
    """

    ids: torch.Tensor
    start: torch.Tensor
    longest: int

    def __len__(self) -> int:
        """Number of cells."""
        return int(self.start.shape[0]) - 1


@dataclass(frozen=True)
class Listed:
    """Who is on which list, at a glance.

    Attributes
    ----------
    table : (n_cells, L) int32 tensor
        The lists, each in ascending order, or where they are marked a bit for every centre, 32 of them a number.
    marked : bool
    """

    table: torch.Tensor
    marked: bool = False


@dataclass(frozen=True)
class Posterior:
    """What a search finds beside winners, where it is an E-step: as in `search_tiles`.

    Attributes
    ----------
    shares : (N', C') float32 tensor
    keys : (N', C') int tensor
    facts : (n_pieces, 4) float64 tensor
    """

    shares: torch.Tensor
    keys: torch.Tensor
    facts: torch.Tensor

    @classmethod
    def empty(cls, shape: tuple[int, int], n_clusters: int, device: torch.device) -> Posterior:
        """Room for that of points and winners (N', C'); facts are made when the number of pieces is known."""
        return cls(
            empty(shape, torch.float32, device),
            empty(shape, label_type(2 * n_clusters), device),
            empty((0, N_FACTS), torch.float64, device),
        )

    def with_facts(self, n_pieces: int, room: Room | None = None) -> Posterior:
        """The same, with room for the facts of so many pieces."""
        room = room or Room(self.facts.device)
        return replace(self, facts=room("facts", (n_pieces, N_FACTS), torch.float64))


def lists_of(table: torch.Tensor) -> Lists:
    """Lists of one length, the rows of a table (n_cells, L) int32."""
    n_cells, length = table.shape
    return Lists(table.contiguous().view(-1), equal_starts(n_cells, length, table.device), length)


def lists_between(start: np.ndarray, device: torch.device) -> Lists:
    """Cell i has the centres start[i]..start[i + 1] - 1, by an array (n_cells + 1,) int64 on the host."""
    ids = torch.arange(int(start[-1]), dtype=torch.int32, device=device)
    return Lists(ids, upload(start, device), int(np.diff(start).max()))


def nearest_listed(
    points: DevicePoints,
    groups: Groups,
    origins: torch.Tensor,
    lists: Lists,
    centres: torch.Tensor,
    n_best: int = 1,
    mode: str | None = None,
    costs: Costs | None = None,
    *,
    by_place: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The nearest centres of every point that is in a group, among the list of the group.

    Parameters
    ----------
    points : DevicePoints
    groups : Groups
    origins : (n_groups, D) float32 tensor
        What coordinates are taken about.
    lists : Lists
        Each of at least `n_best` centres, for groups that have members.
    centres : (C, D) float32 tensor
    n_best : int
    mode : str, optional
        What products are computed in; that of the points by default.
    costs : Costs, optional
        What is compared instead of squared distances.
    by_place : bool
        Give them in the order of `groups.order`, not of the points.

    Returns
    -------
    ids : (N', n_best) int32 tensor, nearest first; whatever for points of no group
    distances : (N', n_best) float32 tensor, squared, or costs
    """
    shape = (len(groups.order) if by_place else len(points), n_best)
    ids = empty(shape, torch.int32, points.device)
    near = empty(shape, torch.float32, points.device)
    mode = mode or points.precision
    if n_best == 1 and costs is None and is_narrow(points, mode):
        _nearest_narrow(points, groups, origins, lists, centres, mode, ids, near, by_place=by_place)
        return ids, near
    tiles = tiling(points.n_features, len(groups.order) / max(1, len(lists)), lists.longest, mode)
    pieces = cut(groups.start, tiles.points, len(groups.order))
    prepare_search(
        points, groups.order, pieces, origins, lists, centres, tiles, mode, ids, near=near, costs=costs,
        by_place=by_place,
    )()  # fmt: skip
    return ids, near


def is_narrow(points: DevicePoints, mode: str) -> bool:
    """Whether rows are so short that all of their features are multiplied at once."""
    return points.n_features <= NARROW and mode != "fp32"


def _nearest_narrow(
    points: DevicePoints,
    groups: Groups,
    origins: torch.Tensor,
    lists: Lists,
    centres: torch.Tensor,
    mode: str,
    ids: torch.Tensor,
    near: torch.Tensor,
    *,
    by_place: bool,
) -> None:
    """Find the nearest centre of short rows, as in `nearest_listed`."""
    at_once = NARROW_CENTRES if len(centres) >= LONG * len(lists) else NARROW_FEW
    pieces = cut(groups.start, NARROW_POINTS, len(groups.order))
    nearest_of_tiles[(len(pieces),)](
        points.stored, points.stored.stride(0), points.n_features, points.scale, groups.order, pieces.table,
        origins, origins.stride(0), lists.ids, lists.start, centres, centres.stride(0), ids, near,
        POINTS=NARROW_POINTS, CENTRES=min(at_once, max(16, power_of_two(lists.longest))),
        FEATURES=max(16, power_of_two(points.n_features)), GRAIN=points.grain, MODE=mode, BY_PLACE=by_place,
        num_warps=4, num_stages=1,
    )  # fmt: skip


def prepare_search(
    points: DevicePoints,
    order: torch.Tensor,
    pieces: Pieces,
    origins: torch.Tensor,
    lists: Lists,
    centres: torch.Tensor,
    tiles: Tiling,
    mode: str,
    winners: torch.Tensor,
    *,
    near: torch.Tensor | None = None,
    old: torch.Tensor | None = None,
    extra: torch.Tensor | None = None,
    precision: float | torch.Tensor = -1.0,
    posterior: Posterior | None = None,
    costs: Costs | None = None,
    per_row: int = 1,
    by_place: bool = False,
) -> Callable[[], None]:
    """What runs `search_tiles`, as often as it is called; what is None is neither read nor written.

    A tensor in the place of the precision is a variance that only the device knows; `order` holds rows, each
    `per_row` times as large or a bit more.
    """
    n_best = winners.shape[1]
    rate = min(precision, LARGEST.value) if isinstance(precision, float) else precision  # as kernels have floats
    form, precisions, offsets = Costs.parts(costs, centres)
    return search_tiles.bound(
        (len(pieces),),
        points.stored,
        points.stored.stride(0),
        points.n_features,
        points.scale,
        order,
        pieces.table,
        origins,
        origins.stride(0),
        lists.ids,
        lists.start,
        centres,
        centres.stride(0),
        precisions,
        offsets,
        winners if old is None else old,
        winners if extra is None else extra,
        points.weights,
        rate,
        winners,
        winners if near is None else near,
        winners if posterior is None else posterior.shares,
        winners if posterior is None else posterior.keys,
        len(centres),
        winners if posterior is None else posterior.facts,
        N_BEST=n_best,
        COLUMNS=power_of_two(n_best),
        POINTS=tiles.points,
        CENTRES=tiles.centres,
        FEATURES=tiles.features,
        GRAIN=points.grain,
        MODE=mode,
        FORM=form,
        HAS_OLD=old is not None,
        POSTERIOR=posterior is not None,
        PER_ROW=per_row,
        BY_PLACE=by_place,
        TOLD=not isinstance(rate, float),
        num_warps=tiles.n_warps,
        num_stages=tiles.n_stages,
        maxnreg=None if form == "own" else tiles.n_registers,  # it has two products to compute
    )


def unlisted_distances(
    points: DevicePoints,
    listed: Listed,
    centres: torch.Tensor,
    old: torch.Tensor,
    costs: Costs | None = None,
) -> torch.Tensor:
    """Squared distances to winners of before that are not on the list of a point's cell, its nearest winner.

    Parameters
    ----------
    points : DevicePoints
    listed : Listed
    centres : (C, D) float32 tensor
    old : (N', C') int32 tensor, -1 for none
    costs : Costs, optional
        What is computed instead of squared distances.

    Returns
    -------
    (N', C') float32 tensor, infinite for those that are on the list or that do not exist
    """
    extra, launch = prepare_unlisted(Room(old.device), points, listed, centres, old, costs)
    launch()
    return extra


def prepare_unlisted(
    room: Room,
    points: DevicePoints,
    listed: Listed,
    centres: torch.Tensor,
    old: torch.Tensor,
    costs: Costs | None,
) -> tuple[torch.Tensor, Callable[[], None]]:
    """Likewise, as soon as and as often as it is launched."""
    (n_points, n_best), table = old.shape, listed.table
    extra, unlisted = room("extra", old.shape), room("unlisted", old.shape, torch.int32)
    form, precisions, offsets = Costs.parts(costs, centres)
    launch = unlisted_costs.bound(
        (pieces_of(n_points, LOOKED_UP),), points.stored, points.stored.stride(0), points.n_features, points.scale,
        n_points, old, table, table.shape[1], centres, centres.stride(0), precisions, offsets, unlisted, extra,
        N_BEST=n_best, COLUMNS=power_of_two(n_best), MARKED=listed.marked,
        STEPS=0 if listed.marked else table.shape[1].bit_length(), POINTS=LOOKED_UP, PAIRS=COMPARED,
        FEATURES=min(PAIR_FEATURES, power_of_two(points.n_features)), FORM=form,
    )  # fmt: skip
    return extra, launch


def distances_of(
    points: DevicePoints,
    rows: torch.Tensor,
    ids: torch.Tensor,
    centres: torch.Tensor,
    costs: Costs | None = None,
) -> torch.Tensor:
    """||y[rows[i]] - centres[ids[i]]||^2, or costs, for rows (n,) int64 and ids (n,) int32, (n,) float32."""
    out = torch.empty(len(rows), dtype=torch.float32, device=points.device)
    form, precisions, offsets = Costs.parts(costs, centres)
    if len(rows):
        pair_distances[(pieces_of(len(rows), PAIRS),)](
            points.stored, points.stored.stride(0), points.n_features, points.scale, rows, ids, len(rows), centres,
            centres.stride(0), precisions, offsets, out, PAIRS=PAIRS,
            FEATURES=min(PAIR_FEATURES, power_of_two(points.n_features)), FORM=form,
        )  # fmt: skip
    return out


def nearest_of_all(
    points: DevicePoints,
    centres: torch.Tensor,
    n_best: int = 1,
    mode: str = "fp32",
    costs: Costs | None = None,
    rows: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The nearest of all centres (C, D) float32, as `nearest_listed` gives them.

    Of all points, or of those with these rows (n,) int64, in that order and as often as they occur.
    """
    order = torch.arange(len(points), device=points.device) if rows is None else rows
    groups = Groups(order, torch.tensor([0, len(order)], device=points.device))
    lists = lists_between(np.array([0, len(centres)]), points.device)
    return nearest_listed(
        points, groups, middle_of(centres), lists, aligned(centres), n_best, mode, costs, by_place=rows is not None
    )


def middle_of(centres: torch.Tensor) -> torch.Tensor:
    """A place amid centres (C, D), (1, D): medians of some, which few that lie far out do not pull away.

    Products of coordinates about a place far from most points would leave their distances few digits.
    """
    some = centres[:: pieces_of(len(centres), MIDDLED)].sort(dim=0).values
    return some[len(some) // 2 :][:1].contiguous()
