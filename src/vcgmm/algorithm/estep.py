"""What an E-step is, whichever way it searches."""

from __future__ import annotations

from copy import copy
from typing import Any, Protocol

import numpy as np

from ..kernels.exact_sums import rounding_constant
from ..kernels.moments import absolute_sum
from ..kernels.scatter import scatter_about
from ..parallel import Workers
from .mstep import Statistics

#: What a search has learnt, by name: arrays, and numbers as Python has them.
State = dict[str, Any]

#: A mean is far out beyond so many times the mean absolute value of a feature.
FAR = 4.0


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
    out = np.empty(len(points))

    def work(_thread: int, first: int, last: int) -> None:
        scatter_about(first, last, points, weights, winners, used, 0.5 / variance, means, out)

    workers.run(work, len(points))
    return float(out.sum())


class Quanta:
    """Rounding constants for the exact sums of gamma s (y - mu_c) and of gamma s.

    In feature d no such sum can exceed sum gamma |y_d| + |mu_cd| sum gamma.  Clusters in the middle of the data
    share one constant; a cluster far out has its own, so that it costs the others no digits.

    Parameters
    ----------
    points : (N', D) float
    weights : (N',) float64
    workers : Workers
    """

    def __init__(self, points: np.ndarray, weights: np.ndarray, workers: Workers) -> None:
        self.total_weight = float(weights.sum())
        step = max(1, (1 << 18) // points.shape[1])  # fixed blocks: the same sums for any number of threads
        sums = np.empty((-(-len(points) // step), points.shape[1]))

        def work(_thread: int, first: int, last: int) -> None:
            for i in range(first, last):
                absolute_sum(i * step, min((i + 1) * step, len(points)), points, weights, sums[i])

        workers.run(work, len(sums))
        self.absolute = sums.sum(axis=0)

    def __add__(self, other: Quanta) -> Quanta:
        """Those of both sets of points together, for sums over points that lie in different places."""
        both = copy(self)
        both.total_weight = self.total_weight + other.total_weight
        both.absolute = self.absolute + other.absolute
        return both

    def magic_numbers(self, means: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Constants for shifts (k, D) float64, each cluster's row in them (C,) int32, and the one for masses."""
        return magic_numbers(self.absolute, self.total_weight, means)


def magic_numbers(
    absolute: np.ndarray, total_weight: float, means: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """What `Quanta` gives, for points of which sum gamma |y_d| is at most `absolute` (D,)."""
    limit = FAR * absolute / total_weight
    far = np.flatnonzero((np.abs(means) > limit).any(axis=1))
    reach = np.vstack([limit, np.abs(means[far]).astype(np.float64)])
    rows = np.zeros(len(means), np.int32)
    rows[far] = np.arange(1, len(far) + 1)
    shift_magic = rounding_constant(absolute + reach * total_weight)
    return shift_magic, rows, float(rounding_constant(np.array(total_weight)))
