"""Device search over clusters with weights and variances of their own: the twin of `algorithm.models.search`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ...algorithm.cells.natural import Natural
from ...algorithm.cells.neighbourhoods import LINKED_EVERY
from ...algorithm.models.families import Family
from ...algorithm.models.mixture import Mixture
from ...algorithm.models.mstep import NOISE, JointStatistics
from ..cells.costs import Costs
from ..cells.neighbourhoods import DeviceNeighbourhoods
from ..cells.sums import sums_of_pieces, weighted_sums
from ..coreset.points import DevicePoints
from ..device.arrays import DeviceArray, Told, as_tensor
from ..device.tiling import aligned
from .blocked import DeviceSearch


class JointNeighbourhoods(DeviceNeighbourhoods):
    """G_c and shared candidates, ranked by the mean cost over a cluster's members.

    A member has mean mu_c and variance v_c; costs are linear in y and y^2, so the mean cost of another cluster is
    its cost for (mu_c, mu_c^2 + v_c).
    """

    costs: Costs

    def update_to(self, means: torch.Tensor, costs: Costs) -> int:
        """Find neighbours and candidates for these clusters; returns the number of costs computed."""
        self.costs = costs
        return self.update(means)

    def link_anew(self) -> None:
        """Let the next update find all neighbours anew."""
        self.n_updates += -self.n_updates % LINKED_EVERY

    @classmethod
    def following(cls, before: DeviceNeighbourhoods) -> JointNeighbourhoods:
        """Those that go on where others, by distance, have ended."""
        n_clusters, n_candidates = before.nearest.shape
        joint = cls(
            n_clusters, before.n_neighbors, n_candidates, before.n_explore, before.seed + 1, before.nearest.device
        )
        joint.nearest = before.nearest
        return joint

    def _compare_with_all(self, means: torch.Tensor, some: slice) -> torch.Tensor:
        """Mean costs of all clusters for members of some, (s, C) float32."""
        every = torch.arange(len(means), device=means.device).unsqueeze(0)
        costs = self._compare(means, every[:, some], every)[0]
        costs.diagonal(some.start).fill_(-torch.inf)  # it comes first, even among others in the same place
        return costs

    def _compare(self, means: torch.Tensor, members: torch.Tensor, pools: torch.Tensor) -> torch.Tensor:
        """Mean costs of the clusters of their pools (g, p) for members (g, s), (g, s, p) float32."""
        now = self.costs
        origin = means[members[:, :1]]
        rows, centres, rates = means[members] - origin, means[pools] - origin, now.rates[pools]
        squares = rows * rows
        if rates.shape[2] == 1:
            squares = squares.sum(2, keepdim=True) + means.shape[1] * now.variances[members]
        else:
            squares = squares + now.variances[members]
        constants = (rates * centres * centres).sum(2) + now.offsets[pools]
        costs = torch.baddbmm(constants.unsqueeze(1), rows, (rates * centres).transpose(1, 2), alpha=-2)
        return costs.baddbmm_(squares, rates.transpose(1, 2))


def joint_statistics(
    means: torch.Tensor,
    shifts: torch.Tensor,
    squares: torch.Tensor,
    masses: torch.Tensor,
    by_cell: torch.Tensor,
    log_sum: float,
    natural: Natural,
    family: Family,
    n_evaluations: int,
) -> JointStatistics:
    """What an E-step hands over, from its sums.

    Parameters
    ----------
    means : (C, D) float32 tensor
    shifts, squares : (C, D) float64 tensor
        sum gamma s (y - mu_c) and sum gamma s (y - mu_c)^2.
    masses : (C,) float64 tensor
    by_cell : (C, 4) float64 tensor
        Facts of `search_tiles` over the points whose first winner was c before.
    log_sum : float
        F.
    natural : Natural
    family : Family
    n_evaluations : int
    """
    scatters = squares if family.by_feature else squares.sum(1, keepdim=True)
    arrays: dict[str, Any] = {
        "means": DeviceArray(means.double()),
        "shifts": DeviceArray(shifts),
        "scatters": DeviceArray(scatters),
        "masses": DeviceArray(masses),
        "cell_bounds": DeviceArray(by_cell[:, 0] - natural.constant * by_cell[:, 2]),
        "cell_masses": DeviceArray(by_cell[:, 2]),
    }
    noise = NOISE * float(np.finfo(np.float32).eps)
    return JointStatistics(log_sum=log_sum, n_evaluations=n_evaluations, noise=noise, **arrays)


class DeviceJointSearch(DeviceSearch):
    """A search whose E-steps may also be those of clusters with weights and variances of their own.

    Parameters
    ----------
    points, labels, neighbourhoods, truncation, start_error, variance_floor
        As for `DeviceSearch`.
    family : Family

    Attributes
    ----------
    sums, squares : (D,) float64 array
        sum_n gamma y_d and sum_n gamma y_d^2.
    """

    def __init__(
        self,
        points: DevicePoints,
        labels: torch.Tensor,
        neighbourhoods: DeviceNeighbourhoods,
        truncation: int,
        start_error: float | Told,
        variance_floor: float,
        family: Family,
    ) -> None:
        super().__init__(points, labels, neighbourhoods, truncation, start_error, variance_floor)
        self.family = family
        self.sums, self.squares = points.feature_sums()

    def joint_e_step(self, mixture: Mixture) -> JointStatistics:
        """New winners and neighbours, and the sums of the M-step."""
        device = self.points.device
        natural = mixture.natural(np.dtype(np.float32))
        means, costs = aligned(as_tensor(natural.means, device)), Costs.of(natural, self.family, device)
        linked = self.compare_joints().update_to(means, costs)
        found = self.search(means, 1.0, costs)
        entries = self.entries()
        sums = weighted_sums(self.points, entries, means, squares=True)
        self.group_by(entries)
        by_cell = sums_of_pieces(found.facts, found.pieces)
        totals = found.totals()
        log_sum = totals.log_sum - self.total_weight * natural.constant
        n_evaluations = linked + totals.n_evaluations
        return joint_statistics(
            means, sums.shifts, sums.squares, sums.masses, by_cell, log_sum, natural, self.family, n_evaluations
        )

    def link_anew(self) -> None:
        """Let the next E-step find all neighbours anew: clusters have come or gone."""
        if isinstance(self.neighbourhoods, JointNeighbourhoods):
            self.neighbourhoods.link_anew()

    def compare_joints(self) -> JointNeighbourhoods:
        """Rank clusters by joints from now on; the neighbourhoods."""
        if not isinstance(self.neighbourhoods, JointNeighbourhoods):
            self.neighbourhoods = JointNeighbourhoods.following(self.neighbourhoods)
        return self.neighbourhoods
