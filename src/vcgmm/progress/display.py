"""Progress on stderr: a live line per step on a terminal, one plain line per step anywhere else."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, Task, TaskID
from rich.progress import Progress as Display
from rich.table import Column
from rich.text import Text

from .forecast import Forecast, TimeLeft
from .listener import Progress

if TYPE_CHECKING:
    from types import TracebackType

    from .callbacks import Iteration

#: What a step counts; rows where it is not listed. The coreset takes two passes over the data.
UNITS = {"coreset": "rows read", "seeding": "centres", "em": ""}

NAME_WIDTH = 8
BAR_WIDTH = 10
NARROW_BAR_WIDTH = 6
#: Terminals narrower than this get the shorter bar.
WIDE = 100

#: Facts of an iteration in the order in which they are shown …
SHOWN = ("bound", "change", "variance", "active", "left")
#: … and in the order in which they are given room.
IMPORTANT = ("bound", "change", "left", "variance", "active")


def make_console(*, stderr: bool) -> Console:
    """A console that is plain text when it is no terminal, and with NO_COLOR set on a terminal too."""
    if os.environ.get("NO_COLOR"):
        return Console(stderr=stderr, force_terminal=False, no_color=True)
    return Console(stderr=stderr)


class RichProgress(Progress):
    """One line per step: its name, a bar, seconds, the count, and in EM the facts of the last iteration.

    Each step is a Rich display of its own. Rich leaves the last state of a display standing when it stops, so
    finished steps stay visible on a terminal, and a pipe or a log file receives one line per step, without a bar
    and without control characters.

    Parameters
    ----------
    console : rich.console.Console, default=None
        Where to write; None means stderr.
    tol : float, default=0.0
        The tolerance of EM, from which the time left is told; 0 where it is not known.
    every_iteration : bool, default=False
        Also leave a line for every iteration of EM.
    """

    def __init__(self, console: Console | None = None, *, tol: float = 0.0, every_iteration: bool = False) -> None:
        self._console = make_console(stderr=True) if console is None else console
        self._tol = tol
        self._every_iteration = every_iteration
        self._display: Display | None = None
        self._task = TaskID(0)
        self._forecast = Forecast(tol)
        self._last: Iteration | None = None

    def note(self, remark: str) -> None:
        """A line of its own."""
        if remark:
            self._console.print(Text(remark), soft_wrap=True)

    def start(self, step: str, total: int | None = None) -> None:
        """Begin a step of `total` units; a step still open ends as it stands."""
        self._close()
        self._forecast = Forecast(self._tol)
        self._last = None
        one_line = Column(no_wrap=True)
        columns: list[ProgressColumn] = [_Name(), _Seconds(table_column=one_line), _Count(table_column=one_line)]
        if self._console.is_terminal:
            width = BAR_WIDTH if self._console.width >= WIDE else NARROW_BAR_WIDTH
            columns.insert(1, BarColumn(bar_width=width))
        columns.append(_Facts(table_column=one_line))
        self._display = Display(*columns, console=self._console)
        self._task = self._display.add_task(step, total=total, unit=UNITS.get(step, "rows"), facts="")
        self._display.start()

    def advance(self, amount: int = 1) -> None:
        """Count `amount` more units of the current step as done."""
        if self._display is not None:
            self._display.advance(self._task, amount)

    def iteration(self, facts: Iteration) -> None:
        """Show the facts of an EM iteration and count it."""
        if self._display is None:
            return
        task = self._display.tasks[0]
        self._forecast.add(facts)
        self._last = facts
        left = self._forecast.time_left(None if task.total is None else int(task.total))
        self._display.update(self._task, completed=facts.iteration)
        self._display.update(self._task, facts=describe(facts, left, self._room(task)))
        if self._every_iteration:
            line = f"{facts.iteration:>{NAME_WIDTH}} {facts.seconds:6.2f} s {describe(facts)}"
            self._display.console.print(Text(line), soft_wrap=True)

    def finish(self) -> None:
        """End the current step: its bar is full, also where fewer units were needed than allowed."""
        if self._display is not None:
            task = self._display.tasks[0]
            self._display.update(self._task, total=task.completed)
            if self._last is not None:  # no time is left
                self._display.update(self._task, facts=describe(self._last, None, self._room(task)))
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

    def _room(self, task: Task) -> int | None:
        """Characters left for facts in a line of a terminal; any number where lines are not cut."""
        if not self._console.is_terminal:
            return None
        bar = BAR_WIDTH if self._console.width >= WIDE else NARROW_BAR_WIDTH
        others = (NAME_WIDTH, bar, len(_seconds(task)), len(_count(task)))
        return self._console.width - sum(others) - len(others)


class _Name(ProgressColumn):
    """The step."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.description:<{NAME_WIDTH}}")


