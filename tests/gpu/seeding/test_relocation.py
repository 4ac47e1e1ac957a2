"""Clusters that are moved to where more are needed, on the device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="tests of the GPU need torch")
pytest.importorskip("triton", reason="tests of the GPU need Triton")

from vcgmm import VCGMM  # noqa: E402
from vcgmm.algorithm.coreset.frame import Frame  # noqa: E402
from vcgmm.algorithm.seeding.relocation import Relocated, Relocating  # noqa: E402
from vcgmm.gpu.cells.neighbourhoods import DeviceNeighbourhoods  # noqa: E402
from vcgmm.gpu.cells.pieces import sort_by_group  # noqa: E402
from vcgmm.gpu.coreset.points import DevicePoints  # noqa: E402
from vcgmm.gpu.device.tiling import aligned  # noqa: E402
from vcgmm.gpu.search.blocked import DeviceSearch  # noqa: E402
from vcgmm.gpu.seeding import relocation  # noqa: E402
from vcgmm.gpu.seeding.relocation import (  # noqa: E402
    Report,
    list_those_who_take,
    nearest_winners,
    relocate,
    split_in_two,
)

N_FEATURES, N_CLUSTERS, N_BEST = 5, 40, 3


def make_points(X: np.ndarray, device: Any, weights: np.ndarray | None = None) -> DevicePoints:
    frame = Frame(np.zeros(X.shape[1]), 1.0, np.dtype(np.float32))
    masses = np.ones(len(X)) if weights is None else weights
    stored = torch.from_numpy(X.astype(np.float32)).to(device)
    return DevicePoints(stored, 1.0, torch.from_numpy(masses.astype(np.float32)).to(device), frame, "fp32")


def blobs(n: int = 600, seed: int = 0) -> np.ndarray:
    """Ten groups far apart."""
    rng = np.random.default_rng(seed)
    sites = 20 * rng.normal(size=(10, N_FEATURES))
    return 0.3 * rng.normal(size=(n, N_FEATURES)) + sites[rng.integers(10, size=n)]


def badly_placed(X: np.ndarray, n_clusters: int = N_CLUSTERS) -> np.ndarray:
    """Means of which most are near one point."""
    means = X[np.random.default_rng(1).choice(len(X), n_clusters, replace=False)].copy()
    near = np.argsort(((X - X[0]) ** 2).sum(1))
    means[: n_clusters // 2] = X[near[: n_clusters // 2]]
    return means


def squares(X: np.ndarray, means: np.ndarray) -> np.ndarray:
    return ((X[:, None] - means[None]) ** 2).sum(2)


def winners_of(X: np.ndarray, means: np.ndarray, n_best: int = N_BEST) -> np.ndarray:
    return np.argsort(squares(X, means), axis=1)[:, :n_best].astype(np.int32)


def moved(
    X: np.ndarray, means: np.ndarray, device: Any, weights: np.ndarray | None = None, n_best: int = N_BEST
) -> tuple[Relocated, np.ndarray]:
    draws = torch.Generator(device).manual_seed(0)
    winners = torch.from_numpy(winners_of(X, means, n_best)).to(device)
    order = torch.arange(len(X), device=device)
    points = make_points(X, device, weights)
    given = torch.from_numpy(means.copy()).to(device)  # it is changed
    used = aligned(given)
    found = relocate(points, order, winners, given, draws, used)
    assert (used.cpu().numpy() == np.asarray(found.means).astype(np.float32)).all()
    first, *others = winners.cpu().numpy().T
    assert all((other == -1).all() for other in others)
    assert ((first >= 0) & (first < len(means))).all()
    assert found.n_points == np.count_nonzero(first != winners_of(X, means, 1)[:, 0])
    return found, first


def test_own_cluster_and_rival_are_the_two_nearest_winners(device: Any) -> None:
    rng = np.random.default_rng(0)
    X, means = rng.normal(size=(70, 150)), rng.normal(size=(9, 150))
    winners = winners_of(X, means, 4)
    for row in winners:
        rng.shuffle(row[:3])  # the fourth is not looked at
    winners[::3, 1:] = -1  # one winner, and no rival
    winners[1::3, 2] = -1
    order, near, used = (torch.from_numpy(a).to(device) for a in (rng.permutation(70), winners, means))
    labels, rivals, distances = nearest_winners(make_points(X, device), order, near, aligned(used))
    exact = np.where(winners >= 0, np.take_along_axis(squares(X, means), winners, 1), np.inf)
    ranks = np.argsort(exact, axis=1)
    first, second = (np.take_along_axis(winners, ranks[:, i : i + 1], 1)[:, 0] for i in (0, 1))
    assert (labels.cpu().numpy() == first).all()
    assert (rivals.cpu().numpy() == np.where(np.arange(70) % 3 == 0, -1, second)).all()
    np.testing.assert_allclose(distances.cpu().numpy(), np.sort(exact, axis=1)[:, :2].T, rtol=1e-4)


@pytest.mark.parametrize("n_features", [1, 40])
def test_a_cluster_of_two_is_split_into_these(device: Any, n_features: int) -> None:
    rng = np.random.default_rng(0)
    side = rng.integers(2, size=900)
    X = rng.normal(size=(900, n_features)) + 30.0 * side[:, None]
    labels = np.where(np.arange(900) < 700, 2, 0)  # more points than are looked at in Lloyd steps, nobody in 1
    labels[-5:] = 3
    X[-5:] = 7.0  # all the same
    points, groups = make_points(X, device), sort_by_group(torch.from_numpy(labels).to(device), 5)
    means = torch.zeros((5, n_features), device=device)
    tried = torch.tensor([2, 1, 0, 3], device=device)
    before = np.array([100.0, 200.0, 300.0, 400.0, 500.0])
    gains, n_second = torch.zeros(4, dtype=torch.float64, device=device), torch.zeros_like(tried)
    draws, errors = torch.Generator(device).manual_seed(0), torch.from_numpy(before).to(device)
    found = split_in_two(points, groups, tried, means, draws, errors, gains, n_second)
    centres, second, gained = (array.cpu().numpy() for array in (found.centres, found.second, gains))
    assert (gained[[1, 3]] == -np.inf).all()
    for place, cluster in ((0, 2), (2, 0)):
        here = labels == cluster
        halves = centres[place]
        np.testing.assert_allclose(np.sort(halves.mean(1)), [0, 30], atol=1.0)
        assert (second[here] == squares(X[here], halves).argmin(1)).all()
        assert n_second[place] == second[here].sum()
        assert before[cluster] - gained[place] == pytest.approx(squares(X[here], halves).min(1).sum(), rel=1e-4)
        assert (second[here] == (side[here] == (halves[1].mean() > halves[0].mean()))).all()


@pytest.mark.parametrize("at_once", [4, 64])
def test_takers_are_listed_one_cluster_after_the_other(
    device: Any, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(relocation, "ENDED", at_once)
    rng = np.random.default_rng(0)
    labels, rivals = rng.integers(0, 20, 501), rng.integers(0, 20, 501).astype(np.int32)
    labels[labels == 3] = 4  # nobody is in this one
    groups = sort_by_group(torch.from_numpy(labels).to(device), 20)
    report = Report.empty(20, 10, 501, device)
    report.sizes.copy_(groups.sizes)
    cheapest = [7, 3, 0, 19, 12, 5, 4, 1, 2, 9]
    report.cheapest.copy_(torch.tensor(cheapest))
    list_those_who_take(groups, torch.from_numpy(rivals).to(device), report)
    lists = [rivals[labels == cluster] for cluster in cheapest]
    assert report.ends.tolist() == np.cumsum([len(one) for one in lists]).tolist()
    expected = np.concatenate(lists)
    assert report.takers[: len(expected)].tolist() == expected.tolist()
    numbers, here, n_here = report.apart(report.some(31).cpu().numpy())
    assert len(numbers) == 7 * 10 + 20 + 1
    assert here.tolist() == expected[:32].tolist()
    assert n_here == len(expected)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_error_falls_and_is_what_is_said(device: Any, weighted: bool) -> None:
    X = blobs()
    means = badly_placed(X)
    weights = np.random.default_rng(2).uniform(0.1, 3, len(X)) if weighted else np.ones(len(X))
    found, labels = moved(X, means, device, weights)
    now = np.asarray(found.means)
    before = weights @ squares(X, means).min(1)
    assert found.n_moved > 3
    assert weights @ ((X - now[labels]) ** 2).sum(1) == pytest.approx(found.error, rel=1e-4)
    assert before - found.gained == pytest.approx(found.error, rel=1e-4)
    assert found.error < 0.9 * before
    assert (now == means).all(1).sum() >= N_CLUSTERS - 2 * found.n_moved
    assert found.n_evaluations > N_BEST * len(X)


def test_who_has_weight_is_who_counts(device: Any) -> None:
    X = np.concatenate([blobs(300), 100 + blobs(300)])
    weights = np.repeat([1e-3, 1.0], 300)
    means = np.concatenate([X[:30], X[300:310]])
    now = np.asarray(moved(X, means, device, weights)[0].means)
    assert (now.mean(1) > 50).sum() > 10 >= (means.mean(1) > 50).sum()


def test_clusters_that_are_where_they_belong_stay(device: Any) -> None:
    centres = 100.0 * np.random.default_rng(0).normal(size=(8, N_FEATURES))
    X = np.repeat(centres, 20, axis=0)  # nothing to gain
    found, labels = moved(X, centres, device)
    assert found.n_moved == 0
    assert found.gained == 0
    assert (np.asarray(found.means) == centres).all()
    assert (labels == np.repeat(np.arange(8), 20)).all()


@pytest.mark.parametrize(("n_clusters", "n_best"), [(1, 1), (2, 1), (2, 2), (5, 1)])
def test_without_a_rival_nobody_is_taken_away(device: Any, n_clusters: int, n_best: int) -> None:
    X = blobs(60)
    found, _ = moved(X, X[:n_clusters], device, n_best=n_best)
    assert found.n_moved <= (n_best > 1)


def test_a_search_goes_on_from_there_the_same_way_twice(device: Any) -> None:
    X = blobs()
    means = badly_placed(X)
    bits = []
    for links_ahead in (False, True):  # who asks for it goes on no differently
        points = make_points(X, device)
        near = DeviceNeighbourhoods(N_CLUSTERS, 3, 12, 0, 1, device)
        labels = torch.from_numpy(winners_of(X, means, 1)[:, 0]).to(device)
        search = DeviceSearch(points, labels, near, N_BEST, float(squares(X, means).min(1).sum()), 1e-6)
        assert isinstance(search, Relocating)
        search.links_ahead = links_ahead
        search.e_step(means, None)
        found = search.relocate(means, np.random.default_rng(3))
        statistics = search.e_step(found.means, None)
        assert search.start_error == found.error < 0.9 * squares(X, means).min(1).sum()
        assert statistics.variance == pytest.approx(found.error / X.size)
        bits.append(
            (np.asarray(found.means).tobytes(), np.asarray(statistics.shifts).tobytes(), statistics.log_sum)
        )
    assert bits[0] == bits[1]


@pytest.mark.filterwarnings("ignore:The fit ended")
@pytest.mark.parametrize(("init", "expected"), [("two_level", 1), ("random", 0)])
def test_a_fit_begins_with_it_after_a_start_of_cells(
    gpu: Any, monkeypatch: pytest.MonkeyPatch, init: str, expected: int
) -> None:
    found = []

    def relocate_and_tell(*about: Any) -> Relocated:
        found.append(plainly(*about))
        return found[-1]

    plainly = DeviceSearch.relocate
    monkeypatch.setattr(DeviceSearch, "relocate", relocate_and_tell)
    model = VCGMM(12, init=init, coreset_size=None, max_iter=1, tol=1.0, random_state=0, device="cuda")
    X = torch.from_numpy(blobs(200).astype(np.float32)).to(gpu)
    model.fit(X)
    assert len(found) >= expected
    assert bool(found) == bool(expected)
