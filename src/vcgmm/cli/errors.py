"""Errors as one line on stderr, and exit codes.

0: done. 1: failed. 2: a mistake in the arguments. 130: interrupted. What Typer raises for itself passes through.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import typer

from vcgmm.validation import DeviceError

P = ParamSpec("P")
R = TypeVar("R")

FAILED = 1
INTERRUPTED = 130  # 128 + SIGINT, as shells have it

NOTHING_WRITTEN = "Interrupted: nothing was written."
NO_MODEL = "Interrupted: no model was written. Go on with: vcgmm fit --resume {} -o MODEL"

#: What a user's mistake, or a missing file or package, raises; its text says what to do.
EXPECTED = (ValueError, TypeError, OSError, ImportError, MemoryError, DeviceError)


def parting(checkpoint: Path | None) -> str:
    """What to say of an interrupted fit."""
    return NO_MODEL.format(checkpoint) if checkpoint is not None and checkpoint.is_file() else NOTHING_WRITTEN


@contextmanager
def ended_early(checkpoint: Path | None) -> Iterator[None]:
    """Say how to go on with a fit that is interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(parting(checkpoint), err=True)
        raise typer.Exit(INTERRUPTED) from None


def guarded(command: Callable[P, R]) -> Callable[P, R]:
    """Make a command end with one line and an exit code where it would end with a traceback.

    Parameters
    ----------
    command : callable
        Its keyword `debug` lets tracebacks through, its keyword `quiet` silences warnings.
    """

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            with warnings.catch_warnings():
                if kwargs.get("quiet"):
                    warnings.simplefilter("ignore")
                warnings.showwarning = _show_warning
                return command(*args, **kwargs)
        except (typer.Exit, typer.Abort, typer.BadParameter, BrokenPipeError):
            raise
        except KeyboardInterrupt:
            typer.echo(NOTHING_WRITTEN, err=True)
            raise typer.Exit(INTERRUPTED) from None
        except Exception as error:
            if kwargs.get("debug"):
                raise
            typer.echo(f"Error: {explain(error)}", err=True)
            raise typer.Exit(FAILED) from None

    return run


def explain(error: Exception) -> str:
    """An exception in one line."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'a file'}: {error.strerror}."
    text = " ".join(str(error).split())
    if isinstance(error, MemoryError) and "Use " not in text:  # else it says what to do
        return f"there is not enough memory ({text or 'no details'}). Take a smaller coreset or fewer threads."
    if isinstance(error, EXPECTED) and text:
        return text
    return f"{type(error).__name__}: {text or 'no details'}. Run it again with --debug to see where."


def _show_warning(message: Warning | str, *_place: Any, **_file: Any) -> None:
    """A warning as one line, without the place in the code that Python would add."""
    typer.echo(f"Warning: {' '.join(str(message).split())}", err=True)
