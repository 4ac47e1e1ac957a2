"""Lloyd steps inside cells: by one program a cell where that is little work, else by all of the device."""

from __future__ import annotations

import torch
import triton

from .cells import Groups, sort_by_group
from .kernels.lloyd import lloyd_in_cells
from .nearest import Lists, nearest_listed
from .points import DevicePoints
from .sums import Entries, weighted_sums

#: What one program holds: centres of a cell and features of them, at most.
MOST_CENTRES, MOST_FEATURES = 128, 64

#: Rows that it compares with them at a time, and rows of a cell up to which it is not too slow.
ROWS, MOST_ROWS = 128, 1 << 15


def lloyd_steps(
    points: DevicePoints,
    groups: Groups,
    origins: torch.Tensor,
    lists: Lists,
    centres: torch.Tensor,
    n_steps: int,
    most_rows: int,
) -> torch.Tensor:
    """Move centres to the weighted means of the points that are nearest to them, within groups.

    Parameters
    ----------
    points : DevicePoints
    groups : Groups
    origins : (n_groups, D) float32 tensor
        What coordinates are taken about.
    lists : Lists
        Those of `nearest.lists_between`: the centres of each group, one after the other.
    centres : (C, D) float32 tensor
    n_steps : int
    most_rows : int
        Members of the largest group.

    Returns
    -------
    (C, D) float32 tensor; a centre that no point is nearest to stays where it was
    """
    if lists.longest > MOST_CENTRES or points.n_features > MOST_FEATURES or most_rows > MOST_ROWS:
        return _by_all(points, groups, origins, lists, centres, n_steps)
    moved = centres.clone()
    at_once = max(16, triton.next_power_of_2(lists.longest))
    lloyd_in_cells[(len(lists.length),)](
        points.stored, points.stored.stride(0), points.n_features, points.scale, points.weights, groups.order,
        groups.start, lists.first, origins, moved, n_steps, ROWS=ROWS, CENTRES=at_once,
        FEATURES=max(16, triton.next_power_of_2(points.n_features)), MODE=points.precision,
        num_warps=8 if at_once > MOST_CENTRES // 2 else 4, num_stages=1,
    )  # fmt: skip
    return moved


def _by_all(
    points: DevicePoints,
    groups: Groups,
    origins: torch.Tensor,
    lists: Lists,
    centres: torch.Tensor,
    n_steps: int,
) -> torch.Tensor:
    """The same, with a few launches for each step."""
    for _ in range(n_steps):
        ids, _ = nearest_listed(points, groups, origins, lists, centres, by_place=True)
        members = sort_by_group(ids.view(-1), len(centres))
        entries = Entries(groups.order[members.order], points.weights, members.start)
        centres = (centres + weighted_sums(points, entries, centres).moves).float()
    return centres
