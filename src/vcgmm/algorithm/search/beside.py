"""Compiling beside: another process compiles what E-steps need while a first fit compiles what comes before them.

numba compiles one function at a time, whatever the number of threads, but keeps what it has compiled in files.  So
where E-steps have never been compiled on a machine, a second process takes nearly half of the work, and the first
reads what has come out.  Whatever happens to that process, all that can be lost is time: what it has not compiled
is compiled here, as it would have been.
"""

from __future__ import annotations

import atexit
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numba.core import types

from ...kernels.parts.selection import FEW as FEW_WINNERS
from ...kernels.search.blocked import search_tasks
from ...kernels.search.short_survey import FEATURES, pays
from ...parallel import available_threads
from ..cells.neighbourhoods import FEW

#: What the other process runs: nothing of the program that has called us, nor of the package's first line, which
#: imports all that users may ask for.  Ctrl-C is meant for the program.
PROGRAM = """
import signal
import sys
from types import ModuleType
signal.signal(signal.SIGINT, signal.SIG_IGN)
dtype, n_features, truncation, join, package, *sys.path[:] = sys.argv[1:]
sys.modules["vcgmm"] = vcgmm = ModuleType("vcgmm")
vcgmm.__path__ = [package]
from vcgmm.algorithm.search.first_e_step import first_e_step
first_e_step(dtype, int(n_features), int(truncation), join=join == "join")
"""

#: The folder that the package is in.
PACKAGE = str(Path(__file__).parents[2])

#: Seconds after which it is given up: it takes some ten.
PATIENCE = 300.0

#: The process, while it may run, and what has been looked after: types of points, with or without steps.
_process: subprocess.Popen[bytes] | None = None
_asked: set[tuple[str, bool]] = set()


def begin(dtype: np.dtype[Any], n_features: int, n_clusters: int, truncation: int, n_threads: int) -> bool:
    """Have E-steps over points of a type compiled by another process, unless somebody has compiled them already.

    Where there is one thread or one CPU, a fit compiles all by itself.

    Parameters
    ----------
    dtype : dtype
    n_features, n_clusters, truncation : int
        Kernels are not the same for all of them.
    n_threads : int

    Returns
    -------
    bool
        Whether it was found now that they have yet to be compiled, wherever that is done.
    """
    in_steps = pays(dtype, n_features, truncation)
    if (dtype.name, in_steps) in _asked:
        return False
    _asked.add((dtype.name, in_steps))
    if _is_compiled(search_tasks, dtype, in_steps):
        return False
    if min(n_threads, available_threads()) > 1 and _can_start_python():
        _start(dtype, n_features, truncation, n_clusters > FEW)
    return True


def _start(dtype: np.dtype[Any], n_features: int, truncation: int, join: bool) -> None:
    """Start the other process."""
    global _process
    wait()  # for the one before, of another type
    # It need not be as many of either as there are: beyond these, kernels are the same.
    sizes = min(n_features, FEATURES), min(truncation, FEW_WINNERS + 1)
    what = dtype.name, *map(str, sizes), "join" if join else ""
    try:
        _process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *what, PACKAGE, *sys.path],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    except OSError:
        return  # all is compiled here
    atexit.register(_process.kill)  # which does nothing to one that has ended


def wait() -> None:
    """Wait until the other process has ended, if there is one."""
    global _process
    process = _process
    if process is not None:
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        atexit.unregister(process.kill)
        _process = None


def _is_compiled(kernel: Any, dtype: np.dtype[Any], in_steps: bool) -> bool:
    """Whether a kernel has been compiled for a type, in this process or another; yes where numba does not tell."""
    try:
        signatures = [*kernel.overloads, *(key[0] for key in kernel._cache._cache_file._load_index())]
    except (AttributeError, IndexError, OSError, TypeError):
        return True
    for signature in signatures:
        points, *_ = (kind for kind in signature if getattr(kind, "ndim", 0) == 2)
        # Of no other argument numba knows that it is a bool.
        if points.dtype.name == dtype.name and in_steps == any(
            isinstance(kind, types.Boolean) for kind in signature
        ):
            return True
    return False


def _can_start_python() -> bool:
    """Whether we know of a Python like this one; in programs with one inside, the executable is the program."""
    name = Path(sys.executable or "").name.lower()
    return name.startswith(("python", "pypy")) and not getattr(sys, "frozen", False)
