"""A mixture's parameters, and the numbers from which its costs are computed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..cells.natural import Natural

#: Cost of a cluster that has been dropped: finite, so that no difference of two costs is undefined.
DROPPED_COST = 1e30


@dataclass(frozen=True)
class Mixture:
    """Means, variances and weights, in local coordinates.

    Attributes
    ----------
    means : (C, D) float64
    variances : (C, V) float64
        V = 1: one for all features of a cluster; V = D: one for each.
    weights : (C,) float64
        They add up to 1; 0 for a cluster that has been dropped.
    """

    means: np.ndarray
    variances: np.ndarray
    weights: np.ndarray

    @property
    def active(self) -> np.ndarray:
        """Clusters that are searched, (C,) bool."""
        return self.weights > 0.0

    def offsets(self) -> tuple[np.ndarray, float]:
        """q_c = 1/2 sum_d log v_cd - log pi_c less the smallest, (C,) float64, and what is common to all."""
        n_features, n_squares = self.means.shape[1], self.variances.shape[1]
        active = self.active
        q = 0.5 * (n_features // n_squares) * np.log(self.variances).sum(axis=1)
        q[active] -= np.log(self.weights[active])
        least = float(q[active].min())
        constant = least + 0.5 * n_features * math.log(2 * math.pi)
        return np.where(active, q - least, DROPPED_COST), constant

    def natural(self, dtype: np.dtype[Any]) -> Natural:
        """The same in the type that costs are computed in."""
        offsets, constant = self.offsets()
        variances = self.variances.astype(dtype)
        return Natural(
            self.means.astype(dtype),
            variances,
            (0.5 / self.variances).astype(dtype),
            offsets.astype(dtype),
            constant,
        )
