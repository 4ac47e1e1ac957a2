"""Launches that cost the host little: a kernel that was compiled for such arguments is found by a look at them.

Triton looks at every argument of every launch in more ways than are needed here, which takes the host longer than
many a small kernel runs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from ..spans import Letter, Span, as_tensors

#: Beyond it a number takes 64 bits.
LARGEST = (1 << 31) - 1

#: What a compiled kernel depends on of its arguments, and what it is given.
Look = Callable[[tuple[Any, ...]], tuple[tuple[Any, ...], tuple[Any, ...]]]


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
        self._known: dict[tuple[type, ...], tuple[Look, dict[tuple[Any, ...], tuple[Any, ...]]]] = {}

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        """What launches the kernel on a grid."""
        return partial(self._launch, grid)

    def bound(self, grid: tuple[int, ...], *arguments: Any, **options: Any) -> Callable[[], None]:
        """What launches the kernel with the same arguments, on the stream of now, as often as it is called.

        They are looked at once, and tensors are kept where they are.
        """
        device = arguments[0].get_device()
        look, known = self._of_kinds(tuple(map(type, arguments)))
        told, values = look(arguments)
        found = known.get((device, told, *options.values()))
        if found is None:
            return partial(self._launch, grid, *arguments, **options)
        run, facts, constants = found
        stream = torch._C._cuda_getCurrentRawStream(device)
        again: Any = partial(run, *grid, *_REST[len(grid)], stream, *facts, *values, *constants)
        again.kept = arguments
        return again

    def _launch(self, grid: tuple[int, ...], *arguments: Any, **options: Any) -> None:
        device = arguments[0].get_device()
        look, known = self._of_kinds(tuple(map(type, arguments)))
        told, values = look(arguments)
        key = (device, told, *options.values())
        found = known.get(key)
        if found is not None:
            # As `compiled[grid]` does it, without looking for hooks and for the device once more.
            run, facts, constants = found
            stream = torch._C._cuda_getCurrentRawStream(device)
            run(*grid, *_REST[len(grid)], stream, *facts, *values, *constants)
            return
        compiled = self._kernel[grid](*as_tensors(arguments), **options)
        if compiled is not None:  # the interpreter compiles nothing
            constants = tuple(options[name] for name in self._names[len(arguments) :])
            run, before = _shortest(compiled.run)
            facts = (compiled.function, *before, compiled.packed_metadata, None, None, None)
            known[key] = run, facts, constants

    def _of_kinds(self, kinds: tuple[type, ...]) -> tuple[Look, dict[tuple[Any, ...], tuple[Any, ...]]]:
        """What looks at arguments of these types, and what was compiled for some of them."""
        found = self._known.get(kinds)
        if found is None:
            found = self._known[kinds] = (_look_at(kinds), {})
        return found


#: What a grid of fewer dimensions than three has in the others.
_REST = ((1, 1, 1), (1, 1), (1,), ())


def _shortest(run: Any) -> tuple[Callable[..., None], tuple[Any, ...]]:
    """What launches a compiled kernel, and what it takes before the kernel's own facts.

    Where a kernel needs no memory of its own, what Triton would call next is called at once.
    """
    sizes = [getattr(run, name, 1) for name in ("global_scratch_size", "profile_scratch_size")]
    if sizes == [0, 0] and all(hasattr(run, name) for name in ("launch", "launch_cooperative_grid", "launch_pdl")):
        return run.launch, (run.launch_cooperative_grid, run.launch_pdl, None, None)
    return run, ()


def _look_at(kinds: tuple[type, ...]) -> Look:
    """What looks at arguments of these types: a line of Python, written here, since a loop takes twice as long.

    It tells what a compiled kernel depends on, as Triton tells arguments apart and hardly finer, and what it is
    given.  Of a tensor that is where it begins: a number is not asked about, as a tensor would be by a call of the
    driver.
    """
    names = [f"a{i}" for i in range(len(kinds))]
    places, told, values = [], [], []
    for name, kind in zip(names, kinds, strict=True):
        if kind in (torch.Tensor, Span, Letter):
            places.append(f"{name}_ = {name}.{'data_ptr()' if kind is torch.Tensor else 'place'}")
            told.append(f"{name}.dtype, {name}_ & 15")
            values.append(f"{name}_")
        else:
            values.append(name)
        if kind is int:
            told.append(f"1 if {name} == 1 else 2 + ({name} & 15 == 0) + 2 * ({name} > {LARGEST})")
    lines = [f"{', '.join(names)}, = arguments", *places, f"return ({', '.join(told)},), ({', '.join(values)},)"]
    scope: dict[str, Any] = {}
    exec("def look(arguments):\n    " + "\n    ".join(lines), scope)
    look: Look = scope["look"]
    return look


def launched(kernel: Any) -> Launched:
    """A decorator, on top of `triton.jit`, of kernels that the host launches."""
    return Launched(kernel)
