"""Arguments and options that several commands share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated

import typer

RUNNING = "Running"
WRITING = "Writing"

ROWS = (
    ".npy, .npz, .csv, .tsv, .parquet, .arrow, .feather, .fvecs, .bvecs, .fbin, .u8bin, .h5 or .zarr, of which "
    "file.npz:key takes one array and file.csv:x,y some columns; a folder of such files, or a quoted pattern; "
    "- for standard input"
)

Data = Annotated[str, typer.Argument(metavar="DATA", help=f"Rows: {ROWS}.", show_default=False)]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file.", show_default=False)]

Weights = Annotated[
    str | None,
    typer.Option(
        "--weights",
        metavar="FILE|COLUMN",
        help="One weight per row: w counts like w copies of it. A file, or a column of DATA.",
        show_default=False,
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=2**32 - 1,
        help="Same seed, same result, whatever the number of threads; else each run differs.",
        show_default=False,
        rich_help_panel=RUNNING,
    ),
]
Device = Annotated[
    str | None,
    typer.Option(
        metavar="cpu|cuda|cuda:N|auto",
        help="Where to compute. Default: as the model was told to.",
        show_default=False,
        rich_help_panel=RUNNING,
    ),
]
Threads = Annotated[
    int | None, typer.Option(min=1, help="Default: one per CPU.", show_default=False, rich_help_panel=RUNNING)
]
Json = Annotated[
    bool,
    typer.Option(
        "--json", help="Print the result as one JSON object on standard output.", rich_help_panel=RUNNING
    ),
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print nothing but errors (and --json).", rich_help_panel=RUNNING)
]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", "-v", help="Also tell every iteration and every file.", rich_help_panel=RUNNING),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.", rich_help_panel=RUNNING)]
Force = Annotated[
    bool, typer.Option("--force", "-f", help="Overwrite the output if it exists.", rich_help_panel=WRITING)
]


def completing(choices: Iterable[str]) -> Callable[[str], list[str]]:
    """What the shell offers for an option that takes one of these."""

    def complete(incomplete: str) -> list[str]:
        return [choice for choice in choices if choice.startswith(incomplete)]

    return complete


def one_of(choices: Iterable[str]) -> Callable[[str], str]:
    """A check that an option is one of these."""

    def check(value: str) -> str:
        if value not in choices:
            raise typer.BadParameter(f"{value!r} is not known: choose from {', '.join(choices)}.")
        return value

    return check


#: Seconds in what a length of time may be told in.
UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def parse_seconds(text: str | float) -> float:
    """A length of time: 90, 90s, 5m (or 5min), 1.5h."""
    parts = re.fullmatch(r"(\d+\.?\d*|\.\d+) ?([a-z]*)", str(text).strip())
    if parts is None or parts[2] not in UNITS:
        raise typer.BadParameter(f"{text!r} is no length of time: give seconds, or say 90s, 5m or 1h.")
    return float(parts[1]) * UNITS[parts[2]]


def check_voice(quiet: bool, verbose: bool) -> int:
    """How much the library should tell: 0, 1 or 2."""
    if quiet and verbose:
        raise typer.BadParameter("quiet and verbose exclude each other.", param_hint="--quiet, --verbose")
    return 0 if quiet else 2 if verbose else 1


def elsewhere(device: str | None) -> dict[str, str]:
    """The parameter of a loaded model that says where it computes, where another place is asked for."""
    return {} if device is None else {"device": device}
