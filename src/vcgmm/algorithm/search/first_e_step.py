"""The first E-step of a process, on next to no points: what it needs is compiled by it, and kept for others."""

from __future__ import annotations

import numpy as np

from ...parallel import Workers
from ..cells.neighbourhoods import Neighbourhoods, sort_by_cluster
from ..seeding.relocation import choose_moves, errors_and_losses
from .blocked import BlockedSearch

#: Clusters: so few that no kernel is needed to link them, and as many as a point has winners, or more.
N_CLUSTERS = 8


def first_e_step(dtype: str, n_features: int, truncation: int, *, join: bool) -> None:
    """Take an E-step, and choose clusters to be moved, as a fit does.

    Parameters
    ----------
    dtype : str
        Of the points.
    n_features : int
    truncation : int
        C', up to N_CLUSTERS.
    join : bool
        Whether to join lists of neighbours, too, as many clusters ask for.
    """
    rng = np.random.default_rng(0)
    points = rng.normal(size=(4 * N_CLUSTERS, n_features)).astype(dtype)
    labels, weights = (np.arange(len(points)) % N_CLUSTERS).astype(np.int32), np.ones(len(points))
    with Workers(1) as workers:
        search = BlockedSearch(
            points, weights, labels, N_CLUSTERS, truncation, truncation, N_CLUSTERS, 0, 0, 1.0, 1e-6, workers
        )
        statistics = search.e_step(points[:N_CLUSTERS].astype(np.float64), None)
        if join:
            Neighbourhoods(N_CLUSTERS, truncation, N_CLUSTERS, 0, 0, workers).join(rng)
        errors, losses = errors_and_losses(search.points, weights, search.winners, statistics.moved(1.0), workers)
    # Not `relocate`, which would split some first, by kernels that the fit is compiling at the same time.
    _, start = sort_by_cluster(search.winners, N_CLUSTERS)
    choose_moves(losses, np.arange(N_CLUSTERS), errors, start, search.winners[:, 0].copy())
