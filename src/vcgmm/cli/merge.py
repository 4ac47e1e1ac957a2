"""`vcgmm merge`: one coreset of several, for rows that lie in many places."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vcgmm import Coreset
from vcgmm.cli.errors import guarded
from vcgmm.cli.inputs import in_words
from vcgmm.cli.options import WRITING, Debug, Force, Json, Quiet, Seed, Threads, Verbose, check_voice
from vcgmm.cli.outputs import check_output
from vcgmm.cli.results import file_size, tell

EXAMPLE = "Example: vcgmm merge monday.vcgmm tuesday.vcgmm -n 65536 -o week.vcgmm"


@guarded
def run(
    coresets: Annotated[
        list[Path], typer.Argument(metavar="CORESET...", help="Files from `vcgmm coreset`.", show_default=False)
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="The coreset file to write.", show_default=False, rich_help_panel=WRITING
        ),
    ],
    size: Annotated[
        int | None,
        typer.Option("--size", "-n", min=1, help="Draw so many points of them all.", show_default=False),
    ] = None,
    force: Force = False,
    seed: Seed = None,
    threads: Threads = None,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    debug: Debug = False,  # noqa: ARG001 (for `guarded`)
) -> None:
    """Make one coreset of several, and a smaller one of that where a size is given."""
    check_voice(quiet, verbose)
    check_output(output, force, inputs=[str(path) for path in coresets])
    parts = []
    for path in coresets:
        parts.append(Coreset.load(path))
        if verbose:
            typer.echo(f"{path}: a coreset, {in_words(parts[-1].points)}", err=True)
    merged = parts[0].merge(*parts[1:])
    written = merged if size is None else merged.reduce(size, random_state=seed, n_threads=threads)
    written.save(output)
    result = {
        "output": str(output),
        "coresets": len(parts),
        "n_samples": written.n_samples,
        "n_features": written.n_features,
        "points": len(written),
        "total_weight": written.total_weight,
        "seed": seed,
    }
    table = {
        "merged": f"{len(parts)} coresets, {len(merged):,} points",
        "coreset": f"{len(written):,} points of weight {written.total_weight:.8g}",
        "written": f"{output} ({file_size(output.stat().st_size)})",
    }
    tell(result, table, as_json=as_json, quiet=quiet)
