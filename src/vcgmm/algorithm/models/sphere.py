"""The paper's model on the sphere, for metric="cosine": rows and means have length 1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..coreset.frame import Frame
from ..estep import Steps
from ..mstep import CANCELLED, Statistics
from .shared import Shared, SharedModel

#: Points whose directions add up to less than this share of their weight have no mean direction: it is rounding.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Sphere:
    """Where the rows of length 1 are in local coordinates.

    Attributes
    ----------
    centre : (D,) float64
    radius : float
    """

    centre: np.ndarray
    radius: float

    @classmethod
    def of(cls, frame: Frame) -> Sphere:
        """The unit sphere in the coordinates of a fit."""
        return cls(frame.enter(np.zeros((1, len(frame.origin))), np.dtype(np.float64))[0], frame.scale)

    def directions(self, points: np.ndarray) -> np.ndarray:
        """Unit vectors (n, D) float64 from the centre to points."""
        return unit_vectors((points - self.centre) / self.radius)

    def points(self, directions: np.ndarray) -> np.ndarray:
        """The points (n, D) of the sphere in given directions."""
        points: np.ndarray = self.centre + self.radius * directions
        return points

    def nearest(self, points: np.ndarray) -> np.ndarray:
        """The nearest points (n, D) of the sphere."""
        return self.points(self.directions(points))


def unit_vectors(vectors: np.ndarray) -> np.ndarray:
    """Vectors (n, D) of length 1 in the same directions; the first axis for a vector that has none."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    axis = np.zeros_like(vectors)
    axis[:, 0] = 1.0
    return np.where(lengths > 0.0, vectors / np.where(lengths > 0.0, lengths, 1.0), axis)


def turn(here: np.ndarray, there: np.ndarray, step: float) -> np.ndarray:
    """Unit vectors (n, D) at `step` times the angle on the great circle from `here` to `there`."""
    cosine = np.einsum("cd,cd->c", here, there)[:, None]
    tangent = there - cosine * here
    sine = np.linalg.norm(tangent, axis=1, keepdims=True)
    angle = step * np.arctan2(sine, cosine)
    turned = np.cos(angle) * here + np.sin(angle) * (tangent / np.where(sine > 0.0, sine, 1.0))
    return np.where(sine > 0.0, turned, there)


def sphere_m_step(
    statistics: Statistics,
    sphere: Sphere,
    variance_floor: float,
    scatter: Callable[[Statistics, np.ndarray], float],
    step: float = 1.0,
) -> tuple[np.ndarray, float]:
    """New means on the sphere, and the best variance for them.

    With S_c = sum_n gamma s_c y the best mean of length 1 is S_c / |S_c|; a step of another length r goes r times
    the angle to it.  That leaves |r - 1| times the angle, so for every r between 0 and 2 it is no farther than
    before, <S_c, mu_c> rises, and with it the bound.  The scatter about the new means is

        scatter - 2 sum_c <shift_c, m_c> + sum_c R_c ||m_c||^2,   m = mu_new - mu.

    A cluster without weight, or whose points have no mean direction, keeps its place.

    Parameters
    ----------
    statistics : Statistics
    sphere : Sphere
    variance_floor : float
    scatter : callable
        As for `mstep.m_step`.
    step : float
        r, in (0, 2).

    Returns
    -------
    means : (C, D) float64
    variance : float
    """
    masses = statistics.masses[:, None]
    sums = (statistics.shifts + masses * (statistics.means - sphere.centre)) / sphere.radius
    here = sphere.directions(statistics.means)
    known = np.linalg.norm(sums, axis=1, keepdims=True) > ROUNDING * masses
    there = np.where(known, unit_vectors(sums), here)
    means = sphere.points(there if step == 1.0 else turn(here, there, step))
    moves = means - statistics.means
    remaining = statistics.scatter - 2.0 * float(np.einsum("cd,cd->", statistics.shifts, moves))
    remaining += float(np.dot(statistics.masses, np.einsum("cd,cd->c", moves, moves)))
    if remaining < CANCELLED * statistics.scatter:
        remaining = scatter(statistics, means)
    return means, max(remaining / (means.shape[1] * statistics.total_weight), variance_floor)


class SphereModel(SharedModel):
    """Clusters that share one variance, with means on the sphere.

    Parameters
    ----------
    sphere : Sphere
    search, total_weight, variance_floor, relaxation, log_scale
        As for `SharedModel`.
    """

    def __init__(
        self,
        sphere: Sphere,
        search: Steps,
        total_weight: float,
        variance_floor: float,
        relaxation: float,
        log_scale: float,
    ) -> None:
        super().__init__(search, total_weight, variance_floor, relaxation, log_scale)
        self.sphere = sphere

    def improve(
        self, statistics: Statistics, scatter: Callable[[Statistics, np.ndarray], float], step: float
    ) -> Shared:
        """Means on the sphere, and the best variance for them."""
        return Shared(*sphere_m_step(statistics, self.sphere, self.variance_floor, scatter, step))

    def start_at(self, means: np.ndarray) -> np.ndarray:
        """The nearest means on the sphere."""
        return self.sphere.nearest(means)

    def shifts_about_means(self, masses: np.ndarray, means: np.ndarray, scatter: float) -> np.ndarray:
        """Sums of fitted points about means of length 1, which are not their weighted means.

        Points of one cluster add up to R rho mu; the scatter, 2 R (1 - rho) over all clusters, tells rho, which in
        this model is the same for all.
        """
        total = float(masses.sum()) * self.sphere.radius**2
        missing = 0.5 * scatter / total if total > 0.0 else 0.0  # 1 - rho
        shifts: np.ndarray = -min(missing, 1.0) * masses[:, None] * (means - self.sphere.centre)
        return shifts
