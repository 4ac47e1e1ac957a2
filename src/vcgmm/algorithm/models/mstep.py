"""The M-step of mixtures with weights and variances of their own, from sums taken during the E-step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..cells.sums import Sums
from .families import Family
from .mixture import Mixture

#: Sums of squares are good to so many times the type's precision.
NOISE = 8.0


@dataclass(frozen=True)
class JointStatistics:
    """What an E-step hands over: sums over points, all the M-step and the bound need.

    Attributes
    ----------
    means : (C, D) float64
        The means that were used.
    shifts : (C, D) float64
        sum_n gamma s_c (y - mu_c).
    scatters : (C, V) float64
        sum_n gamma s_c (y - mu_c)^2, by feature for V = D, over all features for V = 1.
    masses : (C,) float64
        R_c = sum_n gamma s_c.
    log_sum : float
        F: sum_n gamma log sum_{c in K(n)} p(c, y).
    cell_bounds, cell_masses : (C,) float64
        The part of F, and of the weight, of the points whose first winner was c before the E-step.
    n_evaluations : int
        Costs computed.
    noise : float
        Share of a sum of squares that may be rounding.
    """

    means: np.ndarray
    shifts: np.ndarray
    scatters: np.ndarray
    masses: np.ndarray
    log_sum: float
    cell_bounds: np.ndarray
    cell_masses: np.ndarray
    n_evaluations: int
    noise: float

    @classmethod
    def of(cls, sums: Sums, n_evaluations: int) -> JointStatistics:
        """Those of a search, with so many costs computed elsewhere."""
        natural, totals = sums.natural, sums.totals()
        if totals.scatters is None:
            raise RuntimeError("clusters that share a variance have no sums of squares of their own.")
        return cls(
            means=natural.means.astype(np.float64),
            shifts=totals.shifts,
            scatters=totals.scatters,
            masses=totals.masses,
            log_sum=totals.log_sum - totals.weight * natural.constant,
            cell_bounds=sums.cell_bounds - sums.cell_masses * natural.constant,
            cell_masses=sums.cell_masses,
            n_evaluations=totals.n_evaluations + n_evaluations,
            noise=NOISE * float(np.finfo(natural.means.dtype).eps),
        )


def joint_m_step(
    statistics: JointStatistics,
    before: Mixture,
    family: Family,
    learned: bool,
    floor: np.ndarray,
    relaxation: float = 1.0,
) -> Mixture:
    """New means, variances and weights.

    With v = shift / R the way to the weighted means, mu_new = mu + r v, and the squares about mu_new are those
    about mu less (2 r - r^2) R v^2, feature by feature: less than before for every r between 0 and 2, so the bound
    rises.  A cluster without weight keeps its mean and variance.

    Parameters
    ----------
    statistics : JointStatistics
    before : Mixture
        What the E-step used.
    family : Family
    learned : bool
        Weights are R_c / sum R; else equal for all clusters that have not been dropped.
    floor : (V,) float64
        Smallest variances.
    relaxation : float
        r, in (0, 2).
    """
    masses = statistics.masses
    n_features, n_squares = statistics.means.shape[1], statistics.scatters.shape[1]
    there = masses > 0.0
    moves = statistics.shifts / np.where(there, masses, 1.0)[:, None]
    gains = moves**2 if n_squares == n_features else (moves**2).sum(axis=1, keepdims=True)
    gains *= (2 * relaxation - relaxation**2) * masses[:, None]
    # What is left may be nothing but rounding, where means moved far: then it is not known to be smaller.
    left = np.maximum(statistics.scatters - gains, statistics.noise * np.maximum(statistics.scatters, 0.0))
    variances = np.maximum(family.variances(left, masses, n_features), floor)
    if not family.shared:
        variances = np.where(there[:, None], variances, before.variances)
    weights = before.weights
    if learned:
        weights = np.where(before.active, masses, 0.0) / masses[before.active].sum()
    return Mixture(statistics.means + relaxation * moves, variances, weights)
