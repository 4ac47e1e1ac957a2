"""Clusters as the kernels have them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...kernels.cells.costs import farthest_square


@dataclass(frozen=True)
class Natural:
    """What costs are computed from: -log p(c, y) = sum_d p_cd (y_d - mu_cd)^2 + q_c + constant.

    Where all clusters share one variance and equal weights there are none of their own (V = 0): costs are squared
    distances then, in units of 2 sigma^2.

    Attributes
    ----------
    means : (C, D) float
    variances, precisions : (C, V) float or None
        v, and p = 1 / (2 v): V = D for each feature, 1 for all of them.
    offsets : (C,) float or None
        q, the smallest of them 0.
    constant : float
    """

    means: np.ndarray
    variances: np.ndarray | None
    precisions: np.ndarray | None
    offsets: np.ndarray | None
    constant: float = 0.0

    @classmethod
    def shared(cls, means: np.ndarray) -> Natural:
        """Clusters that differ in their means (C, D) alone."""
        return cls(means, None, None, None)

    @property
    def n_squares(self) -> int:
        """V."""
        return 0 if self.precisions is None else self.precisions.shape[1]

    @property
    def farthest(self) -> float:
        """How far a cluster may be, in its own variance, for its cost to be taken from a product."""
        return farthest_square(self.means.dtype)
