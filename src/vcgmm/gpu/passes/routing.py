"""A near cluster of every point at a cost that does not grow with C: twin of `algorithm.passes.routing`."""

from __future__ import annotations

import math

import numpy as np
import torch

from ...algorithm.coreset.frame import Frame
from ...algorithm.passes.routing import (
    FROM_CLUSTER,
    FROM_LANDMARK,
    MOST_LANDMARKS,
    MOST_STEPS,
    N_LINKS,
    PER_LANDMARK,
)
from ...algorithm.random import generator
from ..cells.costs import Costs
from ..cells.nearest import lists_of, nearest_listed, nearest_of_all
from ..cells.neighbourhoods import DeviceNeighbourhoods
from ..cells.pieces import Groups, sort_by_group
from ..cells.ranking import ranked
from ..coreset.points import DevicePoints
from ..seeding.two_level import DeviceCells


class DeviceRouting:
    """Landmarks, and the clusters around each of them and around each cluster.

    Parameters
    ----------
    means : (C, D) float32 tensor
    """

    def __init__(self, means: torch.Tensor) -> None:
        self.means = means
        n_clusters, n_features = means.shape
        frame = Frame(np.zeros(n_features), 1.0, np.dtype(np.float32))
        weights = torch.ones(n_clusters, device=means.device)
        cells = DeviceCells(DevicePoints(means, 1.0, weights, frame, "fp32"), generator(0))
        cells.split(np.array([max(1, min(math.ceil(n_clusters / PER_LANDMARK), MOST_LANDMARKS))]))
        self.landmarks = cells.centres
        squares = torch.cdist(self.landmarks.double(), means.double()).float()
        self.entries = ranked(squares, min(FROM_LANDMARK, n_clusters)).to(torch.int32)
        width = min(FROM_CLUSTER, n_clusters)
        around = DeviceNeighbourhoods(n_clusters, min(5, width), width, 0, 0, means.device)
        for _ in range(N_LINKS):
            around.update(means)
        self.around = around.candidates

    def labels_of(self, points: DevicePoints) -> torch.Tensor:
        """A near cluster of every point, (N',) int32."""
        at, _ = nearest_of_all(points, self.landmarks)
        every = torch.arange(len(points), device=points.device)
        labels = torch.zeros(len(points), dtype=torch.int32, device=points.device)
        near = torch.full((len(points),), torch.inf, device=points.device)
        self._step(points, every, at[:, 0], self.entries, self.landmarks, labels, near)
        rows = every
        for _ in range(MOST_STEPS):
            at_cluster = labels[rows]
            self._step(points, rows, at_cluster, self.around, self.means, labels, near)
            rows = rows[labels[rows] != at_cluster]
            if not len(rows):
                break
        return labels

    def _step(
        self,
        points: DevicePoints,
        rows: torch.Tensor,
        at: torch.Tensor,
        table: torch.Tensor,
        origins: torch.Tensor,
        labels: torch.Tensor,
        near: torch.Tensor,
        costs: Costs | None = None,
    ) -> None:
        """Move each of these rows to the nearest of table[at], if that is nearer than before; changed in place."""
        members = sort_by_group(at.contiguous(), len(table))
        groups = Groups(rows[members.order], members.start)
        ids, distances = nearest_listed(points, groups, origins, lists_of(table), self.means, 1, "fp32", costs)
        nearer = rows[distances[rows, 0] < near[rows]]
        labels[nearer], near[nearer] = ids[nearer, 0], distances[nearer, 0]
