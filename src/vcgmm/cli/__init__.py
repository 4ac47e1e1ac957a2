"""The command line: a thin layer over the public API. One file a command, added to `app` below."""

from __future__ import annotations

from typing import Annotated

import typer

from vcgmm._version import __version__
from vcgmm.cli import coreset, demo, export, fit, info, merge, plot, predict, score

app = typer.Typer(
    name="vcgmm",
    no_args_is_help=True,
    # A traceback with all local variables would print whole arrays.
    pretty_exceptions_show_locals=False,
)
for _name, _command in {
    "fit": fit,
    "predict": predict,
    "score": score,
    "coreset": coreset,
    "merge": merge,
    "info": info,
    "plot": plot,
    "export": export,
    "demo": demo,
}.items():
    app.command(_name, epilog=_command.EXAMPLE)(_command.run)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"vcgmm {__version__}")
        raise typer.Exit


@app.callback(
    epilog="Exit codes: 0 done, 1 failed, 2 a mistake in the arguments, 130 interrupted. Tab completion: "
    "vcgmm --install-completion."
)
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Gaussian mixtures with very many components: millions of rows into thousands of clusters."""


def main() -> None:
    """Run the command line: exit code 0 for success, 1 for a failure, 2 for a mistake in the arguments."""
    app(prog_name="vcgmm")
