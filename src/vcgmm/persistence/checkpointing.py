"""When checkpoints are written, and what happens when that fails."""

from __future__ import annotations

import os
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from ..algorithm.snapshot import Snapshot
from ..progress import History
from .checkpoint import Origin, save_checkpoint
from .container import TYPES, kind_of

#: At least so many times as long as the last write took passes before the next: writing takes a tenth of the time
#: at most, however large the coreset is.
PATIENCE = 9.0


def check_checkpoint(path: object, dtype: np.dtype[Any]) -> str:
    """A path to write checkpoints of a fit to rows of a type to, checked before the work begins.

    Raises
    ------
    ValueError
        If it is no path, could not be written, or is a file that is no checkpoint and should not be replaced; if
        a file cannot hold the rows.
    """
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str) or not os.fspath(path):
        raise ValueError(f"checkpoint={path!r} is not valid: give the name of a file, or None.")
    name: str = os.fspath(path)
    final = Path(os.path.realpath(name))
    if not final.parent.is_dir():
        raise ValueError(f"checkpoint={name!r} cannot be written: the folder {final.parent} does not exist.")
    if not os.access(final.parent, os.W_OK):
        raise ValueError(f"checkpoint={name!r} cannot be written: the folder {final.parent} is write-protected.")
    if final.exists() and (not final.is_file() or kind_of(final) != "checkpoint"):
        raise ValueError(f"checkpoint={name!r} exists and is no checkpoint: choose another name, or remove it.")
    if dtype.name not in TYPES:
        raise ValueError(
            f"X has the dtype {dtype}, which a checkpoint cannot hold: convert it to float64 first, or set "
            f"checkpoint=None."
        )
    return name


class Checkpointing:
    """Writes snapshots of one fit to one file, each in the place of the one before.

    A write that fails costs nothing but itself: the file stays as it was, a warning says so, once until a write
    succeeds again, and the fit goes on.

    Parameters
    ----------
    path : path-like
    every : float
        Seconds between two writes, counted from the end of the last; 0: every snapshot is written.
    origin : Origin
    history : History
        Has been told of an iteration before its snapshot comes.
    """

    def __init__(self, path: str | os.PathLike[str], every: float, origin: Origin, history: History) -> None:
        self.path = Path(path).resolve()  # wherever the process goes meanwhile
        self.every = every
        self._origin = origin
        self._history = history
        self._next = time.monotonic() + every
        self._failing = False

    def __call__(self, snapshot: Snapshot, now: bool) -> None:
        """Write a snapshot, if it is time or must be now."""
        begun = time.monotonic()
        if begun < self._next and not now:
            return
        try:
            save_checkpoint(self.path, self._origin, self._history.told(), snapshot)
            self._failing = False
        except OSError as error:
            if not self._failing:
                warnings.warn(
                    f"The checkpoint {self.path} could not be written ({error}). The fit goes on, and will try "
                    f"again.",
                    RuntimeWarning,
                    stacklevel=2,
                )
            self._failing = True
        end = time.monotonic()
        self._next = end + max(self.every, PATIENCE * (end - begun)) if self.every > 0 else end
