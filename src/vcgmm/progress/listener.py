"""The listener to a fit that says nothing, and by its methods what any listener can hear."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from .callbacks import Iteration


class Progress:
    """A listener to the steps of a fit; this one says nothing.

    A fit names a step with `start`, counts with `advance` (or, in EM, with `iteration`), and ends it with
    `finish`. As a context manager it also closes the display when an exception passes through.
    """

    def note(self, remark: str) -> None:
        """Something to be known, before the first step or as it turns out; an empty remark is none."""

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
