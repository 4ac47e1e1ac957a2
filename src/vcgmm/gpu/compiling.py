"""A fit whose kernels have yet to be compiled says so, once the first of them has been.

Which ones it will need is not known before.  Triton tells of each when it is done, or was found in files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import triton

COMPILING = (
    "The GPU's kernels are compiled first, for up to half a minute: once for each installation, "
    "precision and kind of data."
)

#: Who has asked to be told and was not, in all fits that run at the same time.
_asking: list[Callable[[str], None]] = []


class Listener:
    """What Triton calls after a kernel has been compiled or found.

    Parameters
    ----------
    before : callable or None
        Whom it would have called, and calls still.
    """

    def __init__(self, before: Callable[..., None] | None) -> None:
        self.before = before

    def __call__(self, *, cache_hit: bool, **facts: Any) -> None:
        """Whether a kernel was found, and other facts."""
        if self.before is not None:
            self.before(cache_hit=cache_hit, **facts)
        while not cache_hit and _asking:
            try:
                note = _asking.pop()
            except IndexError:  # another thread has told them
                break
            note(COMPILING)


@contextmanager
def told_of_compiling(note: Callable[[str], None]) -> Iterator[None]:
    """Meanwhile, the first kernel that is compiled is told of; Triton goes on to tell us, and nobody is.

    Parameters
    ----------
    note : callable
        Given a remark, once, if at all.
    """
    knobs = getattr(triton, "knobs", None)
    if knobs is None:  # a Triton that does not tell
        yield
        return
    if not isinstance(knobs.compilation.listener, Listener):
        knobs.compilation.listener = Listener(knobs.compilation.listener)
    _asking.append(note)
    try:
        yield
    finally:
        with suppress(ValueError):
            _asking.remove(note)
