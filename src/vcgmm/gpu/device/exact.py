"""Sums and draws on integers: running sums of floats on a GPU differ from run to run, those of integers do not."""

from __future__ import annotations

import math

import torch

#: No sum of what is made here reaches this power of two.
BITS = 62


def in_units(masses: torch.Tensor, largest: torch.Tensor) -> torch.Tensor:
    """Masses (n,) as multiples of their largest's 2^-k, k as large as their sum allows: int64.

    Parameters
    ----------
    masses : (n,) float tensor, not negative
    largest : (n,) or 0-dimensional float tensor
        No mass is larger than its entry; 0 where all are.
    """
    room = BITS - max(1, len(masses)).bit_length()
    share = masses.double() / torch.where(largest > 0, largest, 1.0).double()
    return (share * math.ldexp(1.0, room)).long()


def sums_by_label(values: torch.Tensor, labels: torch.Tensor, n_labels: int) -> torch.Tensor:
    """Sums of values (n,), not negative, by labels (n,): (n_labels,) float64."""
    largest = values.max() if len(values) else values.new_zeros(())
    room = BITS - max(1, len(values)).bit_length()
    sums = torch.zeros(n_labels, dtype=torch.int64, device=values.device)
    sums.index_add_(0, labels.long(), in_units(values, largest))
    return sums.double() * (largest.double() / math.ldexp(1.0, room))


class Urn:
    """Entries that are drawn by their masses, never one of mass 0 unless all are.

    Parameters
    ----------
    masses : (n,) float tensor, not negative
    """

    def __init__(self, masses: torch.Tensor) -> None:
        self._running = torch.cumsum(in_units(masses, masses.max()), 0)
        self.is_empty = int(self._running[-1]) == 0

    def draw(self, uniforms: torch.Tensor) -> torch.Tensor:
        """One entry for each number in [0, 1), (k,) float64: (k,) int64."""
        total = self._running[-1]
        targets = torch.minimum((uniforms * total.double()).long(), total - 1)
        return torch.searchsorted(self._running, targets, right=True)