class _Seconds(ProgressColumn):
    """Seconds since the step began: many steps are over before Rich's own column counts 0:00:01."""

    def render(self, task: Task) -> Text:
        return Text(_seconds(task), style="progress.elapsed")


class _Count(ProgressColumn):
    """Units done, and of how many while the step runs."""

    def render(self, task: Task) -> Text:
        return Text(_count(task), style="progress.download")


class _Facts(ProgressColumn):
    """In EM the facts of the last iteration, where rows are counted their number per second and the time left."""

    def render(self, task: Task) -> Text:
        if task.fields["unit"].startswith("rows") and task.completed and task.elapsed:
            rate = task.completed / task.elapsed
            left = ""
            if task.total is not None and task.completed < task.total:
                left = f"about {duration((task.total - task.completed) / rate)} left, "
            return Text(f"{left}{short_number(rate)} rows/s", style="progress.data.speed")
        return Text(task.fields["facts"])


def _seconds(task: Task) -> str:
    return f"{task.elapsed or 0.0:6.2f} s"


def _count(task: Task) -> str:
    if not task.finished and task.total is not None:
        text = f"{task.completed:,.0f}/{task.total:,.0f}"
    else:
        text = f"{task.completed:,.0f}" if task.completed else ""
    return f"{text} {task.fields['unit']}".strip() if text else ""


def describe(facts: Iteration, left: TimeLeft | None = None, room: int | None = None) -> str:
    """An iteration in words.

    Parameters
    ----------
    facts : Iteration
    left : TimeLeft, optional
    room : int, optional
        The most characters; facts that matter less are left out for it, the bound and its change never.
    """
    pieces = {
        "bound": f"F={facts.bound:.6g}",
        "change": f"change={facts.change:.1e}",
        "variance": f"var={facts.variance:.3g}",
    }
    if facts.active is not None:
        pieces["active"] = f"active={facts.active:,}"
    if left is not None:
        pieces["left"] = f"{'up to' if left.at_most else 'about'} {duration(left.seconds)} left"
    kept: list[str] = []
    for name in IMPORTANT:
        length = sum(len(pieces[other]) + 1 for other in kept) + len(pieces.get(name, ""))
        if name in pieces and (room is None or len(kept) < 2 or length <= room):
            kept.append(name)
    return " ".join(pieces[name] for name in SHOWN if name in kept)


def duration(seconds: float) -> str:
    """A rough length of time, in the unit that suits it."""
    if seconds < 99.5:
        return f"{max(1, round(seconds))} s"
    if seconds < 99.5 * 60:
        return f"{round(seconds / 60)} min"
    return f"{round(seconds / 3600):,} h"


def short_number(value: float) -> str:
    """Three digits and a suffix: 999, 1.23k, 45.6M."""
    for suffix in ("", "k", "M"):
        if value < 999.5:
            return f"{value:.3g}{suffix}"
        value /= 1000
    return f"{value:.3g}G"


def make_progress(verbose: int, tol: float = 0.0) -> Progress:
    """Choose the listener for a verbosity: 0 is silent, 1 a line per step, 2 also a line per iteration of EM."""
    return RichProgress(tol=tol, every_iteration=verbose > 1) if verbose > 0 else Progress()
