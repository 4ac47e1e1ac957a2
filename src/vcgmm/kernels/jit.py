"""How every kernel is compiled: cached on disk, without the GIL, one specialisation per dtype.

Kernels never start threads.  `vcgmm.parallel` runs them on Python threads, which the released GIL lets work at
the same time, so there is no threading layer to choose and two fits may run in one process.

What compiling costs: for every function numba also makes the way in from Python, which takes apart all arguments
and may be longer than the function itself.  A `part`, which only kernels call, does without, and is made machine
code only where it is called (`compiling`).

A literal number as an argument is a type of its own to numba, and has the callee compiled once more: between
kernels 0 is passed as int(np.int64(0)).  Arrays are copied by loops: a slice assigned to a slice brings in all
that the message about unequal lengths might need.  np.zeros and np.full are functions of numba's own, compiled for
every type and shape: an empty array that is filled costs half as much.  A flag that is True or None, not False, is
a type too, and what stands behind it is left out of the kernel for those who say None.

A sum of floats has a loop of its own, which writes to no array.  LLVM vectorises a loop that reads one array and
writes to another behind a check that they do not lie too near each other, which arrays of few bytes do now and
then, and adds up one by one where they do: the same sum with other last bits.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache, cached_property, update_wrapper
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar, cast

import numba
from numba import types
from numba.extending import typeof_impl

try:
    from .compiling import KernelCompiler, PartCompiler
except (ImportError, AttributeError):  # a numba whose insides are others: all is compiled in its own way
    _COMPILERS: tuple[dict[str, Any], dict[str, Any]] = {}, {}
else:
    _COMPILERS = {"pipeline_class": KernelCompiler}, {"pipeline_class": PartCompiler}

Function = TypeVar("Function", bound=Callable[..., object])

#: Lets LLVM vectorise sums; NaN and infinity keep their meaning.
FAST = {"contract", "reassoc", "nsz", "arcp"}

#: What all have in common.  Nobody asks for their addresses in C.
_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "cache": True,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
    **_COMPILERS[0],
}

#: … and what is different for those that only kernels call: they are in the kernels' files, and need none.
_PART_OPTIONS: dict[str, Any] = {"cache": False, "no_cpython_wrapper": True, **_COMPILERS[1]}


def kernel(function: Function) -> Function:
    """Compile a kernel whose float sums may be reordered by the compiler (always in the same way)."""
    return cast("Function", _compiled(function, fastmath=FAST))


def strict_kernel(function: Function) -> Function:
    """Compile a kernel in which every float operation happens exactly as written.

    Said outright: left unset, a function takes over the fastmath flags of the one that calls it.
    """
    return cast("Function", _compiled(function, fastmath=False))


def part(function: Function) -> Function:
    """`kernel` for what only kernels call."""
    return cast("Function", _part(function, fastmath=FAST))


def strict_part(function: Function) -> Function:
    """`strict_kernel` for what only kernels call."""
    return cast("Function", _part(function, fastmath=False))


def _compiled(function: Callable[..., object], **options: Any) -> Any:
    compiled = cast("Any", numba).njit(**{**_OPTIONS, **options})(function)
    file: Any = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if hasattr(file, "_source_stamp"):  # else it is not compiled, not kept, or kept in another way
        with suppress(OSError):
            file._source_stamp = file._source_stamp, _state_of_all_files()
    return compiled


@cache
def _state_of_all_files() -> tuple[tuple[str, int, int], ...]:
    """What the files of kernels were like: place, time and size of each.

    numba compiles a kernel anew where its own file is another than when it was compiled.  It is to be compiled
    anew as well where a part has changed that it calls, which mostly is in another file.
    """
    folder = Path(__file__).parent
    files = [(path.relative_to(folder).as_posix(), path.stat()) for path in sorted(folder.rglob("*.py"))]
    return tuple((place, state.st_mtime_ns, state.st_size) for place, state in files)


def _part(function: Callable[..., object], **options: Any) -> Any:
    if cast("Any", numba.config).DISABLE_JIT:
        return function
    return Part(cast("FunctionType", function), options)


class Part:
    """A function that kernels call, compiled without a way in from Python.

    Whoever calls it from Python, as tests do, is given another version of it, which is compiled then.

    Parameters
    ----------
    function : function
    options : dict
        Of numba.njit, beside what all kernels have in common.
    """

    def __init__(self, function: FunctionType, options: dict[str, Any]) -> None:
        self.py_func = function
        self.options = options
        self.inner = _compiled(function, **_PART_OPTIONS, **options)
        update_wrapper(self, function)

    @cached_property
    def outer(self) -> Any:
        """The version for Python; under a name of its own in the cache."""
        copy = FunctionType(self.py_func.__code__, self.py_func.__globals__, self.py_func.__name__)
        copy.__qualname__ = f"{self.py_func.__qualname__}_from_python"
        copy.__module__ = self.py_func.__module__
        return _compiled(copy, **self.options)

    def __call__(self, *arguments: Any) -> Any:
        """From Python."""
        return self.outer(*arguments)


@typeof_impl.register(Part)
def _type_of_part(value: Part, _context: Any) -> types.Dispatcher:
    """To a kernel that calls it, a part is what has been compiled for kernels."""
    return types.Dispatcher(value.inner)
