"""A start settles: one EM step lets its clusters meet, then they are moved to where more are needed."""

from __future__ import annotations

import math

import numpy as np

from .models.shared import Shared, SharedModel
from .relocation import Relocating


def settle(
    model: SharedModel, search: Relocating, means: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, int]:
    """Means (C, D) float64 for EM to begin with, and the number of distances computed.

    A start divides cells of points, and clusters of one cell know nothing of those in the next: before the E-step
    nobody could tell which are missed least.

    Parameters
    ----------
    model : SharedModel
        Of the search.
    search : Relocating
        From whose winners EM will go on.
    means : (C, D) float64
        Of the start.
    rng : numpy Generator
    """
    statistics = model.e_step(Shared(model.start_at(means), math.nan))
    means, n_evaluations = search.relocate(model.m_step(statistics, 1.0).means, rng)
    return means, statistics.n_evaluations + n_evaluations
