"""Memory that the host cuts up by itself: what torch would give, and the same fits."""

from __future__ import annotations

import gc
import weakref
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="tests of the GPU need torch")
pytest.importorskip("triton", reason="tests of the GPU need Triton")

from vcgmm import VCGMM  # noqa: E402
from vcgmm.gpu.device import arena  # noqa: E402
from vcgmm.gpu.device.arena import Arena, empty, in_arena, letter, out_of_arena  # noqa: E402
from vcgmm.gpu.device.arrays import DeviceArray, Rounded, Told, on_its_way  # noqa: E402
from vcgmm.gpu.device.tiling import aligned  # noqa: E402
from vcgmm.gpu.search.homecoming import MOST_BYTES, Coming, Homecoming, can_come  # noqa: E402
from vcgmm.gpu.spans import Letter, Span  # noqa: E402


@pytest.fixture
def table(device: Any) -> tuple[Span, Any]:
    """A span, and a tensor of its own with the same contents."""
    span = Arena(device).empty((6, 5), torch.float32)
    span.tensor.copy_(torch.arange(30.0).view(6, 5))
    return span, span.tensor.clone()


@pytest.mark.parametrize(
    "part",
    [
        lambda t: t[2:4],
        lambda t: t[-2:],
        lambda t: t[4:99],
        lambda t: t[5:2],
        lambda t: t[3],
        lambda t: t[-1],
        lambda t: t[:, 2],
        lambda t: t[:, :3],
        lambda t: t[1:, :3][:, 1],
        lambda t: t.view(-1),
        lambda t: t.view(-1)[3:7],
        lambda t: t.view(-1).view(torch.int32),
        lambda t: t[2].view(torch.int16),
        lambda t: t.contiguous(),
    ],
)
def test_parts_are_those_of_a_tensor_and_cost_no_tensor(table: tuple[Span, Any], part: Any) -> None:
    span, tensor = table
    found, expected = part(span), part(tensor)
    assert type(found) is Span
    assert found.shape == tuple(expected.shape)
    assert len(found) == len(expected)
    assert found.numel() == expected.numel()
    assert [found.stride(i) for i in range(len(found.shape))] == list(expected.stride())
    assert found.dtype == expected.dtype
    assert torch.equal(found.tensor, expected)
    if found.numel():
        assert found.data_ptr() - span.data_ptr() == expected.data_ptr() - tensor.data_ptr()
        assert found.tensor.data_ptr() == found.data_ptr()


@pytest.mark.parametrize(
    "ask",
    [
        lambda t: t[[4, 0]],
        lambda t: t[::2],
        lambda t: t[2, 3],
        lambda t: t[:, 1:3],
        lambda t: t[:, :3].contiguous(),
        lambda t: t.view(5, 6),
        lambda t: t.double(),
        lambda t: t.sum(1),
        lambda t: torch.cat([t, t]),
        lambda t: torch.where(t > 3, t, 2 * t),
        lambda t: torch.add(t, t, alpha=2.0),
        lambda t: torch.ones_like(t).copy_(t),
        lambda t: (1 - t) / (t + 1) - t * 2 + 3 * t,
        lambda t: (t == 3) | (t != 4) & (t >= 2),
        lambda t: torch.sort(t, descending=True, out=(torch.empty_like(t), torch.empty_like(t).long())).values,
    ],
)
def test_torch_computes_with_the_same(table: tuple[Span, Any], ask: Any) -> None:
    span, tensor = table
    assert torch.equal(ask(span), ask(tensor))


def test_what_torch_writes_is_there(table: tuple[Span, Any]) -> None:
    span, tensor = table
    span[1] = 7.0
    span[2:4].fill_(5.0)
    torch.add(tensor[5], 1.0, out=span[5])
    tensor[1], tensor[2:4] = 7.0, 5.0
    tensor[5] += 1.0
    assert torch.equal(span.tensor, tensor)
    assert [row.tolist() for row in span] == tensor.tolist()
    assert float(span[0].view(-1)[3:4]) == 3.0


def test_what_is_not_there(table: tuple[Span, Any]) -> None:
    for place in (6, -7):
        with pytest.raises(IndexError):
            table[0][place]
    assert not hasattr(table[0], "nothing")


def test_a_span_over_a_tensor(device: Any) -> None:
    tensor = torch.arange(12, device=device).view(3, 4)
    first, second, third = Span.over(tensor)
    assert second.tolist() == [4, 5, 6, 7]
    assert third[1:3].tolist() == [9, 10]
    assert first.data_ptr() == tensor.data_ptr()
    assert first.get_device() == tensor.get_device()


def test_nothing_overlaps_and_large_pieces_are_alone(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arena, "CHUNK" if device.type == "cuda" else "INTERPRETED", 1 << 14)
    room, rng = Arena(device), np.random.default_rng(0)
    kinds = (torch.int8, torch.int16, torch.int32, torch.float64)
    spans = [room.empty((int(n), 3), kinds[n % 4]) for n in rng.integers(0, 900, 60)]
    for number, span in enumerate(spans):
        span.tensor.fill_(number)
    assert all((span.tensor == number).all() for number, span in enumerate(spans))
    assert all(span.place % 64 == 0 for span in spans)
    assert len({id(span._base) for span in spans}) < len(spans) / 2  # most of them share


