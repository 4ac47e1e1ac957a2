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

from ..kernels.blocked import search_tasks
from ..parallel import available_threads

#: What the other process runs: nothing of the program that has called us.  Ctrl-C is meant for that one.
PROGRAM = """
import signal
import sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.path[:] = sys.argv[2:]
from vcgmm.algorithm.first_e_step import first_e_step
first_e_step(sys.argv[1])
"""

#: Seconds after which it is given up: it takes some ten.
PATIENCE = 300.0

#: The process, while it may run, and types of points that have been looked after.
_process: subprocess.Popen[bytes] | None = None
_asked: set[str] = set()


def begin(dtype: np.dtype[Any], n_threads: int) -> bool:
    """Have E-steps over points of a type compiled by another process, unless somebody has compiled them already.

    Where there is one thread or one CPU, a fit compiles all by itself.

    Returns
    -------
    bool
        Whether it was found now that they have yet to be compiled, wherever that is done.
    """
    if dtype.name in _asked:
        return False
    _asked.add(dtype.name)
    if _is_compiled(search_tasks, dtype):
        return False
    if min(n_threads, available_threads()) > 1 and _can_start_python():
        _start(dtype)
    return True


def _start(dtype: np.dtype[Any]) -> None:
    """Start the other process."""
    global _process
    wait()  # for the one before, of another type
    try:
        _process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, dtype.name, *sys.path],
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


def _is_compiled(kernel: Any, dtype: np.dtype[Any]) -> bool:
    """Whether a kernel has been compiled for a type, in this process or another; yes where numba does not tell."""
    try:
        signatures = [*kernel.overloads, *(key[0] for key in kernel._cache._cache_file._load_index())]
    except (AttributeError, IndexError, OSError, TypeError):
        return True
    tables = ([kind for kind in signature if getattr(kind, "ndim", 0) == 2] for signature in signatures)
    return any(first.dtype.name == dtype.name for first, *_ in tables)  # which are the points


def _can_start_python() -> bool:
    """Whether we know of a Python like this one; in programs with one inside, the executable is the program."""
    name = Path(sys.executable or "").name.lower()
    return name.startswith(("python", "pypy")) and not getattr(sys, "frozen", False)
