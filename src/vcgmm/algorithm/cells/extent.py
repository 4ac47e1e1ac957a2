"""How large sums over points can become: constants for exact sums."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...kernels.coreset.moments import absolute_sum
from ...kernels.parts.exact_sums import rounding_constant
from ...parallel import MOVING, Workers
from .natural import Natural

#: A mean is far out beyond so many times the mean absolute value of a feature.
FAR = 4.0


@dataclass(frozen=True)
class Rounding:
    """Constants of exact sums: shifts (k, D), squares (k, V), if any, each cluster's row in them (C,), masses."""

    shifts: np.ndarray
    scatters: np.ndarray | None
    rows: np.ndarray
    masses: float


@dataclass(frozen=True)
class Extent:
    """Limits of sums over some points.

    In feature d no sum of gamma s (y - mu_c) can exceed sum gamma |y_d| + |mu_cd| sum gamma, and no sum of its
    squares 2 sum gamma y_d^2 + 2 mu_cd^2 sum gamma.  Clusters in the middle of the data share one constant; a
    cluster far out has its own, so that it costs the others no digits.

    Attributes
    ----------
    total_weight : float
    absolute : (D,) float64
        Not less than sum_n gamma |y_d|.
    squares : (D,) float64 or None
        Not less than sum_n gamma y_d^2, where such sums are taken.
    """

    total_weight: float
    absolute: np.ndarray
    squares: np.ndarray | None = None

    @classmethod
    def of(cls, points: np.ndarray, weights: np.ndarray, workers: Workers) -> Extent:
        """That of points (n, D) float with weights (n,) float64; squares are left out."""
        step = max(1, (1 << 18) // points.shape[1])  # fixed blocks: the same sums for any number of threads
        sums = np.empty((-(-len(points) // step), points.shape[1]))

        def work(_thread: int, first: int, last: int) -> None:
            for i in range(first, last):
                absolute_sum(i * step, min((i + 1) * step, len(points)), points, weights, sums[i])

        workers.run(work, len(sums), MOVING * points.size)
        return cls(float(weights.sum()), sums.sum(axis=0))

    def __add__(self, other: Extent) -> Extent:
        """That of both sets of points together, for sums over points that lie in different places."""
        squares = None if self.squares is None or other.squares is None else self.squares + other.squares
        return Extent(self.total_weight + other.total_weight, self.absolute + other.absolute, squares)

    def rounding(self, natural: Natural) -> Rounding:
        """Constants for sums about these clusters' means."""
        means, n_features = natural.means, len(self.absolute)
        limit = FAR * self.absolute / self.total_weight
        beyond = np.abs(means) > limit.astype(means.dtype)  # of one type
        places = np.flatnonzero(beyond)
        reach, rows = limit[None], np.zeros(len(means), np.int32)
        if len(places):
            far = np.unique(places // n_features)  # few: to ask row by row takes longer
            reach = np.vstack([limit, np.abs(means[far]).astype(np.float64)])
            rows[far] = np.arange(1, len(far) + 1)
        scatters = None
        if natural.n_squares:
            if self.squares is None:
                raise RuntimeError("sums of squares are asked for, but not how large they can become.")
            squares = 2 * (self.squares + np.maximum(reach, limit) ** 2 * self.total_weight)
            if natural.n_squares != n_features:
                squares = squares.sum(axis=1, keepdims=True)
            scatters = rounding_constant(squares)
        return Rounding(
            rounding_constant(self.absolute + reach * self.total_weight),
            scatters,
            rows,
            float(rounding_constant(np.array(self.total_weight))),
        )
