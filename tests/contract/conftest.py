"""Places where an E-step can run, each behind the same few functions: what the contract is told of them.

Those of the GPU are left out where there is no torch, or no GPU and no interpreter of its kernels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from vcgmm.algorithm.coreset.frame import Frame
from vcgmm.algorithm.models.families import FAMILIES
from vcgmm.algorithm.models.mixture import Mixture
from vcgmm.algorithm.models.search import JointSearch
from vcgmm.algorithm.search.blocked import BlockedSearch
from vcgmm.algorithm.search.pointwise import PointwiseSearch
from vcgmm.algorithm.seeding.afkmc2 import assign
from vcgmm.kernels.seeding.chains import run_chains
from vcgmm.parallel import Workers

INLINE = Workers(1)
FLOOR = 1e-12
ON_GPU = ("gpu-fp32", "gpu-tf32", "gpu-bf16")


@dataclass
class Place:
    """The CPU, by shared lists or point by point.

    Attributes
    ----------
    kind : str
    dtype : type
        What points are computed in.
    bound : float
        How far bounds may be from the truth, relatively, …
    sums : float
        … and means and sums of unit-scale data.
    n_features : int
        Of the points where nothing is said.
    patient : bool
        Whether hundreds of E-steps take it no longer than a blink.
    """

    kind: str
    dtype: type = np.float64
    bound: float = 1e-10
    sums: float = 1e-9
    n_features: int = 2
    patient: bool = True

    def search(
        self,
        Y: np.ndarray,
        gamma: np.ndarray,
        mu: np.ndarray,
        truncation: int,
        n_neighbors: int,
        n_candidates: int,
        n_explore: int = 0,
    ) -> Any:
        """A search over points (N', D) that begins with the nearest of means (C, D)."""
        n_clusters = len(mu)
        if self.kind == "pointwise":
            return PointwiseSearch(Y, gamma, n_clusters, truncation, n_neighbors, n_explore, 0, FLOOR, INLINE)
        start = assign(Y, gamma, mu, INLINE)
        return BlockedSearch(
            Y, gamma, start.labels, n_clusters, truncation, n_neighbors, n_candidates, n_explore, 0, start.error,
            FLOOR, INLINE,
        )  # fmt: skip

    def joint_search(
        self, Y: np.ndarray, gamma: np.ndarray, labels: np.ndarray, kind: str, sizes: tuple[int, int, int, int]
    ) -> Any:
        """A search by joints from labels (N',); sizes are C, C', G and the length of the lists."""
        assert kind in FAMILIES  # told by the mixture itself here
        return JointSearch(Y, gamma, labels, *sizes, 0, 0, 1.0, FLOOR, INLINE)

    def send(self, array: np.ndarray) -> Any:
        """An array as searches take it."""
        return array

    def send_mixture(self, mixture: Mixture) -> Mixture:
        """A mixture likewise."""
        return Mixture(*(self.send(part) for part in (mixture.means, mixture.variances, mixture.weights)))

    def fetch(self, array: Any) -> np.ndarray:
        """An array of theirs on the host."""
        return np.asarray(array)

    def data(self, search: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Points in float64, weights and winners as a search has them, on the host."""
        return search.points.astype(np.float64), search.weights, search.winners

    def chains(
        self,
        points: np.ndarray,
        potential: np.ndarray,
        distances: np.ndarray,
        drawn: np.ndarray,
        uniforms: np.ndarray,
    ) -> np.ndarray:
        """What a batch of Markov chains (b, m) chooses, as numbers of proposals; -1 for nothing."""
        chosen = np.empty(len(drawn), np.int64)
        run_chains(points[drawn.ravel()], potential[drawn], distances[drawn], uniforms, chosen)
        return chosen


class DevicePlace(Place):
    """A GPU, or the interpreter of its kernels, with products in some precision."""

    def __init__(self, device: Any, precision: str) -> None:
        from vcgmm.gpu.coreset.points import LEAST_IN_BF16

        bound, sums = {"fp32": (1e-6, 1e-4), "tf32": (1e-4, 1e-2), "bf16": (1e-4, 5e-2)}[precision]
        n_features = LEAST_IN_BF16 if precision == "bf16" else 2  # below, rows are multiplied in tf32
        super().__init__(f"gpu-{precision}", np.float32, bound, sums, n_features, device.type == "cuda")
        self.device, self.precision = device, precision

    def _points(self, Y: np.ndarray, gamma: np.ndarray) -> Any:
        import torch

        from vcgmm.gpu.coreset.points import DevicePoints

        frame = Frame(np.zeros(Y.shape[1]), 1.0, np.dtype(np.float32))
        stored, weights = (torch.from_numpy(a.astype(np.float32)).to(self.device) for a in (Y, gamma))
        return DevicePoints(stored, 1.0, weights, frame, self.precision)

    def _about(
        self, Y: np.ndarray, gamma: np.ndarray, labels: np.ndarray, sizes: tuple[int, ...]
    ) -> tuple[Any, ...]:
        import torch

        from vcgmm.gpu.cells.neighbourhoods import DeviceNeighbourhoods

        n_clusters, truncation, n_neighbors, n_candidates, n_explore = sizes
        near = DeviceNeighbourhoods(n_clusters, n_neighbors, n_candidates, n_explore, 0, self.device)
        return self._points(Y, gamma), torch.from_numpy(labels).to(self.device), near, truncation

    def search(
        self,
        Y: np.ndarray,
        gamma: np.ndarray,
        mu: np.ndarray,
        truncation: int,
        n_neighbors: int,
        n_candidates: int,
        n_explore: int = 0,
    ) -> Any:
        from vcgmm.gpu.search.blocked import DeviceSearch

        start = assign(Y, gamma, mu, INLINE)
        sizes = len(mu), truncation, n_neighbors, max(n_candidates, truncation), n_explore
        return DeviceSearch(*self._about(Y, gamma, start.labels, sizes), start.error, FLOOR)

    def joint_search(
        self, Y: np.ndarray, gamma: np.ndarray, labels: np.ndarray, kind: str, sizes: tuple[int, int, int, int]
    ) -> Any:
        from vcgmm.gpu.search.joints import DeviceJointSearch

        return DeviceJointSearch(*self._about(Y, gamma, labels, (*sizes, 0)), 1.0, FLOOR, FAMILIES[kind])

    def send(self, array: np.ndarray) -> Any:
        import torch

        from vcgmm.gpu.device.arrays import DeviceArray

        return DeviceArray(torch.from_numpy(array).to(self.device))

    def fetch(self, array: Any) -> np.ndarray:
        from vcgmm.gpu.device.arrays import on_host

        return on_host(array)

    def data(self, search: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        stored, weights, winners = search.points.stored, search.points.weights, search.winners
        return stored.double().cpu().numpy(), weights.double().cpu().numpy(), winners.cpu().numpy()

    def chains(
        self,
        points: np.ndarray,
        potential: np.ndarray,
        distances: np.ndarray,
        drawn: np.ndarray,
        uniforms: np.ndarray,
    ) -> np.ndarray:
        import torch

        from vcgmm.gpu.seeding.afkmc2 import run_chains as run_there

        there = self._points(points, np.ones(len(points)))
        given = (
            torch.from_numpy(a).to(self.device) for a in (drawn, potential[drawn], distances[drawn], uniforms)
        )
        chosen: np.ndarray = run_there(there, *given).cpu().numpy()
        return chosen


def make_place(kind: str, request: pytest.FixtureRequest) -> Place:
    if kind.endswith("-float32"):
        return Place(kind.removesuffix("-float32"), np.float32, 1e-6, 1e-3)
    if not kind.startswith("gpu-"):
        return Place(kind)
    pytest.importorskip("triton", reason="contracts of the GPU need torch and Triton")
    return DevicePlace(request.getfixturevalue("device"), kind.removeprefix("gpu-"))


@pytest.fixture(params=["blocked", "pointwise", "blocked-float32", "pointwise-float32", *ON_GPU])
def place(request: pytest.FixtureRequest) -> Place:
    """Every E-step of one variance and equal weights."""
    return make_place(request.param, request)


@pytest.fixture(params=["blocked", "blocked-float32", *ON_GPU])
def blocked_place(request: pytest.FixtureRequest) -> Place:
    """Every E-step over shared lists."""
    return make_place(request.param, request)


@pytest.fixture(params=["blocked", "gpu-fp32"])
def chain_place(request: pytest.FixtureRequest) -> Place:
    """Wherever Markov chains run: distances are never taken in fewer digits."""
    return make_place(request.param, request)
