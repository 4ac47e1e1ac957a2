"""What an E-step is, whichever way it searches."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ..kernels.exact_sums import rounding_constant
from .mstep import Statistics


class Search(Protocol):
    """Keeps K(n) and G_c, and improves them."""

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


class Box:
    """Rounding constants for the exact sums of gamma s (y - mu) and of gamma s.

    No sum can exceed the total weight times the extent of the box that holds all points and means.

    Parameters
    ----------
    points : (N', D) float
    total_weight : float
    """

    def __init__(self, points: np.ndarray, total_weight: float) -> None:
        self.low = points.min(axis=0)
        self.high = points.max(axis=0)
        self.total_weight = total_weight

    def magic_numbers(self, means: np.ndarray) -> tuple[np.ndarray, float]:
        """For shifts, (D,) float64, and for masses."""
        low = np.minimum(self.low, means.min(axis=0)).astype(np.float64)
        high = np.maximum(self.high, means.max(axis=0)).astype(np.float64)
        shift_magic = rounding_constant((high - low) * self.total_weight)
        return shift_magic, float(rounding_constant(np.array(self.total_weight)))
