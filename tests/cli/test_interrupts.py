"""Ctrl-C, in a real process."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from vcgmm import VCGMM, Iteration
from vcgmm.cli import interrupts
from vcgmm.cli.errors import INTERRUPTED
from vcgmm.cli.interrupts import GentleStop

FACTS = Iteration(1, -1.0, 1.0, 1.0, 1.0)


def start(folder: Path, *options: str) -> subprocess.Popen[str]:
    np.save(folder / "rows.npy", np.random.default_rng(0).normal(size=(500, 3)))
    command = ["fit", "rows.npy", "-k", "20", "-o", "model.vcgmm", "--threads", "1", "--json", *options]
    return subprocess.Popen(
        [sys.executable, "-m", "vcgmm", *command],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(process: subprocess.Popen[str], beginning: str) -> None:
    """Read the process's stderr up to a line that begins like this."""
    assert process.stderr is not None
    for line in process.stderr:
        if line.strip().startswith(beginning):
            return
    raise AssertionError(f"no line began with {beginning!r}")


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_once_saves_what_there_is(tmp_path: Path) -> None:
    # It never converges: only the interrupt ends it.
    process = start(tmp_path, "--tol", "0", "--max-iter", "100000000", "-v")
    try:
        wait_for(process, "3 ")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode == 0, err
    assert "Stopping after this iteration" in err
    facts = json.loads(out)
    assert (facts["stopped"], facts["converged"]) == (True, False)
    model = VCGMM.load(tmp_path / "model.vcgmm")
    assert not model.converged_
    assert model.n_iter_ == facts["n_iter"] >= 3
    assert len(model.predict(np.zeros((1, 3)))) == 1


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_twice_stops_at_once(tmp_path: Path) -> None:
    # Warming up comes before the first iteration, so the first interrupt ends nothing.
    process = start(tmp_path, "--n-warmup", "100000000")
    try:
        wait_for(process, "seeding")
        process.send_signal(signal.SIGINT)
        wait_for(process, "Stopping after this iteration")
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode == INTERRUPTED, err
    assert out == ""
    assert "Interrupted: nothing was written." in err
    assert "Traceback" not in err
    assert [file.name for file in tmp_path.iterdir()] == ["rows.npy"]


BUSY = """
import hashlib, os, signal, sys, threading
from vcgmm.cli.interrupts import GentleStop
def press():
    for _ in range(2):
        os.kill(os.getpid(), signal.SIGINT)
        os.read(0, 1)
with GentleStop(quiet=False):
    threading.Thread(target=press, daemon=True).start()
    hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 2_000_000_000)  # an hour without a look at Python
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_twice_stops_at_once_also_inside_of_a_kernel() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", BUSY],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        # The first is answered while the kernel runs.
        wait_for(process, "Stopping after this iteration")
        assert process.poll() is None
        _, err = process.communicate("x", timeout=300)
    finally:
        process.kill()
    assert process.returncode == INTERRUPTED, err
    assert "Interrupted: nothing was written." in err


def test_the_first_is_noted_the_second_raises(capfd: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGINT)
    report = sys.unraisablehook
    stop = GentleStop(quiet=False)

    def press_twice() -> None:
        with stop:
            assert not stop(FACTS)
            signal.raise_signal(signal.SIGINT)
            assert stop.asked
            assert stop(FACTS)
            signal.raise_signal(signal.SIGINT)
            raise AssertionError("the second raised nothing")

    with pytest.raises(KeyboardInterrupt) as raised:
        press_twice()
    assert raised.value.__cause__ is None
    assert sys.unraisablehook is report
    assert signal.getsignal(signal.SIGINT) is before
    assert signal.set_wakeup_fd(-1) == -1
    assert "Ctrl-C again" in capfd.readouterr().err


@ctypes.CFUNCTYPE(None)
def lose_an_interrupt() -> None:
    """As LLVM calls Python when it has compiled a kernel: no exception leaves it."""
    signal.raise_signal(signal.SIGINT)
    raise AssertionError("it raised nothing")


@ctypes.CFUNCTYPE(None)
def lose_two_interrupts() -> None:
    for _ in range(2):
        signal.raise_signal(signal.SIGINT)
    raise AssertionError("the second raised nothing")


@pytest.mark.parametrize("error", [RuntimeError("no compiled object yet"), SystemError("error return"), None])
def test_interrupts_that_are_lost_on_their_way_count(
    error: Exception | None, capfd: pytest.CaptureFixture[str]
) -> None:
    def fit() -> None:
        with GentleStop(quiet=True):
            lose_two_interrupts()
            if error is not None:
                raise error

    with pytest.raises(KeyboardInterrupt) as raised:
        fit()
    assert raised.value.__cause__ is error
    assert capfd.readouterr().err == ""


def test_an_interrupt_counts_that_comes_while_the_first_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, may_end = threading.Event(), threading.Event()
    monkeypatch.setattr(interrupts, "_say", lambda _: begun.set() or may_end.wait(60))

    def fit() -> None:
        with GentleStop(quiet=False):
            signal.raise_signal(signal.SIGINT)
            assert begun.wait(60)
            lose_an_interrupt()
            threading.Timer(0.1, may_end.set).start()  # the fit is left before

    with pytest.raises(KeyboardInterrupt):
        fit()


def test_all_is_put_back_where_leaving_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    before, report = signal.getsignal(signal.SIGINT), sys.unraisablehook
    end = interrupts._Watch.end

    def end_and_press(watch: interrupts._Watch) -> int:
        end(watch)
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("it raised nothing")

    monkeypatch.setattr(interrupts._Watch, "end", end_and_press)

    def fit() -> None:
        with GentleStop(quiet=True):
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        fit()
    assert (signal.getsignal(signal.SIGINT), sys.unraisablehook) == (before, report)


def test_after_one_interrupt_errors_stay_what_they_are() -> None:
    def fit() -> None:
        with GentleStop(quiet=True):
            signal.raise_signal(signal.SIGINT)
            raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        fit()


@ctypes.CFUNCTYPE(None)
def fail() -> None:
    raise RuntimeError("mine")


def test_other_exceptions_that_cannot_be_raised_are_told() -> None:
    told = []
    before, sys.unraisablehook = sys.unraisablehook, lambda report: told.append(str(report.exc_value))
    try:
        with GentleStop(quiet=True):
            fail()
    finally:
        sys.unraisablehook = before
    assert told == ["mine"]


def test_quietly(capfd: pytest.CaptureFixture[str]) -> None:
    with GentleStop(quiet=True) as stop:
        signal.raise_signal(signal.SIGINT)
    assert stop.asked
    assert capfd.readouterr().err == ""


def test_jobs_in_the_background_stay_deaf() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with GentleStop(quiet=True) as stop:
            signal.raise_signal(signal.SIGINT)
            assert not stop.asked
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_set_no_handlers() -> None:
    before = signal.getsignal(signal.SIGINT)
    seen = []

    def use() -> None:
        with GentleStop(quiet=True) as stop:
            seen.append((signal.getsignal(signal.SIGINT), stop(FACTS)))

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert seen == [(before, False)]
