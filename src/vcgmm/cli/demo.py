"""`vcgmm demo`: cluster a large grid of clusters, compare with MiniBatchKMeans, and draw what was found."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table
from sklearn.cluster import MiniBatchKMeans
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from vcgmm import VCGMM, quantization_error
from vcgmm.cli.errors import guarded
from vcgmm.cli.options import Debug, Force, Threads
from vcgmm.cli.outputs import check_picture
from vcgmm.data.atomic import replacing
from vcgmm.datasets import make_grid
from vcgmm.plotting import plot_density
from vcgmm.progress.display import make_console

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

EXAMPLE = "Example: vcgmm demo --samples 200000 -o demo.png"

PICTURE = Path("vcgmm-demo.png")
N_SIDE = 25
N_CLUSTERS = N_SIDE**2
# Larger batches than MiniBatchKMeans' default of 1,024: here they are several times faster and end better. The
# size of its first sample is its own default, written out because its distance evaluations are counted from it.
BATCH_SIZE = 4096
INIT_SIZE = 3 * BATCH_SIZE


@dataclass(frozen=True)
class Result:
    """What one method did, as a row of the table."""

    name: str
    centers: NDArray[np.floating]
    seconds: float
    iterations: int
    distances: int
    steps: dict[str, float]


@guarded
def run(
    samples: Annotated[int, typer.Option(min=N_CLUSTERS, help="Number of points.")] = 1_000_000,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of data and fits.")] = 0,
    output: Annotated[Path, typer.Option("--output", "-o", help="The picture to write.")] = PICTURE,
    force: Force = False,
    threads: Threads = None,
    debug: Debug = False,  # noqa: ARG001 (for `guarded`)
) -> None:
    """Cluster a grid of 625 clusters, compare with MiniBatchKMeans, and write a picture."""
    # What can be known to fail fails before the work, not after it.
    check_picture(output, force)

    console = make_console(stderr=False)
    X, _, true_centers = make_grid(samples, N_SIDE, random_state=seed)
    console.print(f"{samples:,} points in {N_CLUSTERS} clusters of a grid.")
    with console.status("Kernels are compiled, or loaded where they were before …"):
        seconds = _compile(X, threads)
    console.print(f"Kernels compiled, or loaded where they were before, in {seconds:.1f} s.")

    results = [_run_vcgmm(X, seed, threads), _run_minibatch(X, seed, threads)]
    errors = [quantization_error(X, result.centers, n_threads=threads) for result in results]
    console.print(_table(results, errors))
    console.print("distances: point–centre distances evaluated; error: quantization error")
    truth = quantization_error(X, true_centers, n_threads=threads)
    console.print(f"(the centres that made the data have an error of {truth:.6g})")

    _draw(X, results[0], output)
    console.print(f"Picture: {output}", soft_wrap=True, highlight=False)


def _compile(X: NDArray[np.float32], threads: int | None) -> float:
    """Fit a few points, so that numba compiles (or loads) all that the real fit uses; return the seconds.

    With more clusters than are candidates of one, since those have to be linked.
    """
    start = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = VCGMM(n_components=200, coreset_size=0.5, max_iter=2, random_state=0, n_threads=threads)
        model.fit(X[:4096])
    return perf_counter() - start


def _run_vcgmm(X: NDArray[np.float32], seed: int, threads: int | None) -> Result:
    start = perf_counter()
    model = VCGMM(n_components=N_CLUSTERS, random_state=seed, n_threads=threads, verbose=1).fit(X)
    return Result(
        name="vcgmm",
        centers=model.means_,
        seconds=perf_counter() - start,
        iterations=model.n_iter_,
        distances=sum(model.n_distance_evaluations_.values()),
        steps=model.timings_,
    )


def _run_minibatch(X: NDArray[np.float32], seed: int, threads: int | None) -> Result:
    model = MiniBatchKMeans(
        n_clusters=N_CLUSTERS,
        batch_size=BATCH_SIZE,
        init_size=INIT_SIZE,
        n_init="auto",
        # Like vcgmm by default, it finds the centres and labels no points.
        compute_labels=False,
        random_state=seed,
    )
    start = perf_counter()
    with threadpool_limits(threads):
        model.fit(X)
    return Result(
        name="MiniBatchKMeans",
        centers=model.cluster_centers_,
        seconds=perf_counter() - start,
        iterations=model.n_steps_,
        distances=_minibatch_distances(len(X), model.n_steps_),
        steps={},
    )


def _minibatch_distances(n_samples: int, n_steps: int) -> int:
    """Count the distances MiniBatchKMeans evaluates, following its code.

    Greedy k-means++ on a sample tries 2 + ⌊log C⌋ points for each centre but the first, a validation set is
    then compared with all centres, and so is the batch of every step.
    """
    sample = min(INIT_SIZE, n_samples)
    trials = 2 + int(math.log(N_CLUSTERS))
    seeding = sample * (1 + (N_CLUSTERS - 1) * trials)
    return seeding + (sample + n_steps * min(BATCH_SIZE, n_samples)) * N_CLUSTERS


def _table(results: list[Result], errors: list[float]) -> Table:
    """One row a method, in 80 characters."""
    table = Table(box=SIMPLE_HEAD, padding=0)
    table.add_column("", no_wrap=True)
    for heading in ("coreset", "seeding", "EM", "total", "iterations", "distances", "error"):
        table.add_column(heading, justify="right", no_wrap=True)
    for result, error in zip(results, errors, strict=True):
        table.add_row(
            result.name,
            *(_seconds(result.steps.get(step)) for step in ("coreset", "seeding", "em")),
            _seconds(result.seconds),
            f"{result.iterations:,}",
            f"{result.distances:.2e}",
            f"{error:.6g}",
        )
    return table


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f} s"


def _draw(X: NDArray[np.float32], result: Result, output: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 8.3), layout="constrained")
    ax = plot_density(X, result.centers, ax=figure.add_subplot())
    ax.set_title(f"{len(result.centers)} centres found among {len(X):,} points in {result.seconds:.2f} s")
    with replacing(output) as temporary:
        figure.savefig(temporary, dpi=150)
