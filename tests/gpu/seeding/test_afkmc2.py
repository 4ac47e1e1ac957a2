"""Starts on the device: as good as the CPU's, on points of the data, the same from run to run."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="tests of the GPU need torch")
pytest.importorskip("triton", reason="tests of the GPU need Triton")

from vcgmm.algorithm import reference  # noqa: E402
from vcgmm.algorithm.coreset.frame import Frame  # noqa: E402
from vcgmm.algorithm.random import generator  # noqa: E402
from vcgmm.algorithm.seeding.two_level import two_level as two_level_on_cpu  # noqa: E402
from vcgmm.algorithm.starts.subspace import SearchSettings  # noqa: E402
from vcgmm.gpu.coreset.hashing import Distinct, row_hashes  # noqa: E402
from vcgmm.gpu.coreset.points import DevicePoints  # noqa: E402
from vcgmm.gpu.device.arrays import on_host  # noqa: E402
from vcgmm.gpu.seeding import afkmc2 as seeding  # noqa: E402
from vcgmm.gpu.seeding import two_level as two_level_module  # noqa: E402
from vcgmm.gpu.seeding.afkmc2 import seeded  # noqa: E402
from vcgmm.gpu.seeding.greedy import seed_cells  # noqa: E402
from vcgmm.gpu.seeding.partition import Partition  # noqa: E402
from vcgmm.gpu.seeding.two_level import DeviceCells, two_level  # noqa: E402
from vcgmm.gpu.start import directions_of_wide, lift, start_in_subspace  # noqa: E402
from vcgmm.parallel import Workers  # noqa: E402

INLINE = Workers(1)


def silent(_n: int) -> None: ...


def mixture(n: int, n_features: int, n_clusters: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    centres = 4 * rng.normal(size=(n_clusters, n_features))
    X = centres[rng.integers(n_clusters, size=n)] + rng.normal(size=(n, n_features))
    return X.astype(np.float32), rng.uniform(0.5, 1.5, n)


def on(device: Any, X: np.ndarray, weights: np.ndarray) -> DevicePoints:
    frame = Frame(np.zeros(X.shape[1]), 1.0, np.dtype(np.float32))
    masses = torch.from_numpy(weights.astype(np.float32)).to(device)
    return DevicePoints(torch.from_numpy(X).to(device), 1.0, masses, frame, "tf32")


def check(start: Any, X: np.ndarray, weights: np.ndarray, n_clusters: int) -> None:
    means, labels = on_host(start.means), start.labels.cpu().numpy()
    assert means.shape == (n_clusters, X.shape[1])
    assert (labels.min(), labels.max() < n_clusters) == (labels.min(), True)
    error = float(weights @ ((X - means[labels]) ** 2).sum(1))
    assert float(start.error) == pytest.approx(error, rel=1e-2)
    assert start.n_evaluations > 0


@pytest.mark.parametrize("n_clusters", [1, 9, 40])
def test_a_two_level_start_is_as_good_as_that_of_the_cpu(device: Any, n_clusters: int) -> None:
    X, weights = mixture(700, 3, 30)
    start = two_level(on(device, X, weights), n_clusters, generator(0))
    check(start, X, weights, n_clusters)
    errors = [two_level_on_cpu(X, weights, n_clusters, generator(seed), INLINE, silent).error for seed in range(3)]
    assert float(start.error) < 1.15 * max(errors)


def test_a_two_level_start_is_the_same_to_the_last_bit(device: Any) -> None:
    X, weights = mixture(400, 2, 20)
    first, second = (two_level(on(device, X, weights), 35, generator(5)) for _ in range(2))
    assert on_host(first.means).tobytes() == on_host(second.means).tobytes()
    assert first.labels.tolist() == second.labels.tolist()


def test_clusters_are_found_though_most_points_are_equal(device: Any) -> None:
    X = np.zeros((300, 2), np.float32)
    X[:40] = np.random.default_rng(0).normal(size=(40, 2))
    start = two_level(on(device, X, np.ones(300)), 41, generator(0))
    assert len(np.unique(on_host(start.means), axis=0)) == 41
    assert float(start.error) < 0.05 * float((X**2).sum())


@pytest.fixture
def many_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few clusters begin as very many do."""
    monkeypatch.setattr(two_level_module, "MANY", 4)


