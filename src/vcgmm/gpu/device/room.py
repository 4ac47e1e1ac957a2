"""Memory that one step after the other works in, and launches that are prepared once for all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch

from ..spans import Letter
from .arena import empty, letter

T = TypeVar("T")

#: A step that is the same again has no more than so many launches; beyond, all are forgotten.
MOST_PREPARED = 64


class Room:
    """Where a step finds its memory.

    To ask the allocator takes the host longer than many a kernel takes the device, and so does a look at all
    arguments of a launch.  A room that keeps gives the same memory again: where all of a step's tensors are those
    of one before, so are its launches.

    Parameters
    ----------
    device : torch.device
    keeps : bool
        Else memory is new every time, and free for others in between.

    Attributes
    ----------
    turn : int
        0 or 1, in turn: what is still looked at during the next step is asked for by it.
    """

    def __init__(self, device: torch.device, *, keeps: bool = False) -> None:
        self.keeps = keeps
        self.turn = 0
        self._device = device
        self._kept: dict[Any, Any] = {}
        self._prepared: dict[Any, tuple[Any, Any]] = {}

    def __call__(self, name: Any, shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """Memory of any contents: the same again where a name is asked for again, of which it must be one kind."""
        found: torch.Tensor | None = self._kept.get(name)
        if found is None:
            found = empty(shape, dtype, self._device)
            if self.keeps:
                self._kept[name] = found
        return found

    def letter(self, name: Any, shape: tuple[int, ...], dtype: torch.dtype) -> Letter | None:
        """Likewise memory that the host is told by; None where it is told by copies."""
        found = self._kept.get(name)
        if found is None:
            made = letter(shape, dtype, self._device)
            found = made if type(made) is Letter else None
            if self.keeps and found is not None:
                self._kept[name] = found
        return found

    def again(self, prepare: Callable[..., T], *given: Any) -> T:
        """What prepare(room, *given) gives, or gave when it was given the same objects.

        It must not keep the room, nor whoever has it.
        """
        if not self.keeps:
            return prepare(self, *given)
        key = (prepare, *map(id, given))
        found = self._prepared.get(key)
        if found is None:
            if len(self._prepared) >= MOST_PREPARED:
                self._prepared.clear()
            found = self._prepared[key] = (
                prepare(self, *given),
                given,
            )  # which keep their ids as long as they are here
        result: T = found[0]
        return result
