"""`vcgmm predict`: the cluster of every row."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from scipy import sparse

from vcgmm import VCGMM
from vcgmm.cli.errors import guarded
from vcgmm.cli.inputs import read_rows
from vcgmm.cli.options import (
    WRITING,
    Data,
    Debug,
    Device,
    Force,
    Json,
    Model,
    Quiet,
    Threads,
    Verbose,
    check_voice,
    elsewhere,
)
from vcgmm.cli.outputs import check_output
from vcgmm.cli.results import file_size, tell
from vcgmm.data.appending import VECTOR_SUFFIXES
from vcgmm.data.atomic import replacing
from vcgmm.data.opening import open_vector

EXAMPLE = "Example: vcgmm predict model.vcgmm vectors.npy -o labels.npy"

STANDARD_OUTPUT = Path("-")


@guarded
def run(
    model_file: Model,
    data: Data,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="Labels: .npy, .csv, .tsv or .parquet, or - for lines on standard output. Posteriors: .npz.",
            show_default=False,
            rich_help_panel=WRITING,
        ),
    ],
    proba: Annotated[
        bool,
        typer.Option(
            "--proba",
            help="Write posteriors over the nearest clusters, a sparse matrix for scipy.sparse.load_npz.",
            rich_help_panel=WRITING,
        ),
    ] = False,
    approximate: Annotated[
        bool,
        typer.Option(
            "--approximate",
            help="Labels along neighbouring clusters: mostly the nearest, and much faster with many clusters.",
            rich_help_panel=WRITING,
        ),
    ] = False,
    force: Force = False,
    threads: Threads = None,
    device: Device = None,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    debug: Debug = False,  # noqa: ARG001 (for `guarded`)
) -> None:
    """Write the nearest cluster of every row, or its posteriors."""
    voice = check_voice(quiet, verbose)
    to_lines = output == STANDARD_OUTPUT and not proba
    if to_lines and as_json:
        raise typer.BadParameter("standard output cannot hold both labels and --json.", param_hint="--output")
    if proba and approximate:
        raise typer.BadParameter(
            "--proba has no approximate form: leave one of them out.", param_hint="--approximate"
        )
    method = "approximate" if approximate else "exact"
    if not to_lines:
        check_output(output, force, (".npz",) if proba else VECTOR_SUFFIXES, inputs=[str(model_file), data])
    model = VCGMM.load(model_file).set_params(n_threads=threads, verbose=voice, **elsewhere(device))
    rows = read_rows(data, verbose=verbose)
    if proba:
        posteriors = model.predict_proba(rows)
        with replacing(output) as temporary:
            sparse.save_npz(temporary, posteriors)
        facts = {"entries_per_row": int(posteriors.indptr[1])}
        table = {"posteriors": f"{len(rows):,} rows, {posteriors.indptr[1]} clusters each"}
    else:
        if to_lines:
            typer.echo("\n".join(map(str, model.predict(rows, method).tolist())))
            return
        model.predict(rows, method, output=output)
        met = _count_labels(output, len(model.means_))
        facts = {"clusters_met": met}
        table = {"labels": f"{len(rows):,} rows in {met:,} of {len(model.means_):,} clusters"}
    result = {"output": str(output), "n_samples": len(rows), "n_components": len(model.means_), **facts}
    table["written"] = f"{output} ({file_size(output.stat().st_size)})"
    tell(result, table, as_json=as_json, quiet=quiet)


def _count_labels(file: Path, n_components: int) -> int:
    """How many clusters are met in a file of labels, in bounded memory."""
    met = np.zeros(n_components, bool)
    for block in open_vector(file).blocks():
        met[block.astype(np.int64).ravel()] = True
    return int(met.sum())
