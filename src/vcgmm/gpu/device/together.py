"""Numbers of several owners that come to the host in one copy: to wait for each apart would cost as much again."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import torch

from ..spans import Letter
from .arena import letter
from .arrays import Told


class Part:
    """Some of the numbers that come to the host together.

    Parameters
    ----------
    whole : Together
    tensor : (n,) float64 tensor
        Where its owner puts them.
    place : slice
        Of the whole.

    Attributes
    ----------
    tensor : (n,) float64 tensor
    """

    def __init__(self, whole: Together, tensor: torch.Tensor, place: slice) -> None:
        self.tensor = tensor
        self._whole, self._place = whole, place

    def array(self) -> np.ndarray:
        """The numbers on the host, (n,) float64, which waits for all that the device was told before."""
        return self._whole.array[self._place]


class Together:
    """Room for numbers of several owners.

    All of them must have told the device what to put there before the first looks at its own.

    Parameters
    ----------
    sizes : sequence of int
        How many each has.
    device : torch.device

    Attributes
    ----------
    parts : list of Part
    """

    def __init__(self, sizes: Sequence[int], device: torch.device) -> None:
        self._there = letter((sum(sizes),), torch.float64, device)
        self.parts: list[Part] = []
        last = 0
        for size in sizes:
            first, last = last, last + size
            self.parts.append(Part(self, self._there[first:last], slice(first, last)))

    @cached_property
    def array(self) -> np.ndarray:
        """All of them, on the host."""
        if type(self._there) is Letter:
            return Told(self._there).array()
        array: np.ndarray = self._there.cpu().numpy()
        return array


def alone(size: int, device: torch.device) -> Part:
    """Room for numbers that come by themselves."""
    return Together([size], device).parts[0]
