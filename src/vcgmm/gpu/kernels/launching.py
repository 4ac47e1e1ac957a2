"""Launches that cost the host little: a kernel that was compiled for such arguments is found by a look at them.

Triton looks at every argument of every launch in more ways than are needed here, which takes the host longer than
many a small kernel runs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

#: Beyond it a number takes 64 bits.
LARGEST = (1 << 31) - 1


class Launched:
    """A kernel of Triton, launched as ever: kernel[grid](arguments, CONSTANT=..., num_warps=...).

    Its compile-time constants come last, and are given by name.

    Parameters
    ----------
    kernel : Triton kernel
    """

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel
        self._names = tuple(kernel.arg_names)
        self._compiled: dict[tuple[Any, ...], tuple[Any, ...]] = {}

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        """What launches the kernel on a grid."""
        return partial(self._launch, grid)

    def _launch(self, grid: tuple[int, ...], *arguments: Any, **options: Any) -> None:
        device = arguments[0].device
        key = (
            device,
            *[
                (value.dtype, value.data_ptr() & 15 == 0) if type(value) is torch.Tensor else _look(value)
                for value in arguments
            ],
            *options.values(),
        )
        found = self._compiled.get(key)
        if found is not None:
            # As `compiled[grid]` does it, without looking for hooks and for the device once more.
            run, facts, constants = found
            stream = torch._C._cuda_getCurrentRawStream(device.index)
            run(*(*grid, 1, 1)[:3], stream, *facts, None, None, None, *arguments, *constants)
            return
        compiled = self._kernel[grid](*arguments, **options)
        if compiled is not None:  # the interpreter compiles nothing
            constants = tuple(options[name] for name in self._names[len(arguments) :])
            run, before = _shortest(compiled.run)
            self._compiled[key] = run, (compiled.function, *before, compiled.packed_metadata), constants


def _shortest(run: Any) -> tuple[Callable[..., None], tuple[Any, ...]]:
    """What launches a compiled kernel, and what it takes before the kernel's own facts.

    Where a kernel needs no memory of its own, what Triton would call next is called at once.
    """
    sizes = [getattr(run, name, 1) for name in ("global_scratch_size", "profile_scratch_size")]
    if sizes == [0, 0] and all(hasattr(run, name) for name in ("launch", "launch_cooperative_grid", "launch_pdl")):
        return run.launch, (run.launch_cooperative_grid, run.launch_pdl, None, None)
    return run, ()


def _look(value: Any) -> Any:
    """What of a number a compiled kernel depends on: as Triton tells arguments apart, and no finer."""
    kind = type(value)
    if kind is int:
        return value if value == 1 else (value & 15 == 0, value > LARGEST)
    return kind


def launched(kernel: Any) -> Launched:
    """A decorator, on top of `triton.jit`, of kernels that the host launches."""
    return Launched(kernel)
