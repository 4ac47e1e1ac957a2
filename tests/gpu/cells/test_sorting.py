"""Members by group: what a stable sort gives."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="tests of the GPU need torch")
pytest.importorskip("triton", reason="tests of the GPU need Triton")

from vcgmm.gpu.cells import sorting  # noqa: E402
from vcgmm.gpu.cells.pieces import sort_by_group  # noqa: E402
from vcgmm.gpu.cells.sorting import prepare_sort  # noqa: E402
from vcgmm.gpu.device.room import Room  # noqa: E402


def drawn(n: int, largest: int, seed: int = 0) -> Any:
    return torch.randint(0, largest + 1, (n,), generator=torch.Generator().manual_seed(seed))


def expected(labels: Any, n_groups: int) -> tuple[list[int], list[int]]:
    """All in a group in their order, and where the groups begin."""
    ordered, order = torch.sort(labels, stable=True)
    start = torch.searchsorted(ordered, torch.arange(n_groups + 1))
    return order[: int(start[-1])].tolist(), start.tolist()


@pytest.mark.parametrize("most", [0, sorting.MOST_COUNTS])  # nothing, and all, is counted
@pytest.mark.parametrize("kind", [torch.int16, torch.int32, torch.int64])
@pytest.mark.parametrize(("n", "n_groups"), [(1, 1), (700, 1), (700, 3), (1500, 70), (300, 1000), (0, 4)])
def test_members_keep_their_order(
    device: Any, monkeypatch: pytest.MonkeyPatch, n: int, n_groups: int, kind: Any, most: int
) -> None:
    monkeypatch.setattr(sorting, "MOST_COUNTS", most)
    monkeypatch.setattr(sorting, "TILES", 3)
    labels = drawn(n, n_groups)  # some are in no group
    found = sort_by_group(labels.to(kind).to(device), n_groups)
    order, start = expected(labels, n_groups)
    assert found.start.tolist() == start
    assert found.order[: start[-1]].tolist() == order
    assert sorted(found.order.tolist()) == list(range(n))  # those of no group come last


def test_labels_may_lie_apart(device: Any) -> None:
    table = drawn(900, 20).view(300, 3)
    found = sort_by_group(table.to(device)[:, 1], 21)
    order, start = expected(table[:, 1].contiguous(), 21)
    assert (found.order.tolist(), found.start.tolist()) == (order, start)


def test_tiles_and_groups_that_are_not_looked_at_at_once_add_up(
    device: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("LEAST_TILE", 16), ("TILES", 200), ("CHUNK", 8), ("ADDED_TILES", 4), ("BEGUN", 8)):
        monkeypatch.setattr(sorting, name, value)
    monkeypatch.setattr(sorting, "CLEARED", 16)
    labels = drawn(500, 99)
    labels[200:260] = 7  # more than a tile of one group
    found = sort_by_group(labels.to(device), 100)
    assert (found.order.tolist(), found.start.tolist()) == expected(labels, 100)


def test_what_was_prepared_sorts_whatever_is_there_by_then(device: Any) -> None:
    labels = torch.empty(600, dtype=torch.int32, device=device)
    (order, start), launch = prepare_sort(Room(device, keeps=True), labels, 30)
    for seed in range(3):
        now = drawn(600, 29, seed)
        labels.copy_(now)
        launch()
        assert (order.tolist(), start.tolist()) == expected(now, 30)


@pytest.mark.parametrize("n_groups", [251, 4000, 8000])
def test_many_members_of_many_groups(device: Any, n_groups: int) -> None:
    if device.type == "cpu":
        pytest.skip("too many to be interpreted")
    for seed in range(3):
        labels = drawn(1 << 20, n_groups, seed)
        labels[: 1 << 19] = labels[: 1 << 19] % 5  # some groups are large
        found = sort_by_group(labels.to(torch.int16).to(device), n_groups)
        order, start = expected(labels, n_groups)
        assert found.start.tolist() == start
        assert found.order[: start[-1]].tolist() == order
