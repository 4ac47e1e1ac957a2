"""Lloyd steps inside many cells at once."""

from __future__ import annotations

from collections.abc import Callable

import torch

from ...kernels.nearest.lloyd import STEP_LENGTH
from ..cells.nearest import Lists, is_narrow, nearest_listed
from ..cells.pieces import Groups, Pieces, cut, sort_by_group
from ..cells.sums import Entries, weighted_sums
from ..coreset.points import DevicePoints
from ..device.arena import empty
from ..device.sizes import power_of_two
from ..device.tiling import REGISTERS, aligned
from ..kernels.lloyd import move_centres, sum_by_nearest
from ..kernels.narrow import sum_tiles

#: Points, centres at most and features of a product, and warps that compute it.
POINTS, CENTRES, FEATURES, WARPS = 64, 64, 16, 4

#: Points and centres of a product, where all features of short rows are multiplied at once, and registers.
NARROW_POINTS, NARROW_CENTRES, NARROW_REGISTERS = 128, 32, 168

#: Sums by tile of at most so many values are kept.
SUMMED_VALUES = 1 << 28

#: Tiles of a cell, at least and at most, and features of them, that are added up at a time; tiles of a warp.
ADDED_TILES, MOST_ADDED_TILES, ADDED_FEATURES, WARP_TILES = 16, 64, 64, 8


def lloyd_steps(
    points: DevicePoints,
    groups: Groups,
    origins: torch.Tensor,
    lists: Lists,
    centres: torch.Tensor,
    steps: int,
) -> torch.Tensor:
    """Centres after some Lloyd steps, in each of which points look at the centres of their own cell.

    All steps but the last go on beyond the means, as on the host.

    Parameters
    ----------
    points : DevicePoints
    groups : Groups
        Points of every cell; a sample will do.  Behind the last there may be places without a point.
    origins : (n_cells, D) float32 tensor
        What coordinates of a cell are taken about.
    lists : Lists
        Centres of every cell, one after the other, as of `lists_between`.
    centres : (C, D) float32 tensor, rows as of `tiling.aligned`
        May be changed in place.
    steps : int

    Returns
    -------
    (C, D) float32 tensor, rows likewise
    """
    n_tiles = len(groups.order) // POINTS + len(lists)
    fits = n_tiles * lists.longest * (points.n_features + 1) <= SUMMED_VALUES
    step = _by_tiles if fits else _by_sorting
    return step(points, groups, origins, lists, centres, steps)


def _by_tiles(
    points: DevicePoints,
    groups: Groups,
    origins: torch.Tensor,
    lists: Lists,
    centres: torch.Tensor,
    steps: int,
) -> torch.Tensor:
    """With two kernels a step: a host that has to launch a dozen is slower than the device on small data."""
    n_cells, n_features, start, width = len(lists), points.n_features, lists.start, lists.longest
    size = NARROW_POINTS if is_narrow(points, points.precision) else POINTS
    pieces = cut(groups.start, size, len(groups.order))
    sums = empty((len(pieces) * width * (n_features + 1),), torch.float32, points.device)
    tiles = min(MOST_ADDED_TILES, max(ADDED_TILES, power_of_two(len(groups.order) // (size * n_cells))))
    sum_up = _sum_up(points, groups, pieces, origins, lists, centres, sums)
    lengths = _lengths(steps)
    move = {
        length: move_centres.bound(
            (n_cells, width), sums, groups.start, size, n_features, origins, origins.stride(0), start, width,
            centres, centres.stride(0), length, TILES=tiles,
            FEATURES=min(ADDED_FEATURES, power_of_two(n_features)), num_warps=tiles // WARP_TILES,
        )
        for length in set(lengths)
    }  # fmt: skip
    for length in lengths:
        sum_up()
        move[length]()
    return centres


def _sum_up(
    points: DevicePoints,
    groups: Groups,
    pieces: Pieces,
    origins: torch.Tensor,
    lists: Lists,
    centres: torch.Tensor,
    sums: torch.Tensor,
) -> Callable[[], None]:
    """What adds up the points of each tile by centre: of short rows all features at once."""
    width = lists.longest
    if is_narrow(points, points.precision):
        kernel, most, features, registers = (
            sum_tiles,
            NARROW_CENTRES,
            power_of_two(points.n_features),
            NARROW_REGISTERS,
        )
    else:
        kernel, most, features, registers = sum_by_nearest, CENTRES, FEATURES, REGISTERS
    return kernel.bound(
        (len(pieces),), points.stored, points.stored.stride(0), points.n_features, points.scale, groups.order,
        pieces.table, origins, origins.stride(0), lists.start, width, centres, centres.stride(0), points.weights,
        sums, POINTS=pieces.size, CENTRES=min(most, max(16, power_of_two(width))), FEATURES=max(16, features),
        GRAIN=points.grain, MODE=points.precision, num_warps=WARPS, num_stages=1, maxnreg=registers,
    )  # fmt: skip


def _by_sorting(
    points: DevicePoints,
    groups: Groups,
    origins: torch.Tensor,
    lists: Lists,
    centres: torch.Tensor,
    steps: int,
) -> torch.Tensor:
    """With points sorted by centre, where sums by tile would take too much memory."""
    nobody = torch.arange(len(groups.order), device=points.device) >= groups.start[-1]
    for length in _lengths(steps):
        ids, _ = nearest_listed(points, groups, origins, lists, centres, by_place=True)
        members = sort_by_group(ids.view(-1).masked_fill_(nobody, len(centres)), len(centres))
        entries = Entries(groups.order[members.order], points.weights, members.start)
        centres = aligned(centres + length * weighted_sums(points, entries, centres).moves)
    return centres


def _lengths(steps: int) -> list[float]:
    """How far each of so many steps goes, as a multiple of the way to the means."""
    return [*[STEP_LENGTH] * (steps - 1), 1.0]