@pytest.mark.usefixtures("many_cells")
def test_a_start_from_many_cells_is_as_good_as_that_of_the_cpu(device: Any) -> None:
    X, weights = mixture(700, 3, 30)
    start = two_level(on(device, X, weights), 40, generator(0))
    check(start, X, weights, 40)
    errors = [two_level_on_cpu(X, weights, 40, generator(seed), INLINE, silent).error for seed in range(3)]
    assert float(start.error) < 1.2 * np.mean(errors)
    again = two_level(on(device, X, weights), 40, generator(0))
    assert on_host(again.means).tobytes() == on_host(start.means).tobytes()


@pytest.mark.usefixtures("many_cells")
def test_many_cells_are_found_though_most_points_are_equal(device: Any) -> None:
    X = np.zeros((300, 2), np.float32)
    X[:40] = np.random.default_rng(0).normal(size=(40, 2))
    start = two_level(on(device, X, np.ones(300)), 41, generator(0))
    assert len(np.unique(on_host(start.means), axis=0)) == 41
    assert float(start.error) < 0.05 * float((X**2).sum())


@pytest.mark.usefixtures("many_cells")
def test_as_many_cells_are_made_as_told_where_they_are_what_is_wanted(device: Any) -> None:
    X, weights = mixture(100, 2, 9)
    for cells in (DeviceCells(on(device, X, weights), generator(0), n_clusters) for n_clusters in (0, 9)):
        assert cells.split(np.array([9])).tolist() == [0] * 9
        assert len(cells.centres) == 9
    between = DeviceCells(on(device, X, weights), generator(0), 81)
    between.split(np.array([9]))
    assert len(between.centres) == 19  # 9^(4/3)


@pytest.mark.parametrize("init", ["afkmc2", "k-means++", "random"])
def test_seeds_are_different_points(device: Any, init: str) -> None:
    X, weights = mixture(120, 3, 10)
    X[60:] = X[:60]  # each one twice
    told: list[int] = []
    start = seeded(on(device, X, weights), init, 50, 5, generator(0), told.append)
    check(start, X, weights, 50)
    assert sum(told) == 50
    means = on_host(start.means).astype(np.float32)
    assert {row.tobytes() for row in means} <= {row.tobytes() for row in X}
    assert len(np.unique(means, axis=0)) == 50
    again = seeded(on(device, X, weights), init, 50, 5, generator(0), silent)
    assert (on_host(again.means) == on_host(start.means)).all()


@pytest.mark.parametrize("init", ["afkmc2", "k-means++"])
def test_seeding_by_distance_goes_on_when_all_points_are_centres(device: Any, init: str) -> None:
    X = np.array([[0.0], [1.0], [1.0]], np.float32)
    start = seeded(on(device, X, np.ones(3)), init, 3, 2, generator(0), silent)
    assert set(on_host(start.means).ravel()) == {0.0, 1.0}


