"""Cells on the device: points by cluster, and the tiles and runs that kernels work on."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton

from .kernels.cells import count_pieces, fill_pieces

#: Groups and pieces that one program looks at.
LOOKED_AT = 128

#: Labels below this fit into 16 bits, and half of the passes of a sort are saved.
SHORT = 1 << 15


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
    """Groups cut into pieces of bounded size: piece p holds order[first[p]:last[p]] of group[p].

    Behind the last piece of the last group there may be some that hold nothing: how many there are is known to the
    device alone, and the host does not wait for it.

    Attributes
    ----------
    group : (n_pieces,) int32 tensor
    first, last : (n_pieces,) int64 tensor
    start : (n_groups + 1,) int64 tensor
        Group g has the pieces start[g]..start[g + 1] - 1.
    """

    group: torch.Tensor
    first: torch.Tensor
    last: torch.Tensor
    start: torch.Tensor

    def __len__(self) -> int:
        """Number of pieces."""
        return len(self.group)


def sort_by_group(labels: torch.Tensor, n_groups: int) -> Groups:
    """Members of every group in the order in which they came, by labels (n,) int32; those beyond are in none."""
    if n_groups < SHORT:
        labels = labels.to(torch.int16)
    ordered, order = torch.sort(labels, stable=True)
    bounds = torch.arange(n_groups + 1, dtype=labels.dtype, device=labels.device)
    return Groups(order, torch.searchsorted(ordered, bounds))


def running_start(sizes: torch.Tensor) -> torch.Tensor:
    """0 and the running sums of sizes (n,): where each of some runs begins, and where the last one ends."""
    return torch.cat([sizes.new_zeros(1), torch.cumsum(sizes, 0)])


def spread_out(sizes: torch.Tensor) -> torch.Tensor:
    """The number of each run, as often as it is long: (sizes.sum(),) int64."""
    return torch.repeat_interleave(torch.arange(len(sizes), device=sizes.device), sizes)


def cut(start: torch.Tensor, size: int, n_members: int) -> Pieces:
    """Cut groups start[g]..start[g + 1] - 1, at most n_members in all, into pieces of at most `size` members."""
    n_groups, device = len(start) - 1, start.device
    n_pieces = n_members // size + min(n_groups, n_members)
    counts = torch.empty(n_groups + 1, dtype=torch.int64, device=device)
    count_pieces[(triton.cdiv(n_groups + 1, LOOKED_AT),)](start, n_groups, size, counts, GROUPS=LOOKED_AT)
    piece_start = torch.cumsum(counts, 0)
    group = torch.empty(n_pieces, dtype=torch.int32, device=device)
    first, last = torch.empty((2, n_pieces), dtype=torch.int64, device=device)
    if n_pieces:
        fill_pieces[(triton.cdiv(n_pieces, LOOKED_AT),)](
            start, piece_start, n_groups, size, n_pieces, group, first, last, STEPS=n_groups.bit_length(),
            PIECES=LOOKED_AT,
        )  # fmt: skip
    return Pieces(group, first, last, piece_start)
