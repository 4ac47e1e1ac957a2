"""EM on the device: the same loop, held to the CPU's search and to exact EM."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="tests of the GPU need torch")
pytest.importorskip("triton", reason="tests of the GPU need Triton")

from vcgmm.algorithm.bound import lower_bound  # noqa: E402
from vcgmm.algorithm.coreset.frame import Frame  # noqa: E402
from vcgmm.algorithm.mstep import m_step  # noqa: E402
from vcgmm.algorithm.search.blocked import BlockedSearch  # noqa: E402
from vcgmm.algorithm.seeding.afkmc2 import assign  # noqa: E402
from vcgmm.gpu.cells.neighbourhoods import DeviceNeighbourhoods  # noqa: E402
from vcgmm.gpu.coreset.points import DevicePoints  # noqa: E402
from vcgmm.gpu.device.arrays import DeviceArray, on_host  # noqa: E402
from vcgmm.gpu.search.blocked import DeviceSearch  # noqa: E402
from vcgmm.parallel import Workers  # noqa: E402

INLINE = Workers(1)
N_CLUSTERS = 14

#: Relative difference of bounds and of sums to those of the CPU, by precision.
BOUND = {"fp32": 1e-6, "tf32": 1e-4, "bf16": 1e-4}
SUMS = {"fp32": 1e-4, "tf32": 1e-2, "bf16": 5e-2}


def problem(n_features: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(160, n_features)).astype(np.float32)
    return Y, rng.uniform(0.5, 3.0, len(Y)), Y[rng.permutation(len(Y))[:N_CLUSTERS]].astype(np.float64)


def device_search(
    device: Any,
    precision: str,
    n_candidates: int,
    truncation: int,
    labels: np.ndarray,
    error: float,
    n_features: int = 3,
) -> DeviceSearch:
    Y, gamma, _ = problem(n_features)
    frame = Frame(np.zeros(Y.shape[1]), 1.0, np.dtype(np.float32))
    weights = torch.from_numpy(gamma.astype(np.float32)).to(device)
    points = DevicePoints(torch.from_numpy(Y).to(device), 1.0, weights, frame, precision)
    near = DeviceNeighbourhoods(N_CLUSTERS, 4, n_candidates, 0, 0, device)
    return DeviceSearch(points, torch.from_numpy(labels).to(device), near, truncation, error, 1e-12)


def on(device: Any, means: np.ndarray) -> Any:
    return DeviceArray(torch.from_numpy(means).to(device))


@pytest.mark.parametrize("n_features", [3, 63, 64, 200])  # in bf16 rows are multiplied from 64 features on
@pytest.mark.parametrize("precision", ["fp32", "tf32", "bf16"])
@pytest.mark.parametrize("n_candidates", [6, N_CLUSTERS])
def test_e_steps_are_those_of_the_cpu(device: Any, precision: str, n_candidates: int, n_features: int) -> None:
    Y, gamma, mu = problem(n_features)
    start = assign(Y, gamma, mu, INLINE)
    cpu = BlockedSearch(
        Y.copy(), gamma, start.labels, N_CLUSTERS, 4, 4, n_candidates, 0, 0, start.error, 1e-12, INLINE
    )
    there = device_search(device, precision, n_candidates, 4, start.labels, start.error, n_features)
    assert there.points.precision == ("tf32" if precision == "bf16" and n_features < 64 else precision)
    means, variance = mu, None
    for _ in range(3):  # both from the same means: what differs is not carried on
        one = cpu.e_step(means, variance)
        other = there.e_step(on(device, means), variance)
        assert other.variance == pytest.approx(one.variance, rel=1e-6)
        assert lower_bound(other) == pytest.approx(lower_bound(one), rel=BOUND[precision])
        assert other.scatter == pytest.approx(one.scatter, rel=SUMS[precision])
        assert other.total_weight == pytest.approx(one.total_weight, rel=1e-6)
        np.testing.assert_allclose(on_host(other.masses), one.masses, atol=SUMS[precision] * one.masses.max())
        scale = np.abs(one.shifts).max()
        np.testing.assert_allclose(on_host(other.shifts), one.shifts, atol=SUMS[precision] * scale)
        assert on_host(other.means).tolist() == one.means.tolist()
        labels = there.labels().cpu().numpy()
        distances = ((Y.astype(np.float64)[:, None] - one.means) ** 2).sum(2)
        at = np.arange(len(Y))
        nearest = distances[at, cpu.labels()]
        gap = np.abs(distances[at, labels] - nearest)
        assert (gap <= SUMS[precision] * np.maximum(nearest, 1.0)).all()  # the same, or equally near
        means, variance = m_step(one, 1e-12, cpu.scatter)
    assert (there.neighbors[:, 0] == np.arange(N_CLUSTERS)).all()


def test_a_scatter_is_taken_with_the_last_responsibilities(device: Any) -> None:
    Y, gamma, mu = problem()
    start = assign(Y, gamma, mu, INLINE)
    search = device_search(device, "fp32", N_CLUSTERS, 3, start.labels, start.error)
    statistics = search.e_step(on(device, mu), 0.3)
    assert search.scatter(statistics, on(device, mu)) == pytest.approx(statistics.scatter, rel=1e-4)
    new, variance = m_step(statistics, 1e-12, search.scatter)
    about = search.scatter(statistics, new)
    assert variance == pytest.approx(about / (Y.shape[1] * statistics.total_weight), rel=1e-3)


def test_a_bound_does_not_fall_and_runs_are_the_same_to_the_last_bit(device: Any) -> None:
    Y, gamma, mu = problem()
    start = assign(Y, gamma, mu, INLINE)
    results = []
    for _ in range(2):
        search = device_search(device, "tf32", 5, 3, start.labels, start.error)
        means, variance, sums = on(device, mu), 0.4, []
        for _ in range(4):  # at one variance and without moving: more and more is found
            statistics = search.e_step(means, variance)
            sums.append(statistics.log_sum)
        assert sums == sorted(sums)
        results.append((sums, on_host(statistics.shifts).tobytes(), search.winners.cpu().numpy().tobytes()))
    assert results[0] == results[1]


def test_a_search_goes_on_from_its_state(device: Any) -> None:
    Y, gamma, mu = problem()
    start = assign(Y, gamma, mu, INLINE)
    one, other = (device_search(device, "fp32", 5, 3, start.labels, start.error) for _ in range(2))
    for _ in range(2):
        one.e_step(on(device, mu), 0.5)
    other.restore(one.state())
    for _ in range(3):  # the last one links the clusters anew
        here, there = (search.e_step(on(device, mu + 0.01), 0.5) for search in (one, other))
        assert here.log_sum == there.log_sum
        assert on_host(here.shifts).tobytes() == on_host(there.shifts).tobytes()
    assert one.neighbors.tolist() == other.neighbors.tolist()
