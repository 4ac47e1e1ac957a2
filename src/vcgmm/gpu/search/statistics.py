"""What an E-step on the device hands over, while its numbers are still on their way to the host."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np
import torch

from ...algorithm.mstep import Statistics
from ..cells.sums import Sums
from ..device.arrays import DeviceArray, Told
from .ahead import Step
from .ways import Masses, Means, Way


class Facts(NamedTuple):
    """What an E-step tells the host of itself; products are those of `Masses`."""

    log_sum: float
    scatter: float
    n_unlisted: int
    n_active: int
    gain: float
    products: tuple[float, float] | None


def facts_of(told: Told, n_parts: int, step: Step | None) -> Callable[[], Facts]:
    """What waits for the totals of an E-step, whose sums have so many parts, and tells its step of itself."""

    @cache
    def wait() -> Facts:
        log_sum, scatter, _, n_unlisted, n_active, *others = told.tolist()
        if step is not None:
            *others, step.length_told, step.variance_told = others
        gain, *products = (sum(others[first : first + n_parts]) for first in range(0, len(others), n_parts))
        pair = (products[0], products[1]) if products else None
        return Facts(log_sum, scatter, int(n_unlisted), int(n_active), gain, pair)

    return wait


class DeviceStatistics(Statistics):
    """Those of an E-step on the device, which has taken what follows from the sums of a cluster along with them.

    Numbers are on their way to the host, which waits for them when it first asks for one.

    Parameters
    ----------
    means : Means
    variance, total_weight : float
    sums : Sums
    way : Way
    before : (C, D) float64 tensor or None
        Moves of the last E-step.
    told : callable
        Waits for the facts.
    n_listed : int
        Distances computed, without those of winners that were not listed.
    has_old : bool
        Whether there may be such winners.
    """

    _sums: Sums
    _way: Way
    _before: torch.Tensor | None
    _told: Callable[[], Facts]
    _n_listed: int
    _has_old: bool

    def __init__(
        self,
        means: Means,
        variance: float,
        total_weight: float,
        sums: Sums,
        way: Way,
        before: torch.Tensor | None,
        told: Callable[[], Facts],
        n_listed: int,
        has_old: bool,
    ) -> None:
        self.__dict__.update(  # the others are told
            means=means, shifts=DeviceArray(sums.shifts), variance=variance, total_weight=total_weight, _sums=sums,
            _way=way, _before=before, _told=told, _n_listed=n_listed, _has_old=has_old,
        )  # fmt: skip

    @property
    def moves(self) -> np.ndarray:
        """As of `Statistics`."""
        way: Any = self._way
        moves: np.ndarray = way
        return moves

    def moved(self, step: float) -> np.ndarray:
        """As of `Statistics`, but not in place: where it leads may never be asked for."""
        return self.means + (self.moves if step == 1.0 else step * self.moves)

    @property
    def gain(self) -> float:
        """As of `Statistics`."""
        return self._told().gain

    @property
    def scatter(self) -> float:
        """As of `Statistics`."""
        return self._told().scatter

    @property
    def log_sum(self) -> float:
        """As of `Statistics`."""
        return self._told().log_sum

    @property
    def n_evaluations(self) -> int:
        """As of `Statistics`."""
        return self._n_listed + (self._told().n_unlisted if self._has_old else 0)

    @cached_property
    def masses(self) -> Any:
        """As of `Statistics`."""
        facts, before = self._told(), self._before
        ways = None if before is None else (before, self._sums.moves)
        return Masses(self._sums.masses, facts.n_active, ways, facts.products, self._way.home)