def chains_one_by_one(X: np.ndarray, gamma: np.ndarray, n_clusters: int, length: int, seed: int) -> list[int]:
    """AFK-MC^2 as the reference has it, by the random numbers that the device is given."""
    rng = generator(seed)

    def drawn(masses: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
        return np.searchsorted(np.cumsum(masses) / masses.sum(), uniforms, side="right")

    rows = drawn(gamma, rng.random(1)).tolist()
    q = reference.afkmc2_proposal(X, gamma, rows[0])
    shape = (n_clusters - 1, length)
    proposals, uniforms = drawn(q, rng.random(shape)), rng.random(shape)
    for proposed, u in zip(proposals, uniforms, strict=True):
        rows.append(reference.afkmc2_chain(X, gamma, q, X[rows], proposed, u))
    return rows


@pytest.mark.parametrize(("n_chains", "n_proposals"), [(256, 8192), (5, 8192), (256, 13)])
@pytest.mark.parametrize("length", [2, 6])
def test_chains_are_those_of_the_reference_however_many_run_together(
    device: Any, monkeypatch: pytest.MonkeyPatch, n_chains: int, n_proposals: int, length: int
) -> None:
    monkeypatch.setattr(seeding, "CHAINS", n_chains)
    monkeypatch.setattr(seeding, "PROPOSALS", n_proposals)
    X, weights = mixture(400, 3, 10)
    weights = (weights**6).astype(np.float32)
    expected = chains_one_by_one(X.astype(np.float64), weights.astype(np.float64), 23, length, 2)
    assert len(set(expected)) == 23  # none of them has met nothing but centres
    rows, _ = seeding.afkmc2(on(device, X, weights), 23, length, generator(2), silent)
    assert rows.tolist() == expected


@pytest.mark.parametrize("length", [1, 5])
@pytest.mark.parametrize("n_far", [0, 1, 8])
def test_no_centre_is_repeated_over_several_batches(
    device: Any, monkeypatch: pytest.MonkeyPatch, length: int, n_far: int
) -> None:
    monkeypatch.setattr(seeding, "CHAINS", 8)
    X = np.random.default_rng(0).normal(size=(70, 5)).astype(np.float32)
    X[:n_far] += 1e6 * (1 + np.arange(n_far, dtype=np.float32))[:, None]  # and those near are still told apart
    told: list[int] = []
    rows, _ = seeding.afkmc2(on(device, X, np.ones(70)), 50, length, generator(1), told.append)
    assert len(set(rows.tolist())) == sum(told) == 50


def test_one_seed_needs_no_chain(device: Any) -> None:
    X, weights = mixture(30, 2, 3)
    rows, n_evaluations = seeding.afkmc2(on(device, X, weights), 1, 4, generator(0), silent)
    assert rows.shape == (1,)
    assert n_evaluations == 30


def test_wide_rows_start_in_few_dimensions(device: Any) -> None:
    rng = np.random.default_rng(0)
    X, weights = mixture(256, 4, 6)
    X = (X @ rng.normal(size=(4, 60)) + 0.01 * rng.normal(size=(256, 60))).astype(np.float32)
    points = on(device, X, weights)
    settings = SearchSettings(3, 3, 6, 1e-3, 6, 1.8)
    start = start_in_subspace(points, weights, 6, settings, generator(0))
    check(start, X, weights, 6)
    assert float(start.error) < 1.5 * max(float(two_level(points, 6, generator(seed)).error) for seed in range(3))


@pytest.mark.parametrize("alike", [True, False])
def test_directions_of_wide_rows_are_those_in_which_they_vary(device: Any, alike: bool) -> None:
    rng = np.random.default_rng(1)
    wanted = np.linalg.qr(rng.normal(size=(300, 12)))[0]
    X = (2 * rng.normal(size=(500, 12)) @ wanted.T + 0.01 * rng.normal(size=(500, 300))).astype(np.float32)
    weights = np.ones(500) if alike else rng.uniform(0.5, 2.0, 500)
    directions = directions_of_wide(on(device, X, weights), weights, generator(0))
    assert directions is not None
    assert directions.shape == (300, 16)
    np.testing.assert_allclose(directions.T @ directions, np.eye(16), atol=1e-5)
    assert np.linalg.svd(directions.T @ wanted)[1].min() > 0.999


def test_lifted_means_are_those_of_the_labels_and_nobody_is_left_out(device: Any) -> None:
    X, weights = mixture(60, 3, 4)
    labels = np.repeat([0, 1, 3], 20).astype(np.int32)  # nobody in 2 and 4
    start = lift(on(device, X, weights), torch.tensor(labels, device=device), 5, 7)
    means, found = on_host(start.means), start.labels.cpu().numpy()
    assert start.n_evaluations == 7 + 60
    check(start, X, weights, 5)
    for c in (0, 1, 3):
        here = labels == c
        np.testing.assert_allclose(means[c], weights[here] @ X[here] / weights[here].sum(), atol=1e-4)
    for c in (2, 4):
        assert (found == c).sum() == 1
        assert (means[c].astype(np.float32) == X[np.flatnonzero(found == c)[0]]).all()


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "uint8"])
def test_equal_rows_have_equal_fingerprints(device: Any, dtype: str) -> None:
    X = torch.arange(40, device=device).view(20, 2).to(getattr(torch, dtype))
    both = torch.cat([X, X])
    hashes = row_hashes(both)
    assert (hashes[:20] == hashes[20:]).all()
    assert len(torch.unique(hashes)) == 20
    assert Distinct(both, 5).count() >= 5
    assert Distinct(both, 21).count() == 20


def test_zeros_of_both_signs_are_one(device: Any) -> None:
    assert Distinct(torch.tensor([[0.0], [-0.0], [1.0]], device=device), 3).count() == 2


