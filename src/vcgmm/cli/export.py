"""`vcgmm export`: the centres of a model for other programs."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Annotated

import typer

from vcgmm import VCGMM
from vcgmm.cli.errors import guarded
from vcgmm.cli.options import Debug, Force, Json, Model, Quiet, completing, one_of
from vcgmm.cli.outputs import check_output
from vcgmm.cli.results import file_size, tell
from vcgmm.data.atomic import replacing
from vcgmm.data.writing import SUFFIXES, write_array
from vcgmm.interop import INDEXES

EXAMPLE = "Example: vcgmm export model.vcgmm centers.parquet"

INDEX = ".faiss"

#: Formats that need a package that may be missing, and how to get it.
NEEDS = {".parquet": ("pyarrow", "vcgmm[io]"), INDEX: ("faiss", "faiss-cpu")}


@guarded
def run(
    model_file: Model,
    output: Annotated[
        Path,
        typer.Argument(
            metavar="OUTPUT",
            help="Centres: .npy, .csv, .tsv or .parquet in float64, .fvecs in float32, or .faiss, an index.",
            show_default=False,
        ),
    ],
    index: Annotated[
        str,
        typer.Option(
            callback=one_of(INDEXES),
            autocompletion=completing(INDEXES),
            help="For .faiss: flat holds the centres; ivf has them as its inverted lists, ready for vectors.",
        ),
    ] = "flat",
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,  # noqa: ARG001 (for `guarded`)
) -> None:
    """Write the centres of a model in a format that other programs read."""
    check_output(output, force, (*SUFFIXES, INDEX), hint="OUTPUT", inputs=[str(model_file)])
    suffix = output.suffix.lower()
    package, remedy = NEEDS.get(suffix, ("", ""))
    if package and importlib.util.find_spec(package) is None:
        raise ImportError(f"{suffix} files need {package}, which is not installed: pip install {remedy}")
    model = VCGMM.load(model_file)
    n_clusters, n_features = model.means_.shape
    if suffix == INDEX:
        import faiss

        with replacing(output) as temporary:
            faiss.write_index(model.to_faiss(index), str(temporary))
    else:
        names = getattr(model, "feature_names_in_", [f"f{i}" for i in range(n_features)])
        write_array(output, model.means_, list(names))
    result = {"output": str(output), "n_components": n_clusters, "n_features": n_features}
    table = {
        "centres": f"{n_clusters:,} of {n_features:,} features",
        "written": f"{output} ({file_size(output.stat().st_size)})",
    }
    tell(result, table, as_json=as_json, quiet=quiet)
