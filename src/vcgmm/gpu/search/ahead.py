"""E-steps that begin before the host knows of the last: the device takes the M-step between them by itself.

While the host computes how far to go, the device would wait: on small data for a quarter of the time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch

from ...algorithm.mstep import CANCELLED
from ..coreset.points import upload
from ..device.room import Room
from ..device.sizes import pieces_of, power_of_two
from ..kernels.stepping import step_on
from .ways import Moved, Way

#: Clusters, and features of them, that a program moves.
ROWS, FEATURES = 8, 128

#: What a step tells of itself.
N_TOLD = 2

#: Lengths and variances of the host and of the device are the same up to this share.
ROUNDING = 1e-9


@dataclass
class Step:
    """An M-step as the device takes it.

    Attributes
    ----------
    way : Way
        To the weighted means, of which it goes some times.
    variance : (1,) float64 tensor
        That after it; -1 where the device cannot know it.
    length_told, variance_told : float
        How many times, and that variance, as soon as the host knows.
    """

    way: Way
    variance: torch.Tensor
    length_told: float = math.nan
    variance_told: float = math.nan

    def leads_to(self, means: Any, variance: float | None) -> bool:
        """Whether it went to the means and to the variance that the host asks for."""
        if not isinstance(means, Moved) or means.way is not self.way or variance is None:
            return False
        pairs = ((means.factor, self.length_told), (variance, self.variance_told))
        return all(math.isclose(one, other, rel_tol=ROUNDING) for one, other in pairs)


class Stepper:
    """Takes M-steps on the device.

    Parameters
    ----------
    longest : float
        As of `algorithm.mstep.next_step`.
    n_features : int
    total_weight, variance_floor : float
    device : torch.device
    """

    def __init__(
        self, longest: float, n_features: int, total_weight: float, variance_floor: float, device: torch.device
    ) -> None:
        self._told = np.array([longest, n_features * total_weight, variance_floor, CANCELLED])
        self._device = device
        self._before: torch.Tensor | None = None

    @cached_property
    def _settings(self) -> torch.Tensor:
        """What the device has to know, told when the first step is taken: before, it might wait for the host."""
        return upload(self._told, self._device)

    def take(
        self,
        means: torch.Tensor,
        moves: torch.Tensor,
        n_parts: int,
        totals: torch.Tensor,
        has_before: bool,
        room: Room,
        told: torch.Tensor,
    ) -> torch.Tensor:
        """Change means in place to where the next E-step begins; the variance there, (1,) float64.

        Parameters
        ----------
        means : (C, D) float32 tensor
            Those of the last E-step.
        moves : (C, D) float64 tensor
            Ways from there to the weighted means.
        n_parts : int
            Of the sums of the E-step.
        totals : (...,) float64 tensor
            What it tells the host; the last `N_TOLD` are written here.
        has_before : bool
            Whether there are products with moves before among them.
        room : Room
        told : (...,) float64 tensor
            Totals once more, or those: the host looks there.
        """
        before = self._settings if self._before is None else self._before  # nobody looks at it the first time
        found, variance = room.again(_told_last, totals)
        letter, _ = room.again(_told_last, told)
        room.again(self._prepare, means, moves, n_parts, totals, has_before, before, found, letter)()
        self._before = found
        return variance

    def _prepare(
        self,
        _: Room,
        means: torch.Tensor,
        moves: torch.Tensor,
        n_parts: int,
        totals: torch.Tensor,
        has_before: bool,
        before: torch.Tensor,
        found: torch.Tensor,
        letter: torch.Tensor,
    ) -> Callable[[], None]:
        """What takes the step, as often as it is called."""
        n_clusters, n_features = means.shape
        return step_on.bound(
            (pieces_of(n_clusters, ROWS),), means, means.stride(0), moves, n_clusters, n_features, self._settings,
            totals, before, found, letter, N_PARTS=n_parts, BEFORE=has_before, ROWS=ROWS,
            FEATURES=min(FEATURES, power_of_two(n_features)), enable_fp_fusion=False,
        )  # fmt: skip


def _told_last(_: Room, totals: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Where length and variance of a step are put, (2,), and the variance alone, (1,)."""
    return totals[-N_TOLD:], totals[-1:]
