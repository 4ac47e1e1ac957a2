"""`vcgmm fit`: a model from a file of rows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import numpy as np
import typer

import vcgmm
from vcgmm import VCGMM
from vcgmm.cli.errors import ended_early, guarded
from vcgmm.cli.inputs import read_weighted_rows
from vcgmm.cli.interrupts import GentleStop
from vcgmm.cli.options import (
    ROWS,
    WRITING,
    Debug,
    Force,
    Json,
    Quiet,
    Seed,
    Threads,
    Verbose,
    Weights,
    check_voice,
    completing,
    one_of,
    parse_seconds,
)
from vcgmm.cli.outputs import check_output
from vcgmm.cli.results import file_size, tell
from vcgmm.cli.resuming import check_alone, check_checkpoint, remove, was_given
from vcgmm.data import Source
from vcgmm.mixture_parameters import COVARIANCES, METRICS, MIXINGS
from vcgmm.parameters import INITS, SEARCHES
from vcgmm.persistence import read_header

EXAMPLE = (
    "Ctrl-C once stops after the current iteration and writes what there is, marked as not converged, with exit "
    "code 0; twice stops at once, writes nothing, and exits with 130.\n\n"
    "A fit with --checkpoint run.ckpt that was stopped or killed goes on with --resume run.ckpt, without DATA, to "
    "the same model to the last bit. Once the model is written the checkpoint is removed, unless Ctrl-C stopped "
    "the fit.\n\n"
    "Example: vcgmm fit vectors.npy -k 4000 --seed 0 -o model.vcgmm"
)

#: Every option has the estimator's own default.
DEFAULTS: dict[str, Any] = VCGMM().get_params()

TYPES = ("auto", "float32", "float64")

MODEL, SEARCH, START, STOP, LONG = "Model", "Search", "Start", "When to stop", "Long fits"


def _parse_size(text: str) -> str | int | float | None:
    """auto, all, a number of points, or a share of them."""
    if text in ("auto", "all"):
        return None if text == "all" else text
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if 0.0 < number < 1.0:
        return number
    if number >= 1.0 and number.is_integer():
        return int(number)
    raise typer.BadParameter(
        f"{text!r} is not valid: give auto, all, a number of points, or a share of them between 0 and 1.",
        param_hint="--coreset-size",
    )


def _parse_init(text: str) -> str | np.ndarray:
    """The name of a seeding, or a file of means."""
    if text in INITS:
        return text
    if not Path(text).suffix:
        raise typer.BadParameter(
            f"{text!r} is not known: choose from {', '.join(INITS)}, or give a file of means.", param_hint="--init"
        )
    return np.asarray(vcgmm.open(text))


def _check_mixing(text: str | None) -> str | None:
    """One of the two, or nothing."""
    return None if text is None else one_of(MIXINGS)(text)


@guarded
def run(
    context: typer.Context,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="The model file to write.", show_default=False, rich_help_panel=WRITING
        ),
    ],
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="DATA",
            help=f"Rows: {ROWS}. Or a coreset from `vcgmm coreset`.",
            show_default=False,
        ),
    ] = None,
    n_components: Annotated[
        int | None,
        typer.Option(
            "--n-components", "-k", min=1, help="Number of clusters.", show_default=False, rich_help_panel=MODEL
        ),
    ] = None,
    coreset_size: Annotated[
        str,
        typer.Option(
            metavar="SIZE",
            help="Points drawn for the fit: auto, all, a number, or a share of them.",
            rich_help_panel=MODEL,
        ),
    ] = DEFAULTS["coreset_size"],
    weights: Weights = None,
    covariance_type: Annotated[
        str,
        typer.Option(
            callback=one_of(COVARIANCES),
            autocompletion=completing(COVARIANCES),
            help="Variances: isotropic, one for all clusters; spherical, one for each; diag, one for each cluster "
            "and feature; tied_diag, one for each feature.",
            rich_help_panel=MODEL,
        ),
    ] = DEFAULTS["covariance_type"],
    mixing: Annotated[
        str | None,
        typer.Option(
            callback=_check_mixing,
            autocompletion=completing(MIXINGS),
            help="Weights of the clusters: equal or learned. Default: equal for isotropic, else learned.",
            show_default=False,
            rich_help_panel=MODEL,
        ),
    ] = DEFAULTS["mixing"],
    metric: Annotated[
        str,
        typer.Option(
            callback=one_of(METRICS),
            autocompletion=completing(METRICS),
            help="euclidean, or cosine: rows are scaled to length 1 as they are read, and centres have length 1.",
            rich_help_panel=MODEL,
        ),
    ] = DEFAULTS["metric"],
    n_shared: Annotated[
        int,
        typer.Option(min=0, help="Iterations before clusters get variances of their own.", rich_help_panel=MODEL),
    ] = DEFAULTS["n_shared"],
    reassign: Annotated[
        bool,
        typer.Option(
            "--reassign", help="Give a cluster that collapsed one new start elsewhere.", rich_help_panel=MODEL
        ),
    ] = DEFAULTS["reassign"],
    reg_covar: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            help="Smallest variance, relative to the data's. Default: 1e-14 for isotropic, else 1e-6.",
            show_default=False,
            rich_help_panel=MODEL,
        ),
    ] = DEFAULTS["reg_covar"],
    dtype: Annotated[
        str,
        typer.Option(
            callback=one_of(TYPES),
            autocompletion=completing(TYPES),
            help="Type to compute in; auto: float64 for float64 data, else float32.",
            rich_help_panel=MODEL,
        ),
    ] = "auto",
    device: Annotated[
        str,
        typer.Option(
            metavar="cpu|cuda|cuda:N|auto",
            help="Where to compute: auto takes a GPU if there is one.",
            rich_help_panel=MODEL,
        ),
    ] = DEFAULTS["device"],
    precision: Annotated[
        str,
        typer.Option(metavar="tf32|fp32|bf16", help="What a GPU multiplies in.", rich_help_panel=MODEL),
    ] = DEFAULTS["precision"],
    truncation: Annotated[
        int, typer.Option(min=1, help="Clusters with a posterior per point.", rich_help_panel=SEARCH)
    ] = DEFAULTS["truncation"],
    n_neighbors: Annotated[
        int, typer.Option(min=1, help="Near clusters kept for each cluster.", rich_help_panel=SEARCH)
    ] = DEFAULTS["n_neighbors"],
    n_explore: Annotated[
        int, typer.Option(min=0, help="Random clusters added to each search.", rich_help_panel=SEARCH)
    ] = DEFAULTS["n_explore"],
    search: Annotated[
        str,
        typer.Option(
            callback=one_of(SEARCHES),
            autocompletion=completing(SEARCHES),
            help="blocked, or pointwise: the paper's search.",
            rich_help_panel=SEARCH,
        ),
    ] = DEFAULTS["search"],
    n_candidates: Annotated[
        int,
        typer.Option(min=1, help="Clusters that the points of a cluster search together.", rich_help_panel=SEARCH),
    ] = DEFAULTS["n_candidates"],
    init: Annotated[
        str,
        typer.Option(
            metavar="NAME|FILE",
            autocompletion=completing(INITS),
            help=f"{', '.join(INITS)}, or a file of means.",
            rich_help_panel=START,
        ),
    ] = DEFAULTS["init"],
    chain_length: Annotated[int, typer.Option(min=1, help="Of init afkmc2.", rich_help_panel=START)] = DEFAULTS[
        "chain_length"
    ],
    n_warmup: Annotated[
        int, typer.Option(min=0, help="E-steps before the first that counts.", rich_help_panel=START)
    ] = DEFAULTS["n_warmup"],
    n_init: Annotated[
        int, typer.Option(min=1, help="Fits on one coreset, best bound kept.", rich_help_panel=START)
    ] = DEFAULTS["n_init"],
    warm_start: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL",
            help="Begin at the means of this model file.",
            show_default=False,
            rich_help_panel=START,
        ),
    ] = None,
    tol: Annotated[
        float, typer.Option(min=0.0, help="Relative change of the bound.", rich_help_panel=STOP)
    ] = DEFAULTS["tol"],
    max_iter: Annotated[int, typer.Option(min=1, help="Most iterations.", rich_help_panel=STOP)] = DEFAULTS[
        "max_iter"
    ],
    relaxation: Annotated[
        float,
        typer.Option(
            help="How far M-steps go, in (0, 2): mostly, above 1 ends sooner; 1 is the paper's EM.",
            rich_help_panel=STOP,
        ),
    ] = DEFAULTS["relaxation"],
    refine: Annotated[
        int,
        typer.Option(min=0, help="Passes over all rows after EM on the coreset.", rich_help_panel=STOP),
    ] = DEFAULTS["refine"],
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write where the fit is to this file now and then, with the coreset.",
            show_default=False,
            rich_help_panel=LONG,
        ),
    ] = None,
    checkpoint_every: Annotated[
        float,
        typer.Option(
            parser=parse_seconds,
            metavar="TIME",
            help="How often: 90s, 5m, 1h; 0: after every iteration. Default: 60s.",
            show_default=False,
            rich_help_panel=LONG,
        ),
    ] = DEFAULTS["checkpoint_every"],
    resume: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Go on from this checkpoint, without DATA.",
            show_default=False,
            rich_help_panel=LONG,
        ),
    ] = None,
    compute_labels: Annotated[
        bool,
        typer.Option(
            "--compute-labels", help="Keep labels and error of all rows in the model.", rich_help_panel=WRITING
        ),
    ] = DEFAULTS["compute_labels"],
    save_coreset: Annotated[
        bool,
        typer.Option(
            "--save-coreset",
            help="Keep the coreset, a sample of the data, in the model.",
            rich_help_panel=WRITING,
        ),
    ] = False,
    force: Force = False,
    seed: Seed = None,
    threads: Threads = None,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    debug: Debug = False,  # noqa: ARG001 (for `guarded`)
) -> None:
    """Fit a mixture to rows and write it to a model file."""
    voice = check_voice(quiet, verbose)
    if resume is not None:
        check_alone(context)
        check_output(output, force, inputs=[str(resume)])
        stop = GentleStop(quiet, resume)
        begun = perf_counter()
        with ended_early(resume), stop:
            model = VCGMM.resume(resume, callbacks=stop, verbose=voice, n_threads=threads)
        _finish(model, None, output, resume, save_coreset, perf_counter() - begun, stop, as_json, quiet)
        return
    if data is None:
        raise typer.BadParameter("give rows to fit to, or a checkpoint to --resume.", param_hint="DATA")
    inputs = [str(file) for file in (data, weights, warm_start) if file is not None]
    check_output(output, force, inputs=inputs)
    if checkpoint is not None:
        check_checkpoint(checkpoint, output, force, inputs)
    elif was_given(context, "checkpoint_every"):
        raise typer.BadParameter("give the file to write too: --checkpoint.", param_hint="--checkpoint-every")
    size = _parse_size(coreset_size)
    model = VCGMM() if warm_start is None else VCGMM.load(warm_start)
    if n_components is None:
        if warm_start is None:
            raise typer.BadParameter("give the number of clusters.", param_hint="--n-components, -k")
        n_components = len(model.means_)
    rows = read_weighted_rows(data, weights, verbose=verbose)
    stop = GentleStop(quiet, checkpoint)
    model.set_params(
        n_components=n_components,
        coreset_size=size,
        covariance_type=covariance_type,
        mixing=mixing,
        metric=metric,
        n_shared=n_shared,
        reassign=reassign,
        truncation=truncation,
        n_neighbors=n_neighbors,
        n_explore=n_explore,
        search=search,
        n_candidates=n_candidates,
        init=_parse_init(init),
        chain_length=chain_length,
        n_warmup=n_warmup,
        tol=tol,
        max_iter=max_iter,
        relaxation=relaxation,
        n_init=n_init,
        refine=refine,
        reg_covar=reg_covar,
        warm_start=warm_start is not None,
        compute_labels=compute_labels,
        random_state=seed,
        n_threads=threads,
        dtype=None if dtype == "auto" else dtype,
        device=device,
        precision=precision,
        verbose=voice,
        callbacks=stop,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
    )
    begun = perf_counter()
    with ended_early(checkpoint), stop:
        if rows.coreset is None:
            model.fit(rows.array, sample_weight=rows.weights)
        else:
            model.fit(rows.coreset)
    _finish(model, rows.array, output, checkpoint, save_coreset, perf_counter() - begun, stop, as_json, quiet)


def _finish(
    model: VCGMM,
    rows: np.ndarray | Source | None,
    output: Path,
    checkpoint: Path | None,
    save_coreset: bool,
    seconds: float,
    stop: GentleStop,
    as_json: bool,
    quiet: bool,
) -> None:
    """Write the model, remove a checkpoint that has served its purpose, and tell of both."""
    # How this run was watched and begun is no property of the model.
    unwatched = {name: DEFAULTS[name] for name in ("checkpoint", "checkpoint_every")}
    model.set_params(verbose=0, callbacks=None, warm_start=False, **unwatched)
    model.save(output, coreset=save_coreset)
    if checkpoint is not None and not stop.asked:
        remove(checkpoint)
    if checkpoint is not None and not checkpoint.is_file():
        checkpoint = None
    facts = read_header(output)["training"] if rows is None else {"n_samples": len(rows), "dtype": rows.dtype}
    _tell(model, facts, output, checkpoint, seconds, stopped=stop.asked, as_json=as_json, quiet=quiet)


def _tell(
    model: VCGMM,
    facts: Mapping[str, Any],
    output: Path,
    checkpoint: Path | None,
    seconds: float,
    *,
    stopped: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    active = int(np.count_nonzero(model.counts_))
    result = {
        "output": str(output),
        "n_samples": facts["n_samples"],
        "n_features": model.n_features_in_,
        "n_components": len(model.means_),
        "active_components": active,
        "coreset_points": len(model.coreset_),
        "n_iter": model.n_iter_,
        "converged": model.converged_,
        "stopped": stopped,
        "lower_bound": model.lower_bound_,
        "variance": model.variance_,
        "inertia": getattr(model, "inertia_", None),
        "timings": model.timings_,
        "seconds": seconds,
        "n_distance_evaluations": model.n_distance_evaluations_,
        "seed": model.random_state,
        "device": model.device_,
        "checkpoint": None if checkpoint is None else str(checkpoint),
    }
    end = "converged" if model.converged_ else "stopped before it converged" if stopped else "not converged"
    steps = ", ".join(f"{step} {time:.2f} s" for step, time in model.timings_.items())
    table = {
        "data": f"{facts['n_samples']:,} rows of {model.n_features_in_:,} features, {facts['dtype']}",
        "coreset": f"{len(model.coreset_):,} points",
        "clusters": f"{len(model.means_):,}, {active:,} active",
        "iterations": f"{model.n_iter_}, {end}",
        "lower bound": f"{model.lower_bound_:.8g}",
        "variance": f"{model.variance_:.6g}",
        **({"error": f"{model.inertia_:.8g}"} if hasattr(model, "inertia_") else {}),
        "distances": f"{sum(model.n_distance_evaluations_.values()):.3g}",
        **({} if model.device == "cpu" else {"device": model.device_}),
        "time": f"{seconds:.2f} s ({steps})",
        "model": f"{output} ({file_size(output.stat().st_size)})",
        **({"checkpoint": f"{checkpoint}; go on with --resume {checkpoint}"} if checkpoint else {}),
    }
    tell(result, table, as_json=as_json, quiet=quiet)
