"""`vcgmm coreset`: a small weighted sample that stands for all rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vcgmm import lightweight_coreset
from vcgmm.cli.errors import guarded
from vcgmm.cli.inputs import in_words, read_weighted_rows
from vcgmm.cli.options import (
    WRITING,
    Data,
    Debug,
    Force,
    Json,
    Quiet,
    Seed,
    Threads,
    Verbose,
    Weights,
    check_voice,
)
from vcgmm.cli.outputs import check_output
from vcgmm.cli.results import file_size, tell

EXAMPLE = "Example: vcgmm coreset vectors.npy -n 65536 -o core.vcgmm"


@guarded
def run(
    data: Data,
    size: Annotated[int, typer.Option("--size", "-n", min=1, help="Points to draw.", show_default=False)],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="The coreset file to write.", show_default=False, rich_help_panel=WRITING
        ),
    ],
    weights: Weights = None,
    force: Force = False,
    seed: Seed = None,
    threads: Threads = None,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    debug: Debug = False,  # noqa: ARG001 (for `guarded`)
) -> None:
    """Draw a lightweight coreset and write it to a file, which `vcgmm fit` takes in place of the data.

    Of a coreset, a smaller one. `vcgmm merge` makes one of several.
    """
    voice = check_voice(quiet, verbose)
    check_output(output, force, inputs=[data, *([weights] if weights else [])])
    rows = read_weighted_rows(data, weights, verbose=verbose)
    if rows.coreset is None:
        coreset = lightweight_coreset(
            rows.array, size, sample_weight=rows.weights, random_state=seed, n_threads=threads, verbose=voice
        )
    else:
        coreset = rows.coreset.reduce(size, random_state=seed, n_threads=threads)
    coreset.save(output)
    total = coreset.total_weight
    result = {
        "output": str(output),
        "n_samples": coreset.n_samples,
        "n_features": rows.array.shape[1],
        "points": len(coreset),
        "total_weight": total,
        "seed": seed,
    }
    table = {
        "data": in_words(rows.array),
        "coreset": f"{len(coreset):,} points of weight {total:.8g}",
        "written": f"{output} ({file_size(output.stat().st_size)})",
    }
    tell(result, table, as_json=as_json, quiet=quiet)
