"""Clusters shared out on the device as on the host, and draws that are spread."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="tests of the GPU need torch")
pytest.importorskip("triton", reason="tests of the GPU need Triton")

from vcgmm.algorithm.coreset.frame import Frame  # noqa: E402
from vcgmm.algorithm.seeding.sharing import share_by_potential  # noqa: E402
from vcgmm.gpu.cells import ranking  # noqa: E402
from vcgmm.gpu.cells.pieces import Groups  # noqa: E402
from vcgmm.gpu.coreset.points import DevicePoints  # noqa: E402
from vcgmm.gpu.seeding import sharing  # noqa: E402
from vcgmm.gpu.seeding.greedy import CellSeeds  # noqa: E402
from vcgmm.gpu.seeding.partition import Partition, aligned_room  # noqa: E402
from vcgmm.gpu.seeding.sharing import draw_spread, share_clusters  # noqa: E402


def points_on(device: Any, X: np.ndarray, weights: np.ndarray) -> DevicePoints:
    frame = Frame(np.zeros(X.shape[1]), 0.5, np.dtype(np.float32))
    there = torch.from_numpy(weights.astype(np.float32)).to(device)
    return DevicePoints(torch.from_numpy(X.astype(np.float32)).to(device), 0.5, there, frame, "fp32")


@pytest.mark.parametrize("n_clusters", [3, 20, 41, 60, 90])  # fewer than cells, …, more than there are seeds
@pytest.mark.parametrize("comparisons", [0, ranking.COMPARISONS])
def test_clusters_are_shared_out_as_on_the_host(
    device: Any, monkeypatch: pytest.MonkeyPatch, n_clusters: int, comparisons: int
) -> None:
    monkeypatch.setattr(ranking, "COMPARISONS", comparisons)
    monkeypatch.setattr(sharing, "CELLS", 4)  # not all at once
    rng = np.random.default_rng(n_clusters)
    lengths = np.array([7, 0, 12, 1, 9, 30, 2, 5])
    start = np.concatenate([[0], np.cumsum(lengths)])
    cell = np.repeat(np.arange(8), lengths)
    place = np.arange(len(cell)) - start[cell]
    available = np.array([7, 0, 9, 1, 9, 28, 2, 0])
    rows = np.where(place < available[cell], rng.permutation(len(cell)), -1)
    potentials = rng.integers(1, 5, 8)[cell] * 100.0 / (1 + place)  # some are equal
    sizes = np.array([300, 0, 40, 1, 500, 900, 2, 70])
    point_start = np.concatenate([[0], np.cumsum(sizes)])

    def there(array: np.ndarray) -> Any:
        return torch.from_numpy(array).to(device)

    seeds = CellSeeds(there(rows), there(potentials), there(start), start)
    groups = Groups(torch.arange(int(sizes.sum()), device=device), there(point_start))
    cells = Partition(groups, sizes, torch.ones(8, dtype=torch.float64, device=device), np.zeros(8))
    found = share_clusters(seeds, cells, n_clusters, 16)
    expected = share_by_potential(potentials, start, available, n_clusters)
    counts = found.counts.array()
    assert counts.tolist() == expected.tolist()
    assert found.centre_start.tolist() == [0, *np.cumsum(expected).tolist()]
    assert found.sample_start.tolist() == [0, *np.cumsum(np.minimum(sizes, 16 * expected)).tolist()]
    taken = rows[place < expected[cell]]
    assert found.seeds[: len(taken)].tolist() == taken.tolist()
    assert found.seeds[len(taken) :].tolist() == [0] * (n_clusters - len(taken))

    # As many points as told, whatever room there is for more.
    uniforms = torch.rand(int(sizes.sum()), dtype=torch.float64, device=device)
    sample = cells.sampled(found.sample_start, uniforms)
    for i in range(8):
        few = sample.order[int(sample.start[i]) : int(sample.start[i + 1])].tolist()
        assert few == sorted(few)
        assert all(point_start[i] <= row < point_start[i + 1] for row in few)


def draws_of(points: DevicePoints, *about: Any) -> list[int]:
    """Which points are drawn, by coordinates that tell."""
    drawn = aligned_room(points, len(about[1]))
    draw_spread(points, *about[:2], drawn, *about[2:])
    whole = torch.as_strided(drawn, (len(drawn), drawn.stride(0)), drawn.stride()).cpu()
    assert (whole[:, 2:] == 0).all()
    assert (whole[:, 0] == -whole[:, 1]).all()
    return whole[:, 0].long().tolist()


def telling_points(device: Any, weights: np.ndarray) -> DevicePoints:
    places = 2.0 * np.arange(len(weights))  # their scale is a half
    return points_on(device, np.stack([places, -places], axis=1), weights)


def test_draws_are_spread_and_go_by_weight_and_distance(device: Any) -> None:
    weights = np.ones(90)
    weights[40:] = 0.0
    points = telling_points(device, weights)
    rows = torch.arange(90, device=device).flip(0)
    near = torch.zeros(90, device=device)
    near[60:] = 1.0  # rows below 30
    near[89] = 0.0  # row 0
    for seed in range(5):
        uniforms = torch.rand(
            7, dtype=torch.float64, generator=torch.Generator(device).manual_seed(seed), device=device
        )
        assert [(89 - row) % 7 for row in draws_of(points, rows, uniforms)] == list(range(7))
        drawn = draws_of(points, rows, uniforms, near)
        assert [(89 - row) % 7 for row in drawn] == list(range(7))
        assert all(0 < row < 30 for row in drawn)
    last = torch.full((7,), 1 - 1e-17, dtype=torch.float64, device=device)
    assert all(0 < row < 30 for row in draws_of(points, rows, last, near))
    assert len(set(draws_of(points, rows, uniforms, torch.zeros_like(near)))) == 7  # anybody


def test_heavier_rows_are_drawn_more_often(device: Any) -> None:
    points = telling_points(device, np.array([1.0, 3.0]))
    rows, near = torch.arange(2, device=device), torch.tensor([2.0, 1.0], device=device)
    found = []
    for uniform in np.linspace(0.0, 0.99, 50):
        found += draws_of(points, rows, torch.tensor([uniform], dtype=torch.float64, device=device), near)
    assert found == sorted(found)
    assert found.count(1) == pytest.approx(30, abs=1)
