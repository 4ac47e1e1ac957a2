"""Ctrl-C during a fit: once ends it gently, twice at once."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self

from vcgmm import Iteration


class GentleStop:
    """A callback that ends a fit after the current iteration once Ctrl-C has been pressed.

    While it is entered, the first interrupt only takes note; the second raises KeyboardInterrupt. Where interrupts
    are ignored, as in jobs that a shell runs in the background, they stay so.

    Parameters
    ----------
    quiet : bool
        Say nothing when Ctrl-C is pressed.
    """

    def __init__(self, quiet: bool) -> None:
        self.asked = False
        self._quiet = quiet
        self._before: Any = None

    def __call__(self, facts: Iteration) -> bool:  # noqa: ARG002 (it stops whatever the iteration was)
        """Whether to stop."""
        return self.asked

    def __enter__(self) -> Self:
        in_charge = threading.current_thread() is threading.main_thread()  # others may not set handlers
        if in_charge and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Put back what Ctrl-C did before."""
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            self._before = None

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        if not self._quiet:
            # Past Python's streams: a handler may run while one of them is being written to.
            with contextlib.suppress(OSError):
                os.write(2, b"\nStopping after this iteration. Ctrl-C again: at once, without a model.\n")
