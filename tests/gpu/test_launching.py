"""Launches find the kernel that was compiled for such arguments, and no other."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="tests of the GPU need torch")
pytest.importorskip("triton", reason="tests of the GPU need Triton")

from vcgmm.gpu.kernels.launching import launched  # noqa: E402
from vcgmm.gpu.spans import Span  # noqa: E402


class Kernel:
    """Stands for one of Triton: it tells what it was compiled for, and what was launched."""

    arg_names = ("tensor", "size", "scale", "TILE", "MODE")

    def __init__(self) -> None:
        self.compiled: list[Any] = []
        self.launched: list[Any] = []

    def __getitem__(self, grid: Any) -> Any:
        def launch(*arguments: Any, **options: Any) -> Compiled:
            self.compiled.append((grid, arguments, options))
            return Compiled(self.launched)

        return launch


class Compiled:
    function, packed_metadata = "function", "facts"

    def __init__(self, launched: list[Any]) -> None:
        self.launched = launched

    def run(self, x: int, y: int, z: int, *others: Any) -> None:
        stream, function, facts, *hooks = others[:6]
        assert (stream, function, facts, hooks) == (STREAM, "function", "facts", [None] * 3)
        self.launched.append(((x, y, z), others[6:]))


@pytest.fixture(autouse=True)
def stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda _device: STREAM, raising=False)


STREAM = 7
ROW = torch.zeros(64)
OPTIONS = {"MODE": "tf32", "TILE": 16, "num_warps": 4}


def test_the_second_launch_takes_what_the_first_has_compiled() -> None:
    kernel = Kernel()
    quick = launched(kernel)
    quick[(3,)](ROW, 50, 0.5, **OPTIONS)
    assert kernel.compiled == [((3,), (ROW, 50, 0.5), OPTIONS)]
    other = torch.ones(64)
    quick[(7, 2)](other, 70, 0.25, **OPTIONS)
    assert len(kernel.compiled) == 1
    # Constants in the kernel's order, and of a tensor where it begins.
    assert kernel.launched == [((7, 2, 1), (other.data_ptr(), 70, 0.25, 16, "tf32"))]


def test_memory_that_torch_knows_nothing_of() -> None:
    kernel = Kernel()
    quick = launched(kernel)
    span = Span.over(ROW)
    quick[(3,)](span, 50, 0.5, **OPTIONS)
    assert kernel.compiled[0][1][0] is span.tensor
    quick[(3,)](span[16:], 50, 0.5, **OPTIONS)
    quick.bound((3,), span[32:], 50, 0.5, **OPTIONS)()
    assert len(kernel.compiled) == 1
    assert [given[0] - ROW.data_ptr() for _, given in kernel.launched] == [64, 128]
    quick[(3,)](span[1:], 50, 0.5, **OPTIONS)  # not aligned
    assert len(kernel.compiled) == 2


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ((ROW.double(), 50, 0.5), OPTIONS),  # another type
        ((ROW[1:], 50, 0.5), OPTIONS),  # not aligned
        ((ROW, 48, 0.5), OPTIONS),  # a multiple of 16
        ((ROW, 1, 0.5), OPTIONS),
        ((ROW, (1 << 31) + 2, 0.5), OPTIONS),
        ((ROW, 50, 0.5), {**OPTIONS, "TILE": 32}),
        ((ROW, 50, 0.5), {**OPTIONS, "num_warps": 8}),
    ],
)
def test_what_triton_tells_apart_is_compiled_apart(arguments: Any, options: Any) -> None:
    kernel = Kernel()
    quick = launched(kernel)
    quick[(1,)](ROW, 50, 0.5, **OPTIONS)
    quick[(1,)](*arguments, **options)
    assert len(kernel.compiled) == 2
    assert kernel.launched == []
    quick[(1,)](*arguments, **options)
    quick[(1,)](ROW, 50, 0.5, **OPTIONS)
    assert (len(kernel.compiled), len(kernel.launched)) == (2, 2)


def test_kernels_without_memory_of_their_own_are_launched_by_what_triton_would_call() -> None:
    class Run:
        global_scratch_size = profile_scratch_size = 0
        launch_cooperative_grid, launch_pdl = False, True

        def __init__(self, found: list[Any]) -> None:
            self.launch = lambda *given: found.append(given)

    kernel, found = Kernel(), []
    quick = launched(kernel)
    plainly = Kernel.__getitem__

    def compile_it(self: Any, grid: Any) -> Any:
        def launch(*arguments: Any, **options: Any) -> Any:
            compiled = plainly(self, grid)(*arguments, **options)
            compiled.run = Run(found)
            return compiled

        return launch

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Kernel, "__getitem__", compile_it)
        quick[(3,)](ROW, 50, 0.5, **OPTIONS)
        quick[(3,)](ROW, 50, 0.5, **OPTIONS)
    others = (False, True, None, None, "facts", None, None, None, ROW.data_ptr(), 50, 0.5, 16, "tf32")
    assert found == [(3, 1, 1, STREAM, "function", *others)]


def test_bound_launches_are_looked_at_once() -> None:
    kernel = Kernel()
    quick = launched(kernel)
    launch = quick.bound((3,), ROW, 50, 0.5, **OPTIONS)
    assert kernel.compiled == []  # it waits for the first launch
    launch()
    launch()
    assert (len(kernel.compiled), len(kernel.launched)) == (1, 1)
    tensor = torch.ones(64)
    place = tensor.data_ptr()
    again = quick.bound((7, 2), tensor, 70, 0.25, **OPTIONS)
    del tensor  # which is kept
    for _ in range(2):
        again()
    assert len(kernel.compiled) == 1
    assert kernel.launched[1:] == [((7, 2, 1), (place, 70, 0.25, 16, "tf32"))] * 2
    assert torch.ones(64).data_ptr() != place
