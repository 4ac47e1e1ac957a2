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

from vcgmm.algorithm import beside
from vcgmm.algorithm.first_e_step import first_e_step
from vcgmm.kernels.blocked import search_tasks

FLOAT32 = np.dtype(np.float32)
compiled_only = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")

#: A fit with a cache of its own: which kernels it had to compile itself, and whether another process was asked.
FIT = """
import numpy as np
from numba.core import event
from vcgmm import VCGMM
from vcgmm.algorithm import beside

class Compiled(event.Listener):
    def on_start(self, event):
        names.append(event.data["dispatcher"].py_func.__name__)
    def on_end(self, event):
        pass

names, started = [], []
event.register("numba:compile", Compiled())
begin = beside.subprocess.Popen
beside.subprocess.Popen = lambda *a, **k: started.append(1) or begin(*a, **k)
X = np.random.default_rng(0).normal(size=(400, 3)).astype(np.float32)
VCGMM(6, init=X[:6], n_threads=2, random_state=0, verbose=1).fit(X)
print(len(started), "search_tasks" in names, "quick_block_moments" in names)
print(beside._is_compiled(beside.search_tasks, np.dtype("float64")))
"""


def fit_with(cache: Path) -> tuple[list[str], bool]:
    told = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FIT],
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        check=True,
    )
    return told.stdout.split(), "Kernels are compiled first" in told.stderr


@compiled_only
@pytest.mark.skipif(beside.available_threads() < 2, reason="one CPU: nobody is asked")
def test_what_another_process_compiles_is_what_a_first_fit_uses(tmp_path: Path) -> None:
    assert fit_with(tmp_path) == (["1", "False", "True", "False"], True)  # of E-steps nothing was left to compile
    assert fit_with(tmp_path) == (["0", "False", "False", "False"], False)


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_ctrl_c_is_not_meant_for_the_other_process() -> None:
    program = beside.PROGRAM.replace("first_e_step(sys.argv[1])", "signal.raise_signal(signal.SIGINT)")
    assert "raise_signal" in program
    command = [sys.executable, "-c", program, "float32", *sys.path]
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
    assert [beside.begin(FLOAT32, 2) for _ in range(2)] == [True, False]
    assert [process.command[3] for process in started] == ["float32"]
    assert started[0].command[0] == sys.executable
    assert started[0].command[4:] == sys.path
    for _ in range(2):
        beside.wait()
    beside.begin(np.dtype(np.float64), 2)
    assert [process.waited for process in started] == [1, 0]


def test_a_second_type_waits_for_the_first(started: list[Started]) -> None:
    beside.begin(FLOAT32, 2)
    beside.begin(np.dtype(np.float64), 2)
    assert [process.waited for process in started] == [1, 0]


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
    beside.begin(FLOAT32, 2)
    assert len(started) == n_started


def test_a_process_that_hangs_is_given_up(started: list[Started], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside.subprocess, "Popen", Hanging)
    beside.begin(FLOAT32, 2)
    beside.wait()
    assert beside._process is None
    assert not started


def test_with_one_cpu_nobody_is_asked(started: list[Started], monkeypatch: pytest.MonkeyPatch) -> None:
    assert beside.begin(np.dtype(np.float64), 1)  # which has to be compiled all the same
    monkeypatch.setattr(beside, "available_threads", lambda: 1)
    assert beside.begin(FLOAT32, 2)
    assert not started


def test_where_none_can_be_started_nothing_is_waited_for(
    started: list[Started], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_arguments: Any, **_options: Any) -> None:
        raise PermissionError("no")

    monkeypatch.setattr(beside.subprocess, "Popen", refused)
    beside.begin(FLOAT32, 2)
    beside.wait()
    assert beside._process is None


@compiled_only
def test_it_is_known_what_has_been_compiled() -> None:
    first_e_step("float32")
    assert beside._is_compiled(search_tasks, FLOAT32)
    assert not beside._is_compiled(search_tasks, np.dtype(np.int32))  # of which other arguments are
    assert beside._is_compiled(first_e_step, FLOAT32)  # no kernel: as where numba does not tell
