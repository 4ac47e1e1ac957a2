"""Ctrl-C during a fit: once ends it gently, twice at once."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

from vcgmm import Iteration
from vcgmm.cli.errors import INTERRUPTED, parting

NOTICE = "Stopping after this iteration. Ctrl-C again: at once, without a model."

#: Seconds that a second Ctrl-C gives a kernel to come to its end before the process is ended under it.
GRACE = 1.0

_SHOW_CURSOR = "\x1b[?25h"


class GentleStop:
    """A callback that ends a fit after the current iteration once Ctrl-C has been pressed.

    While it is entered, the first interrupt only takes note; the second raises KeyboardInterrupt. Python would
    hear of both only when a kernel that runs in its main thread returns, so another thread listens too: it answers
    the first when it comes, and ends the process if the second has had no effect for a while. Where interrupts are
    ignored, as in jobs that a shell runs in the background, they stay so.

    A KeyboardInterrupt is lost where C calls Python: LLVM does so when it has compiled a kernel, which then counts
    as not compiled, an error that says nothing to a user. So whatever comes out after a second interrupt, an error
    or a result, a KeyboardInterrupt leaves in its place.

    Parameters
    ----------
    quiet : bool
        Say nothing when Ctrl-C is pressed.
    checkpoint : Path, optional
        From which an interrupted fit can go on.
    """

    def __init__(self, quiet: bool, checkpoint: Path | None = None) -> None:
        self.asked = False
        self._quiet = quiet
        self._checkpoint = checkpoint
        self._watch: _Watch | None = None
        self._before: Any = None
        self._report: Callable[[Any], object] = sys.unraisablehook

    def __call__(self, facts: Iteration) -> bool:  # noqa: ARG002 (it stops whatever the iteration was)
        """Whether to stop."""
        return self.asked

    def __enter__(self) -> Self:
        in_charge = threading.current_thread() is threading.main_thread()  # others may not set handlers
        if in_charge and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            self._before = signal.signal(signal.SIGINT, self._note)
            self._report, sys.unraisablehook = sys.unraisablehook, self._unraisable
            self._watch = _Watch(self._quiet, self._checkpoint)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Put back what Ctrl-C did before; after a second one, raise KeyboardInterrupt if nothing has."""
        if self._watch is None:
            return
        try:
            twice = self._watch.end() > 1
        finally:  # one more may come while the thread is waited for
            self._watch = None
            sys.unraisablehook = self._report
            signal.signal(signal.SIGINT, self._before)
        if twice and (error is None or isinstance(error, Exception)):
            raise KeyboardInterrupt from error

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True

    def _unraisable(self, report: Any) -> None:
        """Say nothing of an interrupt that was lost: leaving makes good for it."""
        if not issubclass(report.exc_type, KeyboardInterrupt):
            self._report(report)


class _Watch:
    """A thread that hears of signals when they come, also while a kernel runs."""

    def __init__(self, quiet: bool, checkpoint: Path | None) -> None:
        self._quiet = quiet
        self._checkpoint = checkpoint
        self._heard = 0
        self._over = threading.Event()
        self._ear, self._mouth = socket.socketpair()
        self._mouth.setblocking(False)  # signals do not wait
        self._before = signal.set_wakeup_fd(self._mouth.fileno(), warn_on_full_buffer=False)
        self._thread = threading.Thread(target=self._listen, name="vcgmm-interrupts", daemon=True)
        self._thread.start()

    def end(self) -> int:
        """Stop listening, and tell how many interrupts were heard."""
        self._over.set()
        signal.set_wakeup_fd(self._before)
        self._mouth.close()  # the thread reads what came before, and then that there is no more
        self._thread.join()
        self._ear.close()
        return self._heard

    def _listen(self) -> None:
        while numbers := self._ear.recv(64):
            now = numbers.count(signal.SIGINT)
            if self._heard == 0 and now > 0 and not self._quiet:
                _say(f"\n{NOTICE}\n")
            self._heard += now
            if self._heard > 1 and not self._over.wait(GRACE):
                _leave(parting(self._checkpoint))


def _leave(words: str) -> None:
    """End the process, whatever it is doing; a file that is being written is not in its place yet."""
    _say((_SHOW_CURSOR if os.isatty(2) else "") + f"\n{words}\n")
    os._exit(INTERRUPTED)


def _say(text: str) -> None:
    """Write to stderr past Python's streams, which a display may be using at this moment."""
    with contextlib.suppress(OSError):
        os.write(2, text.encode())
