"""What an E-step is, whichever way it searches."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from ..kernels.mstep.scatter import scatter_about
from ..parallel import Workers
from .mstep import Statistics

#: What a search has learnt, by name: arrays, and numbers as Python has them.
State = dict[str, Any]


class Steps(Protocol):
    """E-steps, whatever they go over."""

    @property
    def neighbors(self) -> np.ndarray:
        """G_c, (C, G) int32, itself first."""
        ...

    def warm_up(self, means: np.ndarray) -> tuple[float, int]:
        """Search without responsibilities.

        Returns the weighted squared distance to the nearest winners, and the number of distances computed.
        """
        ...

    def e_step(self, means: np.ndarray, variance: float | None) -> Statistics:
        """New winners and neighbours, and the sums of the M-step over their responsibilities.

        With no variance known yet, it is estimated from the winners found.
        """
        ...

    def scatter(self, statistics: Statistics, means: np.ndarray) -> float:
        """sum_n sum_c gamma s_c ||y - mu_c||^2 about other means (C, D), with an E-step's responsibilities."""
        ...


class Search(Steps, Protocol):
    """Keeps K(n) and G_c of points in memory, and improves them."""

    def state(self) -> State:
        """All that the next E-step depends on beside points, settings and seed.

        The arrays are the search's own, not copies: the next E-step may change them.
        """
        ...

    def restore(self, state: State) -> None:
        """Go on from a state of a search over the same points, settings and seed; its arrays are taken over."""
        ...


def scatter_of(
    points: np.ndarray,
    weights: np.ndarray,
    winners: np.ndarray,
    used: np.ndarray,
    variance: float,
    means: np.ndarray,
    workers: Workers,
) -> float:
    """`Search.scatter` by a pass over all points; the E-step used the means `used` (C, D) and the variance."""
    out, used = np.empty(len(points)), used.astype(np.float64, copy=False)

    def work(_thread: int, first: int, last: int) -> None:
        scatter_about(first, last, points, weights, winners, used, 0.5 / variance, means, out)

    workers.run(work, len(points))
    return float(out.sum())
