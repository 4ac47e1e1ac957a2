"""A start in few dimensions: wide rows are first clustered in the subspace where most of their variance lies.

Distances in D dimensions cost O(D), and where a few directions carry most of the variance, most of what they say
about clusters can be had for a fraction of it.  So the two-level start and some EM iterations run on projections
onto the leading principal directions; then the means of the clusters found are taken in all dimensions, and EM
goes on there.  What the projection leaves out can only cost iterations: the last word is always said in full.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ...kernels.nearest.lloyd import mean_of_groups
from ...parallel import MOVING, Workers
from ...progress import Progress
from ..cells.neighbourhoods import sort_by_cluster
from ..coreset.local_points import LocalPoints
from ..em import Fit, variational_em
from ..estep import Search
from ..models.shared import Shared, SharedModel
from ..places import in_order
from ..search.blocked import BlockedSearch
from ..seeding.afkmc2 import Start
from ..seeding.relocation import Relocating
from ..seeding.two_level import two_level
from ..settings import Settings
from .directions import leading_directions
from .empty_clusters import put_on_farthest
from .settling import settle

#: EM iterations in the subspace for each that is allowed in all dimensions, since they cost a fraction; and most.
ITERATIONS_EACH = 2
MOST_ITERATIONS = 10

#: Winners of a point in the iterations of a start, at most: what more of them tell about clusters, those of the
#: fit tell better, and where no fit follows they change as little (docs/log.md).
WINNERS = 3


@dataclass(frozen=True)
class SearchSettings:
    """What the EM iterations of a start need to know; names as in the estimator, clipped to `n_clusters`."""

    truncation: int
    n_neighbors: int
    n_candidates: int
    tol: float
    max_iter: int
    relaxation: float

    @classmethod
    def of(cls, settings: Settings) -> SearchSettings:
        """Those of a fit, with more iterations than it allows in all dimensions."""
        return cls(
            settings.truncation,
            settings.n_neighbors,
            settings.n_candidates,
            settings.tol,
            min(ITERATIONS_EACH * settings.max_iter, MOST_ITERATIONS),
            settings.relaxation,
        )


def start_in_subspace(
    points: LocalPoints,
    weights: np.ndarray,
    n_clusters: int,
    settings: SearchSettings,
    rng: np.random.Generator,
    workers: Workers,
    advance: Callable[[int], None],
) -> Start:
    """Two-level start and EM in a subspace where that pays, lifted to all dimensions; else the plain start.

    Parameters
    ----------
    points : LocalPoints
        Those in all dimensions are not made before those in few have served their purpose.
    weights : (N',) float64
    n_clusters : int
        At most the number of distinct points.
    settings : SearchSettings
    rng : numpy Generator
    workers : Workers
    advance : callable
        Told how many clusters have been found since the last call.

    Returns
    -------
    Start
    """
    directions = leading_directions(points, weights, rng)
    if directions is None:
        return two_level(points.array, weights, n_clusters, rng, workers, advance)
    projected = points.project(directions)
    start = two_level(projected, weights, n_clusters, rng, workers, advance)
    labels, n_evaluations = improved_labels(projected, weights, start, settings, rng, workers)
    del projected  # all points will lie where they are
    order, _ = sort_by_cluster(labels, n_clusters, workers)
    if not points.arrange(order):
        return lift(points.array, weights, labels, n_clusters, n_evaluations, workers)
    ordered = in_order(labels, order)
    start = lift(points.array, in_order(weights, order), ordered, n_clusters, n_evaluations, workers)
    labels[order] = start.labels
    return replace(start, labels=labels, rows=order)


def improved_labels(
    points: np.ndarray,
    weights: np.ndarray,
    start: Start,
    settings: SearchSettings,
    rng: np.random.Generator,
    workers: Workers,
) -> tuple[np.ndarray, int]:
    """Labels (N',) int32 after some EM iterations from a start, and the number of distances computed for both.

    Parameters
    ----------
    points : (N', d) float
    weights : (N',) float64
    start : Start
    settings : SearchSettings
    rng : numpy Generator
    workers : Workers
    """
    floor = float(np.finfo(points.dtype).tiny)
    search = BlockedSearch(
        points, weights, start.labels, len(start.means), min(settings.truncation, WINNERS), settings.n_neighbors,
        settings.n_candidates, 0, int(rng.integers(1 << 62)), start.error, floor, workers,
    )  # fmt: skip
    n_evaluations = improve(search, start, float(weights.sum()), floor, settings, rng)
    return search.labels(), start.n_evaluations + n_evaluations


def improve(
    search: Search,
    start: Start,
    total_weight: float,
    floor: float,
    settings: SearchSettings,
    rng: np.random.Generator,
) -> int:
    """Some EM iterations from a start, wherever it is; returns the number of distances computed.

    What they have found is the search's to tell.

    Parameters
    ----------
    search : Search
        Over the points of the start.
    start : Start
    total_weight : float
    floor : float
        Smallest variance.
    settings : SearchSettings
    rng : numpy Generator
    """
    model = SharedModel(search, total_weight, floor, settings.relaxation, log_scale=0.0)
    means, n_evaluations = start.means, 0
    if isinstance(search, Relocating):
        means, n_evaluations = settle(model, search, means, rng)
    fit = variational_em(
        model,
        Shared(means, math.nan),
        Fit.at(means),
        tol=settings.tol,
        max_iter=settings.max_iter,
        weight_unit=1.0,
        callbacks=(),
        progress=Progress(),
        begun=0.0,
    )
    return n_evaluations + fit.n_evaluations


def lift(
    points: np.ndarray,
    weights: np.ndarray,
    labels: np.ndarray,
    n_clusters: int,
    n_evaluations: int,
    workers: Workers,
) -> Start:
    """A start in all dimensions from labels: the weighted mean of every cluster's points.

    A cluster without points is put on one of those that lie farthest from their mean, none on two equal ones, and
    none on the last of another cluster.
    """
    order, start = sort_by_cluster(labels, n_clusters, workers)
    means = np.empty((n_clusters, points.shape[1]))
    distances = np.empty(len(points), points.dtype)

    def work(_thread: int, first: int, last: int) -> None:
        mean_of_groups(first, last, points, weights, order, start, means, distances)

    workers.run(work, n_clusters, MOVING * points.size)
    empty = np.flatnonzero(np.diff(start) == 0)
    if len(empty):
        costs = weights * distances
        distances[put_on_farthest(empty, costs, labels, np.diff(start), points.__getitem__, means)] = 0
    return Start(means, labels, float(np.dot(weights, distances)), n_evaluations + len(points))
