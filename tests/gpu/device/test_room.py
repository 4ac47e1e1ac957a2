"""Rooms keep memory and what was prepared, or not."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="tests of the GPU need torch")
pytest.importorskip("triton", reason="tests of the GPU need Triton")

from vcgmm.gpu.device import room as rooms  # noqa: E402
from vcgmm.gpu.device.arrays import Told  # noqa: E402
from vcgmm.gpu.device.room import Room  # noqa: E402


def test_memory_is_the_same_again_or_new(device: Any) -> None:
    kept, fresh = Room(device, keeps=True), Room(device)
    one = kept("sums", (3, 4), torch.float64)
    assert (one.shape, one.dtype, one.device.type) == ((3, 4), torch.float64, device.type)
    assert kept("sums", (3, 4), torch.float64) is one
    assert kept(("sums", 1), (3, 4), torch.float64) is not one
    assert fresh("sums", (3, 4)) is not fresh("sums", (3, 4))
    assert fresh("sums", (3, 4)).dtype == torch.float32


@pytest.mark.parametrize(("keeps", "expected"), [(True, 3), (False, 5)])
def test_what_is_given_the_same_objects_is_prepared_once(device: Any, keeps: bool, expected: int) -> None:
    room, calls = Room(device, keeps=keeps), []

    def prepare(where: Room, *given: Any) -> int:
        assert where is room
        calls.append(given)
        return len(calls)

    one, other = torch.zeros(2), torch.zeros(2)
    found = [room.again(prepare, *given) for given in ((one, 0), (one, 0), (one, 1), (other, 0), (one, 0))]
    assert len(calls) == expected
    assert found == ([1, 1, 2, 3, 1] if keeps else [1, 2, 3, 4, 5])


def test_not_much_is_kept(device: Any) -> None:
    room = Room(device, keeps=True)
    seen = []
    for _ in range(rooms.MOST_PREPARED + 1):
        tensor = torch.zeros(1)
        seen.append(weakref.ref(tensor))
        room.again(lambda _room, given: given.shape, tensor)
    del tensor
    assert sum(one() is not None for one in seen) <= rooms.MOST_PREPARED


def test_a_search_that_ran_ahead_is_gone_at_once(gpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its memory is free without a search for cycles: the next attempt needs it."""
    from vcgmm import VCGMM
    from vcgmm.gpu.search.blocked import DeviceSearch

    gone = []
    plainly = DeviceSearch.run_ahead

    def run_ahead(self: DeviceSearch, *others: Any) -> None:
        plainly(self, *others)
        gone.extend([weakref.ref(self), weakref.ref(self._room)])

    monkeypatch.setattr(DeviceSearch, "run_ahead", run_ahead)
    X = torch.rand((60, 3), generator=torch.Generator().manual_seed(0)).to(gpu)
    gc.collect()
    gc.disable()
    try:
        VCGMM(4, coreset_size=None, random_state=0, device="cuda", tol=1e-3).fit(X)
        assert [one() for one in gone] == [None, None]
    finally:
        gc.enable()


def test_numbers_come_by_the_same_way_again(device: Any) -> None:
    numbers = torch.arange(3.0, dtype=torch.float64, device=device)
    first = Told(numbers)
    assert first.tolist() == [0.0, 1.0, 2.0]
    other = numbers + 1
    second = Told(other, None, first)
    other += 5
    assert second.tolist() == [1.0, 2.0, 3.0]
    assert numbers.tolist() == [0.0, 1.0, 2.0]
