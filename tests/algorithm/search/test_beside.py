"""Another process compiles E-steps for a first fit: when it is asked to, and that a fit uses what it compiles."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from vcgmm.algorithm.cells.neighbourhoods import FEW
from vcgmm.algorithm.search import beside
from vcgmm.algorithm.search.first_e_step import first_e_step
from vcgmm.kernels.search.blocked import search_tasks
from vcgmm.kernels.search.short_survey import FEATURES

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)

#: Features, clusters and winners of a fit.
SIZES = 10, 50, 3
compiled_only = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")

#: A fit with a cache of its own: whether another process was asked, and which kernels it had to compile itself.
FIT = """
import sys
import numpy as np
from numba.core import event
from vcgmm import VCGMM
from vcgmm.algorithm.search import beside

class Compiled(event.Listener):
    def on_start(self, event):
        names.append(event.data["dispatcher"].py_func.__name__)
    def on_end(self, event):
        pass

names, started = [], []
event.register("numba:compile", Compiled())
begin = beside.subprocess.Popen
beside.subprocess.Popen = lambda *a, **k: started.append("asked") or begin(*a, **k)
n_features, n_clusters = map(int, sys.argv[1:])
X = np.random.default_rng(0).normal(size=(800, n_features)).astype(np.float32)
VCGMM(n_clusters, init=X[:n_clusters], n_threads=2, random_state=0, verbose=1).fit(X)
print(*started, *names)
"""

#: What no fit is to compile by itself, and what it is.  Lists of neighbours are joined before a fit waits for the
#: other process: whoever comes to them first compiles that.
BESIDE = {"search_tasks", "place_points", "two_nearest", "pair_moves"}
ITSELF = "quick_block_moments"


def fit_with(cache: Path, n_features: int, n_clusters: int) -> tuple[set[str], bool]:
    told = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FIT, str(n_features), str(n_clusters)],
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(told.stdout.split()), "Kernels are compiled first" in told.stderr


@compiled_only
@pytest.mark.skipif(beside.available_threads() < 2, reason="one CPU: nobody is asked")
@pytest.mark.parametrize(("n_features", "n_clusters"), [(3, 6), (FEATURES, FEW + 1)])
def test_what_another_process_compiles_is_what_a_first_fit_uses(
    tmp_path: Path, n_features: int, n_clusters: int
) -> None:
    words, was_told = fit_with(tmp_path, n_features, n_clusters)
    assert {"asked", ITSELF} <= words
    assert not BESIDE & words
    assert was_told
    assert fit_with(tmp_path, n_features, n_clusters) == (set(), False)


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_ctrl_c_is_not_meant_for_the_other_process() -> None:
    first_line, *_, last_line = beside.PROGRAM.strip().splitlines()
    assert (first_line, last_line[:13]) == ("import signal", "first_e_step(")
    program = beside.PROGRAM.replace(last_line, "signal.raise_signal(signal.SIGINT)")
    command = [sys.executable, "-c", program, "float32", "2", "3", "", beside.PACKAGE, *sys.path]
    told = subprocess.run(command, capture_output=True, check=False)
    assert (told.returncode, told.stderr) == (0, b"")


class Started:
    """What stands for a process."""

    def __init__(self, command: list[str], **_options: Any) -> None:
        self.command = command
        self.waited = 0

    def wait(self, _timeout: float | None = None) -> int:
        self.waited += 1
        return 1  # it has failed, which is nobody's concern

    def kill(self) -> None:
        raise AssertionError("it has been waited for")


class Hanging(Started):
    """… and does not end by itself."""

    def wait(self, timeout: float | None = None) -> int:
        if timeout is not None:
            raise subprocess.TimeoutExpired(self.command, timeout)
        assert self.waited == 1  # killed
        return -9

    def kill(self) -> None:
        self.waited += 1


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Started]]:
    """Processes that are started while nothing seems to be compiled."""
    found: list[Started] = []
    monkeypatch.setattr(beside, "_asked", set())
    monkeypatch.setattr(beside, "_process", None)
    monkeypatch.setattr(beside, "available_threads", lambda: 2)
    monkeypatch.setattr(beside, "_is_compiled", lambda *_: False)

    def start(*arguments: Any, **options: Any) -> Started:
        found.append(Started(*arguments, **options))
        return found[-1]

    monkeypatch.setattr(beside.subprocess, "Popen", start)
    yield found
    beside.wait()


def test_a_process_is_started_once_for_each_type_and_waited_for_once(started: list[Started]) -> None:
    beside.wait()  # there is none
    assert [beside.begin(FLOAT32, *SIZES, 2) for _ in range(2)] == [True, False]
    assert len(started) == 1
    assert started[0].command[0] == sys.executable
    assert started[0].command[3:] == ["float32", "10", "3", "", beside.PACKAGE, *sys.path]
    for _ in range(2):
        beside.wait()
    beside.begin(FLOAT64, *SIZES, 2)
    assert [process.waited for process in started] == [1, 0]


def test_a_second_type_waits_for_the_first(started: list[Started]) -> None:
    beside.begin(FLOAT32, *SIZES, 2)
    beside.begin(FLOAT64, *SIZES, 2)
    assert [process.waited for process in started] == [1, 0]


@pytest.mark.parametrize(
    ("sizes", "told"),
    [
        ((1000, 50, 5), [str(FEATURES), "5", ""]),  # wider rows need no other kernels
        ((10, FEW, 100), ["10", "6", ""]),  # nor do more winners
        ((10, FEW + 1, 3), ["10", "3", "join"]),
    ],
)
def test_it_is_told_what_kernels_depend_on(
    started: list[Started], sizes: tuple[int, int, int], told: list[str]
) -> None:
    beside.begin(FLOAT32, *sizes, 2)
    assert started[0].command[4:7] == told


def test_wide_rows_are_looked_after_on_their_own(started: list[Started]) -> None:
    found = [beside.begin(FLOAT32, n_features, 50, 3, 2) for n_features in (10, FEATURES - 1, FEATURES, 10)]
    assert found == [True, False, True, False]
    assert not beside.begin(FLOAT32, FEATURES, 50, 100, 2)  # whose winners are too many for steps


@pytest.mark.parametrize(
    ("executable", "frozen", "n_started"),
    [
        ("/usr/bin/python3.12", False, 1),
        ("/opt/app/viewer", False, 0),
        ("", False, 0),
        (None, False, 0),
        ("/opt/app/python", True, 0),
    ],
)
def test_only_a_python_is_started(
    started: list[Started], monkeypatch: pytest.MonkeyPatch, executable: str | None, frozen: bool, n_started: int
) -> None:
    monkeypatch.setattr(sys, "executable", executable)
    monkeypatch.setattr(sys, "frozen", frozen, raising=False)
    beside.begin(FLOAT32, *SIZES, 2)
    assert len(started) == n_started


def test_a_process_that_hangs_is_given_up(started: list[Started], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside.subprocess, "Popen", Hanging)
    beside.begin(FLOAT32, *SIZES, 2)
    beside.wait()
    assert beside._process is None
    assert not started


def test_with_one_cpu_nobody_is_asked(started: list[Started], monkeypatch: pytest.MonkeyPatch) -> None:
    assert beside.begin(FLOAT64, *SIZES, 1)  # which has to be compiled all the same
    monkeypatch.setattr(beside, "available_threads", lambda: 1)
    assert beside.begin(FLOAT32, *SIZES, 2)
    assert not started


def test_where_none_can_be_started_nothing_is_waited_for(
    started: list[Started], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_arguments: Any, **_options: Any) -> None:
        raise PermissionError("no")

    monkeypatch.setattr(beside.subprocess, "Popen", refused)
    beside.begin(FLOAT32, *SIZES, 2)
    beside.wait()
    assert beside._process is None


@compiled_only
def test_it_is_known_what_has_been_compiled() -> None:
    first_e_step("float32", FEATURES, 3, join=True)
    assert beside._is_compiled(search_tasks, FLOAT32, True)
    assert not beside._is_compiled(search_tasks, np.dtype(np.int32), False)  # of which other arguments are
    assert beside._is_compiled(first_e_step, FLOAT32, True)  # no kernel: as where numba does not tell
