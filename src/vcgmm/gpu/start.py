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
    SAMPLE,
    SearchSettings,
    choices_for,
    improve,
    leading_directions,
    rows_for_directions,
    size_that_pays,
)
from ..parallel import Workers
from .arrays import DeviceArray
from .cells import sort_by_group
from .kernels.surveying import scatter_rows
from .nearest import distances_of
from .neighbourhoods import DeviceNeighbourhoods
from .points import DevicePoints, upload
from .search import DeviceSearch
from .sizes import pieces_of, power_of_two
from .sums import Entries, weighted_sums
from .two_level import two_level

#: Up to so many features, directions are found from their scatter as a whole.
NARROW = 256

#: Rows, and features of them, that a program multiplies at a time.
SCATTERED_ROWS, SCATTERED_FEATURES = 64, 64

#: Points looked at for each cluster that lost all of its own.
TRIED_PER_EMPTY = 4


def start_in_subspace(
    points: DevicePoints,
    weights: np.ndarray,
    n_clusters: int,
    settings: SearchSettings,
    rng: np.random.Generator,
    workers: Workers,
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
    """
    source: Any = Sampled(points, workers)
    if points.n_features <= NARROW:
        directions = directions_of_narrow(points, rng)
    else:
        directions = leading_directions(source, weights, rng, source.scatter_times)
    if directions is None:
        return two_level(points, n_clusters, rng)
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


def directions_of_narrow(points: DevicePoints, rng: np.random.Generator) -> np.ndarray | None:
    """As `algorithm.subspace.leading_directions`, from the whole scatter of a sample: the host waits once.

    Parameters
    ----------
    points : DevicePoints
        Of at most `NARROW` features.
    rng : numpy Generator
    """
    n = min(len(points), SAMPLE)
    if n < rows_for_directions(points.n_features):
        return None
    picks = ((np.arange(n) + rng.random(n)) * (len(points) / n)).astype(np.int64)
    scatter = scatter_of(points, upload(np.minimum(picks, len(points) - 1), points.device))
    if cannot_pay(scatter):
        return None
    variances, directions = np.linalg.eigh(scatter)
    size = size_that_pays(variances[::-1], float(np.trace(scatter)), points.n_features)
    return None if size is None else np.ascontiguousarray(directions[:, ::-1][:, :size], dtype=np.float32)


def scatter_of(points: DevicePoints, rows: torch.Tensor) -> np.ndarray:
    """Scatter of some points (n,) int64 about their mean, over their weight: (D, D) float64, on the host."""
    width, n_blocks = points.n_features + 1, pieces_of(len(rows), SCATTERED_ROWS)
    products = torch.empty((n_blocks, width, width), device=points.device)
    features = max(16, min(SCATTERED_FEATURES, power_of_two(width)))
    n_parts = pieces_of(width, features)
    scatter_rows[(n_blocks, n_parts, n_parts)](
        points.stored, points.stored.stride(0), points.n_features, points.scale, points.weights, rows, len(rows),
        products, ROWS=SCATTERED_ROWS, FEATURES=features,
    )  # fmt: skip
    total: np.ndarray = products.sum(0, dtype=torch.float64).cpu().numpy()
    means = total[-1, :-1] / total[-1, -1]
    return total[:-1, :-1] / total[-1, -1] - np.outer(means, means)


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
