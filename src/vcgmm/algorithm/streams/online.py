"""One block of a stream into a fitted model: an incremental EM step (Neal and Hinton 1998).

The sums of the M-step over all earlier rows follow from the model itself: its means are weighted means, so the
displacements from them add up to nothing (on the sphere, to what the variance tells).  The block's own sums are
added, and the M-step is taken of both.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...data import ArrayRows
from ...parallel import Workers
from ..cells.extent import Extent
from ..coreset.frame import Frame
from ..models.start import shared_model
from ..mstep import Statistics
from ..passes.row_search import RowSearch
from ..pipeline import SMALLEST_VARIANCE, in_units
from ..settings import Settings

#: Rows farther out in local coordinates need another frame.
FARTHEST = 1e15


@dataclass(frozen=True)
class Model:
    """A fitted mixture in data coordinates.

    Attributes
    ----------
    means : (C, D) float64
    variance : float
    masses : (C,) float64
    neighbors : (C, G) int32
    """

    means: np.ndarray
    variance: float
    masses: np.ndarray
    neighbors: np.ndarray

    @property
    def scatter(self) -> float:
        """Weighted sum of squared distances to the means, as far as the variance tells it."""
        return float(self.variance * self.means.shape[1] * self.masses.sum())


def add_block(
    model: Model,
    frame: Frame,
    rows: ArrayRows,
    weights: np.ndarray,
    settings: Settings,
    most: float,
    workers: Workers,
    advance: Callable[[int], None],
) -> Model | None:
    """The model with a block of rows added; None where the block is too unlike the rows before it.

    Parameters
    ----------
    model : Model
    frame : Frame
    rows : ArrayRows
    weights : (n,) float64, positive
    settings : Settings
    most : float
        Scatter of all rows from which on the block is too unlike: new clusters may be needed then.
    workers : Workers
    advance : callable
        Told how many rows have been done since the last call.
    """
    points = frame.enter(rows.array)
    if not np.abs(points).max() < FARTHEST:
        return None
    scaled, unit = in_units(weights)
    # In local coordinates the variance of the data is about 1 per feature.
    floor = max(settings.reg_covar, SMALLEST_VARIANCE)
    extent = Extent.of(points, scaled, workers)
    search = RowSearch(rows, scaled, extent, frame, settings, floor, workers, advance)
    means, variance = frame.enter(model.means, np.dtype(np.float64)), model.variance * frame.scale**2
    block = search.e_step(means, variance)
    masses, rounding = model.masses / unit, means - block.means
    earlier = model.scatter * frame.scale**2 / unit
    one = shared_model(settings, search, float(masses.sum()) + block.total_weight, floor, frame)
    about = one.shifts_about_means(masses, means, earlier)
    before = earlier + _moved(masses, about, -rounding)
    if not before + search.error < most * frame.scale**2 / unit:
        return None
    both = Statistics(
        means=block.means,
        variance=variance,
        shifts=block.shifts + about + masses[:, None] * rounding,
        masses=masses + block.masses,
        scatter=before + block.scatter,
        log_sum=math.nan,
        total_weight=one.total_weight,
        n_evaluations=block.n_evaluations,
    )

    def scatter(_both: Statistics, new: np.ndarray) -> float:
        return earlier + _moved(masses, about, new - means) + search.scatter(block, new)

    new = one.improve(both, scatter, 1.0)
    return Model(frame.leave(new.means), new.variance / frame.scale**2, both.masses * unit, search.neighbors)


def _moved(masses: np.ndarray, shifts: np.ndarray, moves: np.ndarray) -> float:
    """What a move of the means adds to the scatter of points that add up to `shifts` about them."""
    squares = float(np.dot(masses, np.einsum("cd,cd->c", moves, moves)))
    return squares - 2.0 * float(np.einsum("cd,cd->", shifts, moves))
