"""E-steps by joints over all rows, a chunk at a time."""

from __future__ import annotations

from ..passes.row_search import RowSearch
from .mixture import Mixture
from .mstep import JointStatistics


class JointRowSearch(RowSearch):
    """E-steps over rows that are read anew in each of them, with clusters of their own weights and variances.

    In the first pass a near cluster of every row is found as in `RowSearch`, by distance; from there rows search
    by joints.  Parameters as those of `RowSearch`.
    """

    def joint_e_step(self, mixture: Mixture) -> JointStatistics:
        """A pass over all rows, for the sums of the M-step."""
        return JointStatistics.of(*self._pass(mixture.natural(self.frame.dtype), 1.0))

    def link_anew(self) -> None:
        """Let the next E-step find all neighbours anew: clusters have come or gone."""
        self._neighbourhoods.link_anew()
