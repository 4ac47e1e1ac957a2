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

    def bound(self, grid: tuple[int, ...], *arguments: Any, **options: Any) -> Callable[[], None]:
        """What launches the kernel with the same arguments, on the stream of now, as often as it is called.

        They are looked at once, and tensors are kept where they are.
        """
        key, values = _look(arguments, options)
        found = self._compiled.get(key)
        if found is None:
            return partial(self._launch, grid, *arguments, **options)
        run, facts, constants = found
        given = (*facts, None, None, None, *values, *constants)
        again: Any = partial(run, *(*grid, 1, 1)[:3], _stream(arguments), *given)
        again.kept = arguments
        return again

    def _launch(self, grid: tuple[int, ...], *arguments: Any, **options: Any) -> None:
        key, values = _look(arguments, options)
        found = self._compiled.get(key)
        if found is not None:
            # As `compiled[grid]` does it, without looking for hooks and for the device once more.
            run, facts, constants = found
            run(*(*grid, 1, 1)[:3], _stream(arguments), *facts, None, None, None, *values, *constants)
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


def _stream(arguments: tuple[Any, ...]) -> int:
    """What kernels are queued in on the device of the first argument."""
    stream: int = torch._C._cuda_getCurrentRawStream(arguments[0].get_device())
    return stream


def _look(arguments: tuple[Any, ...], options: dict[str, Any]) -> tuple[tuple[Any, ...], list[Any]]:
    """What a compiled kernel depends on, as Triton tells arguments apart and no finer, and what it is given.

    Of a tensor that is where it begins: a number is not asked about, as a tensor would be by a call of the driver.
    """
    key: list[Any] = [arguments[0].get_device()]
    values: list[Any] = []
    tell, give = key.append, values.append
    for value in arguments:
        kind = type(value)
        if kind is torch.Tensor:
            place = value.data_ptr()
            give(place)
            tell(value.dtype)
            if place & 15:
                tell(None)
        else:
            give(value)
            if kind is not int:
                tell(kind)
            else:
                tell(1 if value == 1 else 2 + (value & 15 == 0) + 2 * (value > LARGEST))
    return (*key, *options.values()), values


def launched(kernel: Any) -> Launched:
    """A decorator, on top of `triton.jit`, of kernels that the host launches."""
    return Launched(kernel)
