"""The M-step (Eq. 6): weighted means and one shared variance, from sums taken during the E-step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, singledispatch
from typing import Any, Self

import numpy as np

from ..kernels.mstep.steps import row_products, take_step
from ..parallel import MOVING, Workers
from .cells.sums import Totals


@dataclass(frozen=True)
class Statistics:
    """What an E-step hands over: sums over points, all the M-step and the bound need.

    Attributes
    ----------
    means : (C, D) float
        The means that were used, of the type that is computed in.
    variance : float
        The variance that was used.
    shifts : (C, D) float64
        sum_n gamma s_c (y - mu_c).
    masses : (C,) float64
        R_c = sum_n gamma s_c.
    scatter : float
        sum_n sum_c gamma s_c ||y - mu_c||^2.
    log_sum : float
        sum_n gamma log sum_{c in K(n)} exp(-||y - mu_c||^2 / 2 sigma^2).
    total_weight : float
        sum_n gamma.
    n_evaluations : int
        Distances computed.
    """

    means: np.ndarray
    variance: float
    shifts: np.ndarray
    masses: np.ndarray
    scatter: float
    log_sum: float
    total_weight: float
    n_evaluations: int

    @property
    def moves(self) -> np.ndarray:
        """The ways to the weighted means, shift / R: (C, D) float64; 0 for a cluster without weight.

        Made anew, so that nobody holds them beside the shifts for longer than they are needed.
        """
        moves: np.ndarray = self.shifts / np.where(self.masses > 0, self.masses, 1.0)[:, None]
        return moves

    def moved(self, step: float) -> np.ndarray:
        """The means after `step` times those ways, (C, D) float64."""
        means = self.moves
        if step != 1.0:
            means *= step
        means += self.means
        return means

    @cached_property
    def gain(self) -> float:
        """sum_c R_c ||v_c||^2, v being those ways: what scatter the weighted means save."""
        moves = self.moves
        return float(np.dot(self.masses, np.einsum("cd,cd->c", moves, moves)))

    @classmethod
    def of(
        cls,
        means: np.ndarray,
        variance: float,
        totals: Totals,
        total_weight: float,
        n_evaluations: int,
        **others: Any,
    ) -> Self:
        """Those of a search with means (C, D) and a variance, with so many distances computed elsewhere."""
        return cls(
            means=means,
            variance=variance,
            shifts=totals.shifts,
            masses=totals.masses,
            scatter=totals.scatter,
            log_sum=totals.log_sum,
            total_weight=total_weight,
            n_evaluations=totals.n_evaluations + n_evaluations,
            **others,
        )


#: Numbers of a C x D array in a part.
AT_ONCE = 1 << 15


@dataclass(frozen=True)
class LocalStatistics(Statistics):
    """Those of an E-step on the host: kernels make steps from them, some clusters at a time.

    Attributes
    ----------
    workers : Workers
    """

    workers: Workers

    def moved(self, step: float) -> np.ndarray:
        """As of `Statistics`, to the last bit."""
        means = np.empty(self.shifts.shape)
        self._by_parts(lambda a, b: take_step(a, b, self.shifts, self.masses, self.means, step, means))
        return means

    @cached_property
    def gain(self) -> float:
        """Likewise, up to rounding; the same for any number of threads."""
        products = np.empty((len(self.masses), 2))
        self._by_parts(lambda a, b: row_products(a, b, self.shifts, self.shifts, products))
        return float((products[:, 0] / np.where(self.masses > 0, self.masses, 1.0)).sum())

    def _by_parts(self, work: Callable[[int, int], None]) -> None:
        """Call work(first, last) until all clusters are covered."""
        n_clusters, n_features = self.shifts.shape
        step = max(1, AT_ONCE // n_features)

        def take(_thread: int, first: int, last: int) -> None:
            work(first * step, min(last * step, n_clusters))

        n_parts = -(-n_clusters // step)
        self.workers.run(take, n_parts, MOVING * self.shifts.size)


@singledispatch
def as_used(means: Any, statistics: Statistics) -> Any:
    """New means (C, D) rounded as the next E-step would: between the two, half the memory will do.

    Arrays that are not on the host bring a way of their own.
    """
    return means.astype(statistics.means.dtype, copy=False)


#: Where less than this share of the old scatter is left, the difference is taken anew instead of by cancellation.
CANCELLED = 0.01


def m_step(
    statistics: Statistics,
    variance_floor: float,
    scatter: Callable[[Statistics, np.ndarray], float],
    relaxation: float = 1.0,
) -> tuple[np.ndarray, float]:
    """New means and variance.

    With v = shift / R the way to the weighted means, mu_new = mu + r v and D (sum gamma) sigma^2_new = scatter
    - (2 r - r^2) sum_c R_c ||v_c||^2.  For r = 1 that is Eq. (6) without a second pass over the points.  The
    scatter is quadratic in the means, so every r between 0 and 2 lowers it and the bound rises; r > 1 runs ahead
    of the weighted means, which mostly saves iterations (`next_step`).  A cluster without weight keeps its place.

    Parameters
    ----------
    statistics : Statistics
    variance_floor : float
    scatter : callable
        scatter(statistics, means): the second pass.  Needed where means moved so far that little is left of the
        scatter, and rounding would be what remains.
    relaxation : float
        r, in (0, 2).

    Returns
    -------
    means : (C, D) float64
    variance : float
    """
    remaining = statistics.scatter - (2 * relaxation - relaxation**2) * statistics.gain
    means = statistics.moved(relaxation)
    if remaining < CANCELLED * statistics.scatter:
        remaining = scatter(statistics, means)
    return means, max(remaining / (means.shape[1] * statistics.total_weight), variance_floor)


def next_step(
    step: float, before: np.ndarray | None, moves: np.ndarray, masses: np.ndarray, longest: float
) -> float:
    """How far to go this time, as a multiple of the way to the weighted means.

    Where EM converges slowly, moves point the same way again and again, and long steps save iterations.  Where
    clusters hardly overlap, a plain step is the right one and a longer one comes back.  After steps of length r
    the ways to go change by a factor q = 1 - r (1 - lambda), lambda being the rate at which plain EM converges; it
    is measured as the regression of this way on the last, and r / (1 - q) = 1 / (1 - lambda) meets the optimum.

    Parameters
    ----------
    step : float
        Length of the last step.
    before : (C, D) float64 or None
        The last ways to the weighted means; None at first.
    moves : (C, D) float64
        The ways now.
    masses : (C,) float64
    longest : float
        No step is longer.

    """
    if before is None or longest <= 1.0:
        return longest
    square, cross = weighted_products(masses, before, moves)
    if square <= 0.0:
        return longest
    q = cross / square
    return min(longest, step / (1.0 - q)) if q < 1.0 else longest


@singledispatch
def weighted_products(masses: Any, left: Any, right: Any) -> tuple[float, float]:
    """sum_c R_c <l_c, l_c> and sum_c R_c <l_c, r_c>.

    Arrays that are not on the host bring a way of their own.

    Parameters
    ----------
    masses : (C,) float64
    left, right : (C, D) float64
    """
    products = np.empty((len(masses), 2))
    row_products(0, len(masses), left, right, products)
    square, cross = masses @ products
    return float(square), float(cross)


def initial_variance(error: float, total_weight: float, n_features: int, variance_floor: float) -> float:
    """sigma^2 before the first M-step (Eq. 8): the mean squared distance to the nearest winner, per dimension."""
    return max(error / (n_features * total_weight), variance_floor)
