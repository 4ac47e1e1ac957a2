"""Cells on the device: points by cluster, and the tiles and runs that kernels work on."""

from __future__ import annotations

from dataclasses import dataclass

import torch


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
    """Members of every group in the order in which they came, by labels (n,) int32."""
    ordered, order = torch.sort(labels, stable=True)
    bounds = torch.arange(n_groups + 1, dtype=labels.dtype, device=labels.device)
    return Groups(order, torch.searchsorted(ordered, bounds))


def running_start(sizes: torch.Tensor) -> torch.Tensor:
    """0 and the running sums of sizes (n,): where each of some runs begins, and where the last one ends."""
    return torch.cat([sizes.new_zeros(1), torch.cumsum(sizes, 0)])


def spread_out(sizes: torch.Tensor) -> torch.Tensor:
    """The number of each run, as often as it is long: (sizes.sum(),) int64."""
    return torch.repeat_interleave(torch.arange(len(sizes), device=sizes.device), sizes)


def cut(start: torch.Tensor, size: int) -> Pieces:
    """Cut groups start[g]..start[g + 1] - 1 into pieces of at most `size` members."""
    sizes = start.diff()
    pieces = (sizes + (size - 1)) // size
    piece_start = running_start(pieces)
    group = spread_out(pieces)
    first = start[group] + (torch.arange(len(group), device=start.device) - piece_start[group]) * size
    last = torch.minimum(first + size, start[group + 1])
    return Pieces(group.to(torch.int32), first, last, piece_start)
