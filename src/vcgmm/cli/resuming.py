"""`vcgmm fit --resume`, and checkpoints before and after a fit."""

from __future__ import annotations

import contextlib
from pathlib import Path

import typer

from vcgmm.cli.outputs import check_output

#: What may be given with --resume: nothing that the result depends on.
FREE = ("resume", "output", "save_coreset", "force", "threads", "as_json", "quiet", "verbose", "debug")


def check_alone(context: typer.Context) -> None:
    """Refuse DATA and options that a fit which goes on cannot heed.

    Raises
    ------
    typer.BadParameter
    """
    for parameter in context.command.params:
        if parameter.name is not None and parameter.name not in FREE and was_given(context, parameter.name):
            hint = "DATA" if parameter.param_type_name == "argument" else parameter.opts[0]
            raise typer.BadParameter(
                "the fit goes on with the data and the options that it was begun with: with --resume leave this "
                "out. To be chosen anew are --output, --save-coreset, --threads, and what is printed.",
                param_hint=hint,
            )


def was_given(context: typer.Context, name: str) -> bool:
    """Whether an option was given, and is not just its default."""
    source = context.get_parameter_source(name)
    return source is not None and not source.name.startswith("DEFAULT")


def check_checkpoint(checkpoint: Path, output: Path, force: bool, inputs: list[str]) -> None:
    """Refuse a checkpoint that could not be written, or that should not be overwritten.

    Raises
    ------
    typer.BadParameter
    """
    hint = "--checkpoint"
    if checkpoint.resolve() == output.resolve():
        raise typer.BadParameter(f"{checkpoint} is also the output; choose another name.", param_hint=hint)
    if checkpoint.is_file() and not force:
        raise typer.BadParameter(
            f"{checkpoint} exists; go on from it with --resume {checkpoint}, or overwrite it with --force.",
            param_hint=hint,
        )
    check_output(checkpoint, force, hint=hint, inputs=inputs)


def remove(checkpoint: Path) -> None:
    """Remove a checkpoint that has served its purpose; the model is what counts, so a failure does not matter."""
    with contextlib.suppress(OSError):
        checkpoint.resolve().unlink()
