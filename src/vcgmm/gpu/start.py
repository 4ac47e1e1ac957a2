"""Where EM begins on the device: the twin of `algorithm.subspace`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from ..algorithm.seeding import Start
from ..algorithm.subspace import (
    CHOICES,
    ENOUGH,
    SearchSettings,
    choices_for,
    improve,
    leading_directions,
    size_that_pays,
)
from ..parallel import Workers
from .arrays import DeviceArray
from .cells import sort_by_group
from .nearest import distances_of
from .neighbourhoods import DeviceNeighbourhoods
from .points import DevicePoints
from .scatter import FEW_FEATURES, Scatter, begin_scatter, keeps_digits
from .search import DeviceSearch
from .sums import Entries, weighted_sums
from .two_level import two_level

#: Points looked at for each cluster that lost all of its own.
TRIED_PER_EMPTY = 4


def start_in_subspace(
    points: DevicePoints,
    weights: np.ndarray,
    n_clusters: int,
    settings: SearchSettings,
    rng: np.random.Generator,
    workers: Workers,
    begun: Scatter | None = None,
) -> Start:
    """Two-level start and EM in a subspace where that pays, lifted to all dimensions; else the plain start.

    Parameters
    ----------
    points : DevicePoints
    weights : (N',) float64 array
    n_clusters : int
        At most the number of distinct points.
    settings : SearchSettings
    rng : numpy Generator
    workers : Workers
        For the directions, which are found on the host from a sample.
    begun : Scatter, optional
        Of that sample, up to a scale, where it is on its way.
    """
    source: Any = Sampled(points, workers)
    if points.n_features <= FEW_FEATURES:
        directions = directions_of_narrow(points, rng, begun)
    else:
        directions = leading_directions(source, weights, rng, source.scatter_times)
    if directions is None:
        return two_level(points, n_clusters, rng)
    points.end_chores()
    projected = points.project(directions)
    start = two_level(projected, n_clusters, rng)
    floor = float(np.finfo(np.float32).tiny)
    near = DeviceNeighbourhoods(
        n_clusters,
        settings.n_neighbors,
        max(settings.n_candidates, settings.truncation),
        0,
        int(rng.integers(1 << 62)),
        points.device,
    )
    labels: Any = start.labels
    search = DeviceSearch(projected, labels, near, settings.truncation, start.error, floor)
    n_evaluations = start.n_evaluations + improve(search, start, search.total_weight, floor, settings, rng)
    found = search.labels().contiguous()
    del search, projected, near, start
    return lift(points, found, n_clusters, n_evaluations)


def directions_of_narrow(
    points: DevicePoints, rng: np.random.Generator, begun: Scatter | None = None
) -> np.ndarray | None:
    """As `algorithm.subspace.leading_directions`, from the whole scatter of a sample: the host waits once.

    Parameters
    ----------
    points : DevicePoints
        Of at most `FEW_FEATURES` features.
    rng : numpy Generator
    begun : Scatter, optional
        As in `start_in_subspace`.
    """
    scatter = begun or begin_scatter(points.stored, points.scale, points.weights, rng)
    if scatter is None:
        return None
    products = scatter.array()
    if not keeps_digits(products):
        products = Scatter(points.stored, points.scale, points.weights, scatter.rows).array()
    if cannot_pay(products):
        return None
    variances, directions = np.linalg.eigh(products)
    size = size_that_pays(variances[::-1], float(np.trace(products)), points.n_features)
    return None if size is None else np.ascontiguousarray(directions[:, ::-1][:, :size], dtype=np.float32)


def cannot_pay(scatter: np.ndarray) -> bool:
    """Whether it can be told without eigenvalues that few directions of a scatter (D, D) do not keep enough.

    The sum of the k largest is at most the root of k times the sum of all squares.
    """
    choices, total = choices_for(len(scatter)), float(np.trace(scatter))
    return len(choices) < len(CHOICES) and math.sqrt(choices[-1]) * float(np.linalg.norm(scatter)) < ENOUGH * total


class Sampled:
    """As much of `LocalPoints` as the search for directions asks for: its sample stays on the device.

    Parameters
    ----------
    points : DevicePoints
    workers : Workers
    """

    def __init__(self, points: DevicePoints, workers: Workers) -> None:
        self.n_features = points.n_features
        self.frame = points.frame
        self.workers = workers
        self._points = points

    def __len__(self) -> int:
        """Number of points N'."""
        return len(self._points)

    def take(self, rows: np.ndarray) -> DeviceArray:
        """Coordinates of these points (n, D) float32."""
        return DeviceArray(self._points.at(torch.from_numpy(rows).to(self._points.device)))

    def scatter_times(self, rows: Any, matrix: np.ndarray) -> np.ndarray:
        """As `algorithm.subspace.scatter_times`; the product (D, d) is on the host."""
        sample: torch.Tensor = rows.tensor
        product = sample.T @ (sample @ torch.from_numpy(matrix).to(sample.device))
        return product.cpu().numpy()


def lift(points: DevicePoints, labels: torch.Tensor, n_clusters: int, n_evaluations: int) -> Start:
    """A start in all dimensions from labels (N',) int32: the weighted mean of every cluster's points.

    A cluster without points is put on one of those that lie farthest from their mean, none on two equal ones, and
    none on the last of another cluster.
    """
    groups = sort_by_group(labels, n_clusters)
    middle = points.middle().expand(n_clusters, -1).contiguous()
    sums = weighted_sums(points, Entries(groups.order, points.weights, groups.start), middle)
    means = middle + sums.moves
    every = torch.arange(len(points), device=points.device)
    distances = distances_of(points, every, labels, means.float())
    empty = torch.nonzero(groups.sizes == 0).view(-1).cpu().numpy()
    if len(empty):
        _fill(points, labels, distances, means, empty, groups.sizes)
    error = points.error_of(distances)
    return Start(DeviceArray(means), labels, error, n_evaluations + len(points))  # type: ignore[arg-type]


def _fill(
    points: DevicePoints,
    labels: torch.Tensor,
    distances: torch.Tensor,
    means: torch.Tensor,
    empty: np.ndarray,
    group_sizes: torch.Tensor,
) -> None:
    """Put empty clusters on points that lie far out; labels, distances and means are changed in place."""
    n_tried = min(len(points), TRIED_PER_EMPTY * len(empty))
    order = torch.argsort(-points.weights * distances, stable=True)[:n_tried]
    rows, values = order.cpu().numpy(), points.at(order)
    owners, sizes = labels[order].cpu().numpy(), group_sizes.cpu().numpy()
    patterns, taken = values.cpu().numpy(), set()
    places = iter(range(n_tried))
    for cluster in empty:
        for i in places:
            if sizes[owners[i]] > 1 and patterns[i].tobytes() not in taken:
                break
        else:
            return  # no other point is left to stand on
        taken.add(patterns[i].tobytes())
        sizes[owners[i]] -= 1
        means[cluster] = values[i].double()
        labels[rows[i]], distances[rows[i]] = int(cluster), 0.0