@pytest.fixture(params=["tables", "blocks"])
def either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seeds by way of all distances in a cell, or as if they took too much memory."""
    if request.param == "blocks":
        monkeypatch.setattr("vcgmm.gpu.seeding.greedy.TABLE_VALUES", 0)


@pytest.mark.usefixtures("either_way")
def test_greedy_seeds_lower_the_error_as_they_say(device: Any) -> None:
    X, weights = mixture(300, 5, 12)
    points = on(device, X, weights)
    labels = torch.from_numpy((X[:, 0] > 0).astype(np.int32) * 2).to(device)  # nobody is in the second cell
    cells = Partition.by(labels, 3, points.weights, torch.zeros(300, device=device))
    wanted = np.array([6, 0, 9])
    found = seed_cells(points, cells, wanted, 1000, 3, torch.Generator(device).manual_seed(0))
    assert found.start.tolist() == [0, 6, 6, 15]
    bounds, potentials = found.start_here, found.potentials.tolist()
    assert bounds.tolist() == found.start.tolist()
    for cell, (a, b) in enumerate(pairwise(bounds)):
        here = np.flatnonzero(labels.cpu().numpy() == cell)
        rows = found.rows[a:b].cpu().numpy()
        assert set(rows) <= set(here)
        assert len(set(rows)) == len(rows)
        for k in range(1, len(rows) + 1):  # the sample is all of the cell
            distances = ((X[here][:, None] - X[rows[:k]][None]) ** 2).sum(2).min(1)
            assert potentials[a + k - 1] == pytest.approx(float(weights[here] @ distances), rel=1e-4)


def test_seeds_are_the_same_either_way(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, weights = mixture(400, 7, 12)
    points = on(device, X, weights)
    labels = torch.from_numpy((X[:, 0] > 1).astype(np.int32)).to(device)
    cells = Partition.by(labels, 2, points.weights, torch.zeros(400, device=device))

    def found() -> Any:
        return seed_cells(points, cells, np.array([20, 9]), 8, 3, torch.Generator(device).manual_seed(3))

    by_tables = found()
    monkeypatch.setattr("vcgmm.gpu.seeding.greedy.TABLE_VALUES", 0)
    by_blocks = found()
    assert by_tables.rows.tolist() == by_blocks.rows.tolist()
    torch.testing.assert_close(by_tables.potentials, by_blocks.potentials, rtol=1e-5, atol=0)


@pytest.mark.usefixtures("either_way")
def test_first_seeds_are_drawn_by_weight_and_later_ones_by_distance(device: Any) -> None:
    X = np.array([[0.0], [0.0], [10.0], [11.0]], np.float32)
    points = on(device, X, np.array([1.0, 0.0, 0.0, 3.0]))
    firsts = []
    for seed in range(40):
        draws = torch.Generator(device).manual_seed(seed)
        found = seed_cells(points, Partition.whole(points), np.array([3]), 4, 3, draws)
        firsts.append(int(found.rows[0]))
        assert set(found.rows[:2].tolist()) == {0, 3}  # no others have any weight
        assert found.rows[2] == -1
        assert found.potentials[1] == found.potentials[2] == 0.0
    assert 20 <= firsts.count(3) < 40


def test_partitions_know_what_is_in_each_group(device: Any) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 3000)
    labels[labels == 1] = 4  # nobody is in the second group
    weights, distances = (rng.random(3000).astype(np.float32) for _ in range(2))
    found = Partition.by(*(torch.from_numpy(a).to(device) if isinstance(a, np.ndarray) else a
                           for a in (labels.astype(np.int32), 5, weights, distances)))  # fmt: skip
    assert found.sizes.tolist() == np.bincount(labels, minlength=5).tolist()
    assert len(found) == 5
    np.testing.assert_allclose(found.masses.cpu().numpy(), np.bincount(labels, weights, 5), rtol=1e-12)
    wide = weights.astype(np.float64) * distances.astype(np.float64)
    np.testing.assert_allclose(found.errors, np.bincount(labels, wide, 5), rtol=1e-12)


def test_a_sample_is_spread_over_the_members_of_a_group(device: Any) -> None:
    labels = torch.tensor([0] * 10 + [2] * 900 + [3] * 90, dtype=torch.int32, device=device)
    zeros = torch.zeros(1000, device=device)
    cells = Partition.by(labels, 4, zeros, zeros)
    draws = torch.Generator(device).manual_seed(0)
    sample = cells.sample(np.array([10, 0, 30, 9]), draws)
    assert sample.sizes.tolist() == [10, 0, 30, 9]
    assert sample.groups.start.tolist() == [0, 10, 10, 40, 49]
    rows = sample.groups.order.tolist()
    assert rows[:10] == list(range(10))  # all of them, in their order
    assert [(row - 10) // 30 for row in rows[10:40]] == list(range(30))  # one of each run of thirty
    assert [(row - 910) // 10 for row in rows[40:]] == list(range(9))
    assert len(cells.sample(np.zeros(4, np.int64), draws).groups.order) == 0
