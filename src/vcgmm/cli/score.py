"""`vcgmm score`: how well a model fits rows."""

from __future__ import annotations

from vcgmm import VCGMM
from vcgmm.cli.errors import guarded
from vcgmm.cli.inputs import read_weighted_rows
from vcgmm.cli.options import (
    Data,
    Debug,
    Device,
    Json,
    Model,
    Quiet,
    Threads,
    Verbose,
    Weights,
    check_voice,
    elsewhere,
)
from vcgmm.cli.results import tell

EXAMPLE = "Example: vcgmm score model.vcgmm held-out.npy --json"


@guarded
def run(
    model_file: Model,
    data: Data,
    weights: Weights = None,
    threads: Threads = None,
    device: Device = None,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    debug: Debug = False,  # noqa: ARG001 (for `guarded`)
) -> None:
    """Print the mean log density and the quantization error of rows under a model."""
    voice = check_voice(quiet, verbose)
    model = VCGMM.load(model_file).set_params(n_threads=threads, verbose=voice, **elsewhere(device))
    rows = read_weighted_rows(data, weights, verbose=verbose)
    score = model.score(rows.array, sample_weight=rows.weights)
    error = model.quantization_error(rows.array, sample_weight=rows.weights)
    total = rows.total_weight()
    result = {
        "n_samples": len(rows.array),
        "score": score,
        "quantization_error": error,
        "mean_squared_distance": error / total,
    }
    table = {
        "rows": f"{len(rows.array):,}",
        "log density": f"{score:.8g} (mean of a row)",
        "error": f"{error:.8g} (sum of squared distances)",
        "per row": f"{error / total:.8g}",
    }
    tell(result, table, as_json=as_json, quiet=quiet)
