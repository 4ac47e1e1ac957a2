"""Members by group, in the order in which they came."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import torch

from ..device.room import Room
from ..device.sizes import pieces_of, power_of_two
from ..kernels.sorting import begin_groups, put_by_group, rank_in_tiles

#: Labels below this fit into 16 bits, and half of the passes of a sort are saved.
SHORT = 1 << 15

#: So many tiles are aimed at, members of one at least and at most, and how many are compared with one another.
TILES, LEAST_TILE, MOST_TILE, CHUNK = 512, 256, 2048, 32

#: Of more members, or where tiles times groups are more, torch sorts.
FEW, MOST_COUNTS = 1 << 20, 1 << 23

#: Counts that are set to 0 at a time; tiles and groups whose counts are added up; groups that begin one after the
#: other; members that are put in place.
CLEARED, ADDED_TILES, ADDED_GROUPS, BEGUN, PLACED = 1024, 512, 8, 4096, 512


def label_type(n_groups: int) -> torch.dtype:
    """What labels of so many groups, and one beyond, are kept in where they are to be sorted."""
    return torch.int16 if n_groups < SHORT else torch.int32


def prepare_sort(
    room: Room, labels: torch.Tensor, n_groups: int
) -> tuple[tuple[torch.Tensor, torch.Tensor], Callable[[], None]]:
    """Members by labels (n,) int, those of group g from start[g] to start[g + 1] - 1 of an order.

    Parameters
    ----------
    room : Room
    labels : (n,) int tensor
        No less than 0; those from n_groups on are in no group, and come last.
    n_groups : int

    Returns
    -------
    order : (n,) int64 tensor
    start : (n_groups + 1,) int64 tensor
    launch : callable
        Puts them there, as often as it is called.
    """
    n = labels.shape[0]
    order, start = room("order", (n,), torch.int64), room("start", (n_groups + 1,), torch.int64)
    tile = min(MOST_TILE, max(LEAST_TILE, power_of_two(pieces_of(n, TILES))))
    n_tiles, width = pieces_of(n, tile), pieces_of(n_groups + 1, ADDED_GROUPS) * ADDED_GROUPS
    if n == 0 or n > FEW or n_tiles * width > MOST_COUNTS:
        return (order, start), _by_torch(room, labels, n_groups, order, start)
    counts = room("counts", (n_tiles * width,), torch.int32)
    others = room("ranks", (n + 1,), torch.int32)
    ranks, n_done = others[:n], others[n:]
    stride = labels.stride(0)
    launches = (
        rank_in_tiles.bound(
            (n_tiles,), labels, stride, n, n_groups, counts, width, ranks, n_done, TILE=tile, CHUNK=CHUNK,
            CLEARED=CLEARED,
        ),
        begin_groups.bound(
            (width // ADDED_GROUPS,), counts, n_tiles, width, n_groups, start, n_done,
            TILES=min(ADDED_TILES, power_of_two(n_tiles)), GROUPS=ADDED_GROUPS,
            AT_ONCE=min(BEGUN, power_of_two(n_groups)),
        ),
        put_by_group.bound(
            (pieces_of(n, PLACED),), labels, stride, n, n_groups, counts, width, ranks, start, order, TILE=tile,
            MEMBERS=PLACED,
        ),
    )  # fmt: skip

    def launch() -> None:
        for one in launches:
            one()

    return (order, start), launch


def _by_torch(
    room: Room, labels: torch.Tensor, n_groups: int, order: torch.Tensor, start: torch.Tensor
) -> Callable[[], None]:
    """What puts many members of many groups in order."""
    kind, every = label_type(n_groups), every_group(n_groups, labels.device)
    ordered = room("ordered", labels.shape, kind)

    def launch() -> None:
        torch.sort(labels.to(kind), stable=True, out=(ordered, order))
        torch.searchsorted(ordered, every, out=start)

    return launch


@lru_cache(maxsize=4)
def every_group(n_groups: int, device: torch.device) -> torch.Tensor:
    """Labels 0..n_groups, one beyond the last: made once, since they are asked for in every iteration."""
    return torch.arange(n_groups + 1, dtype=label_type(n_groups), device=device)
