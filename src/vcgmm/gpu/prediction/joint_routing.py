"""The cluster with about the largest joint of every point: the twin of `algorithm.models.routing`."""

from __future__ import annotations

import torch

from ...algorithm.passes.routing import FROM_CLUSTER, MOST_STEPS, N_LINKS
from ..cells.costs import Costs
from ..coreset.points import DevicePoints
from ..passes.routing import DeviceRouting
from ..search.joints import JointNeighbourhoods


class JointRouting(DeviceRouting):
    """From the nearest mean, which `DeviceRouting` finds, to clusters with larger and larger joints.

    Parameters
    ----------
    means : (C, D) float32 tensor
    costs : Costs
    """

    def __init__(self, means: torch.Tensor, costs: Costs) -> None:
        super().__init__(means)
        width = min(FROM_CLUSTER, len(means))
        by_joints = JointNeighbourhoods(len(means), min(5, width), width, 0, 0, means.device)
        for _ in range(N_LINKS):
            by_joints.update_to(means, costs)
        self.by_joints = by_joints.candidates
        self.costs = costs

    def labels_of(self, points: DevicePoints) -> torch.Tensor:
        """A cluster with a large joint for every point, (N',) int32."""
        labels = super().labels_of(points)
        near = torch.full((len(points),), torch.inf, device=points.device)
        rows = torch.arange(len(points), device=points.device)
        for _ in range(MOST_STEPS):
            at_cluster = labels[rows]
            self._step(points, rows, at_cluster, self.by_joints, self.means, labels, near, self.costs)
            rows = rows[labels[rows] != at_cluster]
            if not len(rows):
                break
        return labels
