"""The first E-step of a process, on next to no points: what it needs is compiled by it, and kept for others."""

from __future__ import annotations

import numpy as np

from ..parallel import Workers
from .blocked import BlockedSearch

#: Clusters, so few that no kernel is needed to link them, and winners of a point.
N_CLUSTERS, TRUNCATION = 8, 3


def first_e_step(dtype: str) -> None:
    """Take an E-step over points of a type, and move clusters, as the start of a fit does."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(4 * N_CLUSTERS, 2)).astype(dtype)
    labels = (np.arange(len(points)) % N_CLUSTERS).astype(np.int32)
    with Workers(1) as workers:
        search = BlockedSearch(
            points, np.ones(len(points)), labels, N_CLUSTERS, TRUNCATION, TRUNCATION, N_CLUSTERS, 0, 0, 1.0, 1e-6,
            workers,
        )  # fmt: skip
        statistics = search.e_step(points[:N_CLUSTERS].astype(np.float64), None)
        search.relocate(statistics.moved(1.0), rng)
