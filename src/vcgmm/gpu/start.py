"""Where EM begins on the device: the twin of `algorithm.starts.subspace`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ..algorithm.seeding.afkmc2 import Start
from ..algorithm.starts.directions import directions_of_sample, directions_of_scatter, draw_sample
from ..algorithm.starts.subspace import SearchSettings, improve
from .cells.nearest import distances_of
from .cells.neighbourhoods import DeviceNeighbourhoods
from .cells.pieces import sort_by_group
from .cells.sums import Entries, weighted_sums
from .coreset.points import DevicePoints
from .coreset.scatter import FEW_FEATURES, Scatter, begin_scatter, keeps_digits
from .device.arrays import DeviceArray
from .device.sizes import pieces_of
from .search.blocked import DeviceSearch
from .seeding.two_level import two_level

#: Points looked at for each cluster that lost all of its own.
TRIED_PER_EMPTY = 4


def start_in_subspace(
    points: DevicePoints,
    weights: np.ndarray,
    n_clusters: int,
    settings: SearchSettings,
    rng: np.random.Generator,
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
    begun : Scatter, optional
        Of that sample, up to a scale, where it is on its way.
    """
    if points.n_features <= FEW_FEATURES:
        directions = directions_of_narrow(points, rng, begun)
    else:
        directions = directions_of_wide(points, weights, rng)
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
    """As `algorithm.starts.subspace.leading_directions`, from the whole scatter of a sample: the host waits once.

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
    return directions_of_scatter(products, np.dtype(np.float32))


def directions_of_wide(points: DevicePoints, weights: np.ndarray, rng: np.random.Generator) -> np.ndarray | None:
    """As `algorithm.starts.directions.leading_directions`, by products on the device."""
    rows = draw_sample(len(points), points.n_features, rng)
    if rows is None:
        return None
    return directions_of_sample(DeviceSample(points, weights, rows), points.n_features, np.dtype(np.float32), rng)


class DeviceSample:
    """A sample on the device, as `algorithm.starts.row_sample.RowSample` is one on the host.

    Parameters
    ----------
    points : DevicePoints
    weights : (N',) float64 array
    rows : (n,) int64 array
    """

    def __init__(self, points: DevicePoints, weights: np.ndarray, rows: np.ndarray) -> None:
        sample = points.at(torch.from_numpy(rows).to(points.device))
        shares = weights[rows] / weights[rows].sum()
        sample -= self._sent(shares.astype(np.float32), sample) @ sample
        if shares.min() < shares.max():
            sample *= self._sent(np.sqrt(len(rows) * shares).astype(np.float32), sample)[:, None]
        self._rows = sample

    def __len__(self) -> int:
        """How many there are."""
        return self._rows.shape[0]

    @property
    def total(self) -> float:
        """Sum of all squares."""
        return float((self._rows * self._rows).sum())

    def sums(self, signs: np.ndarray, n_sums: int) -> np.ndarray:
        """Every `n_sums`-th row with its sign (n,), added up from each of the first ones on; (n_sums, D)."""
        n_rows, n_features = self._rows.shape
        signed = torch.zeros((pieces_of(n_rows, n_sums) * n_sums, n_features), device=self._rows.device)
        torch.mul(self._rows, self._sent(signs, self._rows)[:, None], out=signed[:n_rows])
        return signed.view(-1, n_sums, n_features).sum(0).cpu().numpy()

    def scatter_times(self, matrix: np.ndarray) -> np.ndarray:
        """R^T R M of a matrix M (D, d); (D, d) on the host."""
        return (self._rows.T @ (self._rows @ self._sent(matrix, self._rows))).cpu().numpy()

    def scatter_within(self, basis: np.ndarray) -> np.ndarray:
        """(R B)^T R B of a basis B (D, d); (d, d) on the host."""
        projected = self._rows @ self._sent(basis, self._rows)
        return (projected.T @ projected).cpu().numpy()

    @staticmethod
    def _sent(array: np.ndarray, there: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(array).to(there.device)


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
