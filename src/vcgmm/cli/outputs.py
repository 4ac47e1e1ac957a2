"""Output files: refused before the work where they could not, or should not, be written."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path

import typer


def check_output(
    output: Path, force: bool, suffixes: Sequence[str] = (), *, hint: str = "--output", inputs: Sequence[str] = ()
) -> None:
    """Refuse an output that could not, or should not, be written.

    Parameters
    ----------
    output : Path
    force : bool
        An existing file may be overwritten.
    suffixes : sequence of str
        One of which its name must end in; none: any name will do.
    hint : str
        The option to blame.
    inputs : sequence of str
        Files that are read meanwhile: not even --force replaces those.

    Raises
    ------
    typer.BadParameter
    """

    def refuse(reason: str) -> typer.BadParameter:
        return typer.BadParameter(reason, param_hint=hint)

    if output.is_dir():
        raise refuse(f"{output} is a directory; give the name of a file.")
    if suffixes and output.suffix.lower() not in suffixes:
        raise refuse(f"{output} does not end in a known format: {', '.join(suffixes)}.")
    if not output.parent.is_dir():
        raise refuse(f"the folder {output.parent} does not exist.")
    if output.exists():
        if any(Path(file).exists() and output.samefile(file) for file in inputs):
            raise refuse(f"{output} is also what is read; choose another name.")
        if not force:
            raise refuse(f"{output} exists; overwrite it with --force.")
    if not os.access(output.parent, os.W_OK):
        raise refuse(f"the folder {output.parent} may not be written to.")


def check_picture(output: Path, force: bool, *, inputs: Sequence[str] = ()) -> None:
    """Refuse a picture that could not, or should not, be written; say so where matplotlib is missing."""
    if importlib.util.find_spec("matplotlib") is None:
        raise ImportError("Pictures need matplotlib, which is not installed: pip install vcgmm[plot]")
    from matplotlib.figure import Figure

    formats = sorted(f".{name}" for name in Figure().canvas.get_supported_filetypes())
    check_output(output, force, formats, inputs=inputs)
