"""The command line: a thin layer over the public API. One file a command, added to `app` below."""

from __future__ import annotations

from typing import Annotated

import typer

from vcgmm._version import __version__
from vcgmm.cli import demo

app = typer.Typer(
    name="vcgmm",
    help="Gaussian mixtures with very many components.",
    no_args_is_help=True,
    add_completion=False,
    # A traceback with all local variables would print whole arrays.
    pretty_exceptions_show_locals=False,
)
app.command("demo")(demo.run)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"vcgmm {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Gaussian mixtures with very many components."""


def main() -> None:
    """Run the command line: exit code 0 for success, 1 for a failure, 2 for a mistake in the arguments."""
    app(prog_name="vcgmm")
