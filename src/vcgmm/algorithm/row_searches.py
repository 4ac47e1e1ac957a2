"""What E-steps over all rows are made by, wherever they are taken."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..data import Rows
from ..parallel import Workers
from .cells.extent import Extent
from .coreset.local_points import LocalPoints
from .estep import Steps
from .models.own import JointSteps
from .models.row_search import JointRowSearch
from .models.search import feature_sums
from .passes.row_search import RowSearch
from .snapshot import Problem


class RowSteps(Steps, Protocol):
    """E-steps over rows that are read anew in each of them."""


class JointRowSteps(JointSteps, Protocol):
    """Likewise, by joints."""

    @property
    def neighbors(self) -> np.ndarray:
        """G_c, (C, G) int32, itself first."""
        ...


@dataclass(frozen=True)
class About:
    """The rows of a refinement.

    Attributes
    ----------
    rows : Rows
    weights : (N,) float64 or None
    total_weight : float
    problem : Problem
    advance : callable
        Told how many rows have been read since the last call.
    """

    rows: Rows
    weights: np.ndarray | None
    total_weight: float
    problem: Problem
    advance: Callable[[int], None]


class RowSearches(Protocol):
    """What E-steps over all rows are made by, wherever they are taken."""

    def shared(self, about: About) -> RowSteps:
        """For clusters that share one variance, and have equal weights."""
        ...

    def joint(self, about: About) -> JointRowSteps:
        """For clusters with weights or variances of their own."""
        ...

    def feature_sums(self) -> tuple[np.ndarray, np.ndarray]:
        """sum_n gamma y_d and sum_n gamma y_d^2 over the coreset, (D,) float64 each."""
        ...


class LocalRowSearches:
    """Those of this machine's processor.

    Parameters
    ----------
    points : LocalPoints
        The coreset's; put back in its order where it is asked for.
    weights : (N',) float64
        Of the coreset.
    workers : Workers
    """

    def __init__(self, points: LocalPoints, weights: np.ndarray, workers: Workers) -> None:
        self.points = points
        self.weights = weights
        self.workers = workers

    def shared(self, about: About) -> RowSearch:
        """For clusters that share one variance, and have equal weights."""
        return RowSearch(*self._arguments(about))

    def joint(self, about: About) -> JointRowSearch:
        """For clusters with weights or variances of their own."""
        return JointRowSearch(*self._arguments(about))

    def feature_sums(self) -> tuple[np.ndarray, np.ndarray]:
        """sum_n gamma y_d and sum_n gamma y_d^2 over the coreset, (D,) float64 each."""
        self.points.put_back()
        return feature_sums(self.points.array, self.weights, self.workers)

    def _arguments(self, about: About) -> tuple[Any, ...]:
        problem = about.problem
        n_features = about.rows.n_features
        # In the frame of these rows the mean square of all features together is at most 2 for each of them.
        most = 2.0 * n_features
        extent = Extent(
            about.total_weight,
            absolute=np.full(n_features, about.total_weight * math.sqrt(most)),
            squares=np.full(n_features, about.total_weight * most),
        )
        return (
            about.rows, about.weights, extent, problem.frame, problem.settings, problem.variance_floor,
            self.workers, about.advance,
        )  # fmt: skip