def test_memory_is_free_when_nobody_has_a_part_of_it(device: Any) -> None:
    room = Arena(device)
    one, other = room.empty((5,), torch.float32), room.empty((5,), torch.float32)
    gone = weakref.ref(one._base)
    del room, one
    gc.collect()
    assert gone() is not None
    del other
    gc.collect()
    assert gone() is None


def test_where_memory_comes_from(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def kinds() -> list[type]:
        return [type(make((3,), torch.float64, device)) for make in (empty, letter)]

    assert kinds() == [torch.Tensor] * 2
    with in_arena(device, 10):
        assert kinds() == [Span, Letter]
        with out_of_arena():
            assert kinds() == [torch.Tensor] * 2
        assert kinds() == [Span, Letter]
    assert kinds() == [torch.Tensor] * 2
    with in_arena(device, arena.FEW + 1):
        assert kinds() == [torch.Tensor] * 2
    with pytest.raises(KeyboardInterrupt), in_arena(device, 10):
        raise KeyboardInterrupt
    assert kinds() == [torch.Tensor] * 2


@pytest.mark.parametrize("inside", [True, False])
def test_letters_tell_what_was_written(device: Any, inside: bool) -> None:
    with in_arena(device, 10) if inside else nullcontext():
        letters = [letter((n,), kind, device) for n, kind in ((3, torch.int64), (20_000, torch.float64))]
        for number, one in enumerate(letters):
            one.tensor.fill_(number + 1) if inside else one.fill_(number + 1)
        told = [Told(one) for one in letters]
        assert [one.array().sum() for one in told] == [3, 40_000]
        again = Told(letters[0], before=told[0])
        assert again.tolist() == [1, 1, 1]


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("scale", [1.0, 0.25, 8.0])
def test_results_come_home(device: Any, inside: bool, scale: float) -> None:
    draws = torch.Generator(device)
    draws.manual_seed(0)
    means, moves = torch.randn((2, 19, 7), generator=draws, dtype=torch.float64, device=device)
    masses = torch.rand(19, generator=draws, dtype=torch.float64, device=device)
    nearest = torch.randint(19, (19, 9), generator=draws, dtype=torch.int32, device=device)
    with in_arena(device, 10) if inside else nullcontext():
        home = Homecoming(means, moves, masses, nearest[:, :3], scale)
        expected = ((means + moves) / scale).cpu().numpy()
        first, second = np.asarray(Coming(home)), np.asarray(Coming(home))
    assert first.tobytes() == second.tobytes() == expected.tobytes()
    assert first is not second
    assert torch.equal(Coming(home).tensor.cpu(), torch.from_numpy(expected))
    assert torch.equal(home.local, means + moves)
    assert home.masses().tobytes() == masses.cpu().numpy().tobytes()
    assert home.neighbors().tolist() == nearest[:, :3].tolist()
    assert home.neighbors().dtype == np.int32


def test_scales_that_kernels_are_not_given() -> None:
    few = torch.empty((3, 2))
    assert can_come(few, 1.0)
    assert can_come(few, 2.0**-90)
    assert not can_come(few, 2.0**300)
    assert not can_come(few, 2.0**-300)
    assert not can_come(torch.empty((1, 1)).expand(MOST_BYTES // 8 + 1, 1), 1.0)


def test_rounded_means_are_made_when_they_are_asked_for(device: Any) -> None:
    used = aligned(torch.arange(12.0, device=device).view(4, 3))
    means = Rounded(used)
    assert (means.shape, len(means)) == ((4, 3), 4)
    wide = used.double()
    means.are_in(wide)
    used.fill_(0.0)  # an E-step has changed it
    assert means.tensor is wide
    assert torch.equal(Rounded(used).tensor, torch.zeros((4, 3), dtype=torch.float64, device=device))


def test_arrays_on_their_way_are_copies(device: Any) -> None:
    waited = on_its_way(DeviceArray(torch.arange(3.0, device=device)))
    assert waited().tolist() == [0.0, 1.0, 2.0]
    assert waited() is not waited()


@pytest.mark.filterwarnings("ignore:The fit ended")
@pytest.mark.parametrize(
    "options",
    [
        {"max_iter": 4},
        {"max_iter": 2, "init": "random", "precision": "fp32"},
        {"max_iter": 3, "covariance_type": "spherical", "n_shared": 1},
    ],
)
def test_a_fit_is_the_same(gpu: Any, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    X = torch.from_numpy((rng.integers(5, size=(150, 1)) + rng.normal(size=(150, 3))).astype(np.float32)).to(gpu)
    fits = []
    for few in (0, arena.FEW):
        monkeypatch.setattr(arena, "FEW", few)
        model = VCGMM(9, coreset_size=None, random_state=0, tol=0.0, n_candidates=6, device="cuda", **options).fit(
            X
        )
        arrays = (model.means_, model.counts_, model.neighbors_, model.lower_bounds_)
        fits.append([one.tobytes() for one in arrays])
    assert fits[0] == fits[1]


def test_callbacks_have_memory_of_their_own(gpu: Any) -> None:
    kinds = []
    X = torch.from_numpy(np.random.default_rng(0).normal(size=(60, 2)).astype(np.float32)).to(gpu)

    def look(_: Any) -> None:
        kinds.append(type(empty((1,), torch.int32, gpu)))

    VCGMM(3, device="cuda", random_state=0, callbacks=look).fit(X)
    assert set(kinds) == {torch.Tensor}
