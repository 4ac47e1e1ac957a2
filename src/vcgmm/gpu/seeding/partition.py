"""Points in groups of which the host knows the sizes, so that it need not wait for the device to plan."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from ..cells.pieces import Groups, sort_by_group
from ..coreset.points import DevicePoints, upload
from ..device.arena import FEW, empty, letter
from ..device.arrays import Told
from ..device.constants import first_rows, one_float, one_group
from ..device.sizes import pieces_of
from ..device.tiling import ALIGNED
from ..kernels.partition import gather_columns, gather_rows, sample_groups, survey_groups

#: Members of a group that a program looks at.
SURVEYED, SAMPLED = 1024, 256

#: Points, and features of them, that a program gathers.
TURNED, TURNED_FEATURES = 64, 64


@dataclass(frozen=True)
class Partition:
    """Groups of points.

    Attributes
    ----------
    groups : Groups
    sizes : (n_groups,) int64 array
        Their members.
    masses : (n_groups,) float64 tensor
        Their weights.
    errors : (n_groups,) float64 array
        Their weighted squared errors, as far as distances are known.
    """

    groups: Groups
    sizes: np.ndarray
    masses: torch.Tensor
    errors: np.ndarray

    def __len__(self) -> int:
        """Number of groups."""
        return len(self.sizes)

    @classmethod
    def whole(cls, points: DevicePoints) -> Partition:
        """All points in one group."""
        n, device = len(points), points.device
        every = first_rows(n, device) if n <= FEW else torch.arange(n, device=device)
        groups = Groups(every, one_group(n, device))
        return cls(groups, np.array([n]), one_float(points.total_weight, device), np.zeros(1))

    @classmethod
    def by(
        cls,
        labels: torch.Tensor,
        n_groups: int,
        weights: torch.Tensor,
        distances: torch.Tensor,
    ) -> Partition:
        """Points by labels (N',), with weights and squared distances (N',) float32; the host waits once."""
        groups = sort_by_group(labels, n_groups)
        facts = letter((3, n_groups), torch.float64, labels.device)
        masses = empty((n_groups,), torch.float64, labels.device)
        survey_groups[(n_groups,)](groups.order, groups.start, weights, distances, facts, masses, MEMBERS=SURVEYED)
        here = Told(facts).array()
        return cls(groups, here[0].astype(np.int64), masses, here[2].copy())

    def sample(self, counts: np.ndarray, draws: torch.Generator) -> Partition:
        """Some members of every group, one from each of `counts` (n_groups,) equal runs of them."""
        bounds = np.concatenate([[0], np.cumsum(counts)])
        n_sampled, device = int(bounds[-1]), self.masses.device
        uniforms = torch.rand(n_sampled, generator=draws, dtype=torch.float64, device=device)
        return Partition(self.sampled(upload(bounds, device), uniforms), counts, self.masses, self.errors)

    def sampled(self, start: torch.Tensor, uniforms: torch.Tensor) -> Groups:
        """As `sample`, where only the device need know how many.

        Parameters
        ----------
        start : (n_groups + 1,) int64 tensor
            Where those of each group begin.
        uniforms : (n,) float64 tensor
            As many as there may be.
        """
        n_sampled, n_groups = uniforms.shape[0], len(self)
        sample = empty((n_sampled,), torch.int64, uniforms.device)
        if n_sampled:
            sample_groups[(pieces_of(n_sampled, SAMPLED),)](
                self.groups.order, self.groups.start, start, n_groups, uniforms, sample,
                STEPS=n_groups.bit_length(), MEMBERS=SAMPLED,
            )  # fmt: skip
        return Groups(sample, start)


def columns_of(points: DevicePoints, rows: torch.Tensor) -> torch.Tensor:
    """Coordinates of these points (n,) int64, feature by feature: (D, n) float32."""
    n_features, n_rows = points.n_features, len(rows)
    columns = empty((n_features, n_rows), torch.float32, points.device)
    gather_columns[(pieces_of(n_rows, TURNED), pieces_of(n_features, TURNED_FEATURES))](
        points.stored, points.stored.stride(0), n_features, points.scale, rows, n_rows, columns, ROWS=TURNED,
        FEATURES=TURNED_FEATURES,
    )  # fmt: skip
    return columns


def aligned_rows(points: DevicePoints, rows: torch.Tensor) -> torch.Tensor:
    """Coordinates of these points (n,) int64 as `tiling.aligned` has them: (n, D) float32."""
    n_rows = rows.shape[0]
    room = aligned_room(points, n_rows)
    width = room.stride(0)
    gather_rows[(pieces_of(n_rows, TURNED), pieces_of(width, TURNED_FEATURES))](
        points.stored, points.stored.stride(0), points.n_features, points.scale, rows, n_rows, room, width,
        ROWS=TURNED, FEATURES=TURNED_FEATURES,
    )  # fmt: skip
    return room


def aligned_room(points: DevicePoints, n_rows: int) -> torch.Tensor:
    """Room for so many rows of coordinates as `tiling.aligned` has them: (n_rows, D) float32."""
    n_features = points.n_features
    width = pieces_of(n_features, ALIGNED) * ALIGNED
    room: torch.Tensor = empty((n_rows, width), torch.float32, points.device)[:, :n_features]
    return room
