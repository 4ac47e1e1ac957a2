"""What a fit tells while it runs: the facts a callback receives, and progress lines on stderr."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, Task, TaskID, TextColumn
from rich.progress import Progress as Display
from rich.table import Column
from rich.text import Text

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self


@dataclass(frozen=True)
class Iteration:
    """What a callback receives after each EM iteration.

    Attributes
    ----------
    iteration : int
        The number of the iteration, from 1.
    bound : float
        The objective F, a lower bound of the (weighted) log-likelihood.
    change : float
        Relative change |ΔF/F| to the iteration before; infinite at the first.
    variance : float
        The variance σ² the bound was evaluated with.
    seconds : float
        Wall time since the fit began.
    """

    iteration: int
    bound: float
    change: float
    variance: float
    seconds: float


Callback = Callable[[Iteration], bool | None]
"""Called after each iteration; stops the fit by returning True."""


class Progress:
    """A listener to the steps of a fit; this one says nothing.

    A fit names a step with `start`, counts with `advance` (or, in EM, with `iteration`), and ends it with
    `finish`. As a context manager it also closes the display when an exception passes through.
    """

    def start(self, step: str, total: int | None = None) -> None:
        """Begin a step of `total` units; None where the number is not known."""

    def advance(self, amount: int = 1) -> None:
        """Count `amount` more units of the current step as done."""

    def iteration(self, facts: Iteration) -> None:
        """One EM iteration ended; it counts as one unit, without `advance`."""

    def finish(self) -> None:
        """End the current step, whether or not all its units were counted."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the display; an open step is left as far as it came."""


class RichProgress(Progress):
    """One line per step: its name, a bar, seconds, the count, and in EM the facts of the last iteration.

    Each step is a Rich display of its own. Rich leaves the last state of a display standing when it stops, so
    finished steps stay visible on a terminal, and a pipe or a log file receives one line per step and no
    control characters.

    Parameters
    ----------
    console : rich.console.Console, default=None
        Where to write; None means stderr.
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console = Console(stderr=True) if console is None else console
        self._display: Display | None = None
        self._task = TaskID(0)

    def start(self, step: str, total: int | None = None) -> None:
        """Begin a step of `total` units; a step still open ends as it stands."""
        self._close()
        self._display = Display(
            TextColumn("{task.description:<8}"),
            BarColumn(bar_width=10),
            _Seconds(table_column=Column(no_wrap=True)),
            _Count(table_column=Column(no_wrap=True)),
            TextColumn("{task.fields[facts]}", table_column=Column(no_wrap=True)),
            console=self._console,
        )
        self._task = self._display.add_task(step, total=total, facts="")
        self._display.start()

    def advance(self, amount: int = 1) -> None:
        """Count `amount` more units of the current step as done."""
        if self._display is not None:
            self._display.advance(self._task, amount)

    def iteration(self, facts: Iteration) -> None:
        """Show the facts of an EM iteration and count it."""
        if self._display is not None:
            self._display.update(self._task, completed=facts.iteration, facts=_describe(facts))

    def finish(self) -> None:
        """End the current step: its bar is full, also where fewer units were needed than allowed."""
        if self._display is not None:
            self._display.update(self._task, total=self._display.tasks[0].completed)
        self._close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the display; an open step is left as far as it came."""
        self._close()

    def _close(self) -> None:
        if self._display is not None:
            self._display.stop()
            self._display = None


class _Seconds(ProgressColumn):
    """Seconds since the step began: many steps are over before Rich's own column counts 0:00:01."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.elapsed or 0.0:6.2f} s", style="progress.elapsed")


class _Count(ProgressColumn):
    """Units done, and of how many while the step runs."""

    def render(self, task: Task) -> Text:
        if not task.finished and task.total is not None:
            text = f"{task.completed:,.0f}/{task.total:,.0f}"
        else:
            text = f"{task.completed:,.0f}" if task.completed else ""
        return Text(text, style="progress.download")


def _describe(facts: Iteration) -> str:
    """Put the facts into 42 characters, so that the whole line fits a terminal of 80."""
    return f"F={facts.bound:.6g} change={facts.change:.1e} var={facts.variance:.3g}"


def make_progress(verbose: int) -> Progress:
    """Choose the listener for a verbosity: 0 is silent, anything above shows progress lines."""
    return RichProgress() if verbose > 0 else Progress()


def check_callbacks(callbacks: Callback | Sequence[Callback] | None) -> tuple[Callback, ...]:
    """Bring the `callbacks` argument of an estimator into one form.

    Parameters
    ----------
    callbacks : callable, sequence of callables, or None
        What the user gave.

    Returns
    -------
    tuple of callables
        Empty for None.

    Raises
    ------
    TypeError
        If it is anything else.
    """
    if callbacks is None:
        return ()
    if callable(callbacks):
        return (callbacks,)
    remedy = "give None, a function that takes an Iteration, or a list of such functions"
    if not isinstance(callbacks, Sequence) or isinstance(callbacks, str | bytes):
        raise TypeError(f"callbacks={callbacks!r} is not callable: {remedy}.")
    for position, callback in enumerate(callbacks):
        if not callable(callback):
            raise TypeError(f"callbacks[{position}]={callback!r} is not callable: {remedy}.")
    return tuple(callbacks)
