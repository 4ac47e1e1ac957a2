"""Lists of near clusters on the device against those of the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="tests of the GPU need torch")

from vcgmm.gpu.cells import neighbourhoods as module  # noqa: E402
from vcgmm.gpu.cells.neighbourhoods import DeviceNeighbourhoods, followers_of, leaves, random_cuts  # noqa: E402
from vcgmm.gpu.cells.ranking import distinct_in_order, ranked  # noqa: E402
from vcgmm.kernels.cells.neighbors import join_neighbourhoods, turn_round  # noqa: E402


def means_of(device: Any, n_clusters: int, n_features: int = 3) -> Any:
    return torch.from_numpy(np.random.default_rng(0).normal(size=(n_clusters, n_features)).astype(np.float32)).to(
        device
    )


def exact_lists(means: Any, length: int) -> np.ndarray:
    distances = torch.cdist(means.double(), means.double())
    return torch.sort(distances, dim=1, stable=True).indices[:, :length].cpu().numpy()


def test_few_clusters_are_all_compared(device: Any) -> None:
    means = means_of(device, 50)
    near = DeviceNeighbourhoods(50, 4, 12, 0, 0, device)
    assert near.update(means) == 2500
    assert near.nearest.tolist() == exact_lists(means, 12).tolist()
    assert near.neighbors.tolist() == exact_lists(means, 4).tolist()


def test_equal_clusters_have_themselves_first(device: Any) -> None:
    near = DeviceNeighbourhoods(5, 3, 5, 0, 0, device)
    near.update(torch.ones((5, 2), device=device))
    assert near.neighbors[:, 0].tolist() == [0, 1, 2, 3, 4]
    assert near.candidates[:, 0].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("n_explore", [0, 3])
@pytest.mark.parametrize(
    ("compared", "marked"), [(512, True), (1, False)]
)  # put together by one kernel, or by many
def test_candidates_are_those_of_the_cpu(
    device: Any, n_explore: int, compared: int, marked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "COMPARED", compared)
    if not marked:
        monkeypatch.setattr(module, "MARKED", 0)
    n_clusters, length = 60, 16
    means = means_of(device, n_clusters)
    near = DeviceNeighbourhoods(n_clusters, 4, length, n_explore, 0, device)
    near.update(means)
    nearest = near.nearest.cpu().numpy()
    followers, counts = np.empty((n_clusters + 1, length // 2 + 1), np.int32), np.empty(n_clusters, np.int32)
    turn_round(nearest, followers, counts)
    found = followers_of(near.nearest, length // 2).cpu().numpy()
    for c in range(n_clusters):
        assert found[c, : counts[c]].tolist() == followers[c, : counts[c]].tolist()
        assert (found[c, counts[c] :] == -1).all()
    expected = np.empty((n_clusters, length), np.int32)
    none = np.empty((n_clusters, 0), np.int32)
    neighbors = near.neighbors.cpu().numpy().copy()
    join_neighbourhoods(0, n_clusters, neighbors, nearest, followers, counts, none, expected)
    candidates = near.candidates.cpu().numpy()
    assert candidates[:, :length].tolist() == expected.tolist()
    assert candidates.shape == (n_clusters, length + n_explore)
    assert all(len(set(row)) == length + n_explore for row in candidates.tolist())
    table = near.listed.table.cpu().numpy()
    if marked:
        bits = (table[:, :, None] >> np.arange(32)) & 1
        expected = (candidates[:, :, None] == np.arange(32 * table.shape[1])).any(1)
        assert (bits.reshape(n_clusters, -1) == expected).all()
    else:
        assert (table == np.sort(candidates, axis=1)).all()


def test_exploring_more_than_there_is_gives_all(device: Any) -> None:
    near = DeviceNeighbourhoods(9, 2, 6, 9, 0, device)
    near.update(means_of(device, 9))
    assert all(sorted(row) == list(range(9)) for row in near.candidates.tolist())


def test_pools_find_most_of_the_nearest_and_forget_none(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "POOL_SIZE", 128)
    monkeypatch.setattr(module, "ALL_COMPARED", 128)
    monkeypatch.setattr(module, "COMPARED", 1)  # under the interpreter the other way takes minutes
    monkeypatch.setattr(module, "POOL_VALUES", 128 * 3 * 5)  # several groups at a time, and not all
    n_clusters = 601
    means = means_of(device, n_clusters)
    near = DeviceNeighbourhoods(n_clusters, 5, 20, 0, 0, device)
    exact, shares = exact_lists(means, 20), []
    for _ in range(3):
        near.n_updates = 0  # each one links anew
        near.seed += 1
        near.update(means)
        lists = near.nearest.cpu().numpy()
        assert (lists[:, 0] == np.arange(n_clusters)).all()
        assert all(len(set(row)) == 20 for row in lists.tolist())
        shares.append(np.mean([len(set(a) & set(b)) for a, b in zip(lists, exact, strict=True)]) / 20)
    assert shares == sorted(shares)
    assert shares[-1] > 0.98


def test_groups_are_of_one_size_and_hold_everyone_once(device: Any) -> None:
    means = means_of(device, 107)
    order = random_cuts(means, 3, torch.Generator(device).manual_seed(0))
    groups = leaves(order, 3)
    assert sorted(order.tolist()) == list(range(107))
    assert sorted(groups[groups >= 0].tolist()) == list(range(107))
    assert set((groups >= 0).sum(1).tolist()) == {13, 14}


def test_links_are_made_as_often_as_on_the_cpu(device: Any) -> None:
    near = DeviceNeighbourhoods(20, 3, 5, 0, 0, device)
    linked = [near.update(means_of(device, 20)) > 0 for _ in range(9)]
    assert np.flatnonzero(linked).tolist() == [0, 1, 4, 8]


def test_the_smallest_come_first_and_ties_by_place(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    values = torch.tensor([[3.0, -1.0, 3.0, 0.0, -torch.inf, 3.0]], device=device)
    assert ranked(values, 5).tolist() == [[4, 1, 3, 0, 2]]
    monkeypatch.setattr("vcgmm.gpu.cells.ranking.RANKED", 2)  # as for long rows
    assert ranked(values, 5).tolist() == [[4, 1, 3, 0, 2]]


@pytest.mark.parametrize("largest", [20, 1 << 30])
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_different_ids_in_the_order_in_which_they_come(device: Any, largest: int, dtype: Any) -> None:
    ids = torch.randint(-1, 20, (40, 37), generator=torch.Generator().manual_seed(0), dtype=dtype)
    ids[0, 0] = largest
    for count in (7, 40):
        found = distinct_in_order(ids.to(device), count, largest + 1).tolist()
        for row, answer in zip(ids.tolist(), found, strict=True):
            expected = list(dict.fromkeys(i for i in row if i >= 0))
            assert answer == (expected + [-1] * count)[:count]


def test_an_update_that_was_made_before_is_not_made_again(device: Any) -> None:
    ahead, plain = (DeviceNeighbourhoods(9, 2, 6, 0, 0, device) for _ in range(2))
    means = means_of(device, 9)
    ahead.update_ahead(means)
    assert (ahead.update(means), ahead.n_updates) == (plain.update(means), plain.n_updates)
    assert torch.equal(ahead.candidates, plain.candidates)
    ahead.update(means)
    assert ahead.n_updates == 2
