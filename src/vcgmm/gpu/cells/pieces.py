"""Cells on the device: points by cluster, and the tiles and runs that kernels work on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from ..device.room import Room
from ..device.sizes import pieces_of
from ..kernels.cells import fill_pieces
from .sorting import prepare_sort

#: Pieces that one program looks at.
LOOKED_AT = 128


@dataclass(frozen=True)
class Groups:
    """Members by group: those of group g are order[start[g]:start[g + 1]].

    Attributes
    ----------
    order : (n,) int64 tensor
    start : (n_groups + 1,) int64 tensor
    """

    order: torch.Tensor
    start: torch.Tensor

    @property
    def sizes(self) -> torch.Tensor:
        """Members of every group, (n_groups,) int64."""
        return self.start.diff()


@dataclass(frozen=True)
class Pieces:
    """Groups cut into pieces of bounded size.

    Between the pieces of two groups there may be some that hold nothing: how many there are is known to the device
    alone, and the host does not wait for it.

    Attributes
    ----------
    table : (n_pieces, 3) int64 tensor
        Piece p holds order[first:last] of group, with (group, first, last) = table[p].
    start : (n_groups + 1,) int64 tensor
        Members of the groups: where the pieces of each begin follows from it (`kernels.cells.first_piece`).
    size : int
        Members of a piece, at most.
    """

    table: torch.Tensor
    start: torch.Tensor
    size: int

    def __len__(self) -> int:
        """Number of pieces."""
        return int(self.table.shape[0])


def sort_by_group(labels: torch.Tensor, n_groups: int) -> Groups:
    """Members of every group in the order in which they came, by labels (n,) int; those beyond are in none."""
    found, launch = prepare_sort(Room(labels.device), labels, n_groups)
    launch()
    return Groups(*found)


def most_pieces(n_groups: int, size: int, n_members: int) -> int:
    """How many pieces of at most `size` members there may be, some of which hold nothing."""
    return n_members // size + n_groups


def cut(start: torch.Tensor, size: int, n_members: int) -> Pieces:
    """Cut groups start[g]..start[g + 1] - 1, at most n_members in all, into pieces of at most `size` members."""
    pieces, launch = prepare_cut(Room(start.device), start, size, n_members)
    launch()
    return pieces


def prepare_cut(room: Room, start: torch.Tensor, size: int, n_members: int) -> tuple[Pieces, Callable[[], None]]:
    """Likewise, as soon as and as often as it is launched."""
    n_groups = start.shape[0] - 1
    n_pieces = most_pieces(n_groups, size, n_members)
    table = room("pieces", (n_pieces, 3), torch.int64)
    launch = fill_pieces.bound(
        (pieces_of(n_pieces, LOOKED_AT),), start, n_groups, size, n_pieces, table, STEPS=n_groups.bit_length(),
        PIECES=LOOKED_AT,
    )  # fmt: skip
    return Pieces(table, start, size), launch
