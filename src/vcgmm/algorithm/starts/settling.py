"""A start settles: an EM step lets its clusters meet, then some are moved to where more are needed."""

from __future__ import annotations

import math

import numpy as np

from ..models.shared import Shared, SharedModel
from ..seeding.relocation import Relocating

#: Clusters are moved again while the last round has lowered the error by more than this share of it, and so many
#: times at most.
WORTH = 0.005
ROUNDS = 5


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
    n_evaluations = 0
    for _ in range(ROUNDS):
        statistics = model.e_step(Shared(model.start_at(means), math.nan))
        n_evaluations += statistics.n_evaluations
        means = model.start_at(statistics.moved(1.0))
        del statistics  # sums as large as the means
        moved = search.relocate(means, rng)
        means = moved.means
        n_evaluations += moved.n_evaluations
        if moved.gained <= WORTH * moved.error:
            break
    return means, n_evaluations
