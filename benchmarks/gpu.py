"""Fits on one GPU: the paper's largest run, very many clusters, real sets, and peers.

    python benchmarks/gpu.py                     all parts that the device has room for
    python benchmarks/gpu.py paper many real

Each part prints one line of JSON for every measurement.  Data are mixtures made on the device, but for `real` and
parts of `models`, which take the sets of $VCGMM_DATA (see sets.py).  Times are taken warm: a short fit has
compiled the kernels.  What limits each kernel is told by roofline.py.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from gpu_data import DEVICE, load_there, mixture, report, seconds
from sets import SETS

from vcgmm import VCGMM
from vcgmm.algorithm.coreset.frame import Frame
from vcgmm.gpu.coreset.points import LEAST_IN_BF16, DevicePoints
from vcgmm.gpu.seeding.afkmc2 import assign

#: Distances that brute force computes at a time.
PRODUCTS = 1 << 31

#: Seeds by which it is known how many iterations lead to an error, and fits and peers' runs on each CPU.
SEEDS, FITS, RUNS = 24, 10, 2


def fit(part: str, X: Any, n_clusters: int, repeats: int, **options: Any) -> VCGMM:
    """Fit to all points some times, and report the median of each step."""
    options = {"coreset_size": None, "random_state": 0, "device": "cuda", **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        VCGMM(n_clusters, max_iter=8, tol=0.0, **options).fit(X)  # beyond `n_shared`
        totals, models = [], []
        for _ in range(repeats):
            took, model = seconds(lambda: VCGMM(n_clusters, **options).fit(X))
            totals.append(took)
            models.append(model)
    steps = {f"{k}_s": statistics.median([m.timings_[k] for m in models]) for k in models[0].timings_}
    iterations = 1e3 * np.diff(models[-1].history_["seconds"])
    same = all(m.means_.tobytes() == models[0].means_.tobytes() for m in models)
    report(
        part, n=len(X), d=X.shape[1], c=n_clusters, total_s=statistics.median(totals), **steps,
        n_iter=models[0].n_iter_, converged=models[0].converged_, iteration_ms_median=float(np.median(iterations)),
        iteration_ms_mean=float(np.mean(iterations)), repeats=repeats, bit_identical=same,
        bound=models[0].lower_bound_, peak_gb=torch.cuda.max_memory_allocated() / 1e9,
        total_s_least=min(totals),
        precision=models[0].precision,
    )  # fmt: skip
    torch.cuda.reset_peak_memory_stats()
    return models[0]


def lloyd_step(X: torch.Tensor, centres: torch.Tensor) -> tuple[torch.Tensor, float]:
    """One iteration of brute force in torch, products in tf32: new centres, and the error of the old ones."""
    sums = torch.zeros_like(centres)
    counts = torch.zeros(len(centres), device=DEVICE)
    squares = (centres * centres).sum(1)
    error = torch.zeros((), dtype=torch.float64, device=DEVICE)
    step = max(1, PRODUCTS // len(centres))
    for first in range(0, len(X), step):
        block = X[first : first + step]
        near, labels = torch.addmm(squares, block, centres.T, alpha=-2).min(1)
        error += (near + (block * block).sum(1)).double().sum()
        sums.index_add_(0, labels, block)
        counts.index_add_(0, labels, torch.ones_like(near))
    moved = sums / counts.clamp(min=1).unsqueeze(1)
    return torch.where(counts.unsqueeze(1) > 0, moved, centres), float(error)


def brute_force(part: str, X: torch.Tensor, n_clusters: int, n_iter: int) -> float:
    """Lloyd by brute force from random points: its error, as ours is measured."""
    torch.backends.cuda.matmul.allow_tf32 = True
    draws = torch.Generator(DEVICE).manual_seed(0)
    centres = X[torch.randperm(len(X), generator=draws, device=DEVICE)[:n_clusters]].float()
    lloyd_step(X[: 1 << 20], centres)
    times = []
    for _ in range(n_iter):
        took, (centres, _) = seconds(lambda centres=centres: lloyd_step(X, centres))
        times.append(took)
    torch.backends.cuda.matmul.allow_tf32 = False
    error = error_of(X, _host(centres))
    report(
        part, peer="brute-force Lloyd in torch, tf32", n_iter=n_iter, total_s=sum(times),
        iteration_ms=1e3 * statistics.median(times), error=error,
    )  # fmt: skip
    return error


def error_of(X: torch.Tensor, means: np.ndarray) -> float:
    """Quantization error, nearest means found by comparing with all."""
    frame = Frame(np.zeros(X.shape[1]), 1.0, np.dtype(np.float32))
    points = DevicePoints(X, 1.0, torch.ones(len(X), device=DEVICE), frame, "fp32")
    return assign(points, torch.from_numpy(means).to(DEVICE)).error


def paper() -> None:
    """The paper's Table 2 in its real size: 10M x 3,072 in bf16."""
    X = mixture(10_000_000, 3072, 100_000, torch.bfloat16)
    for n_clusters in (8192, 16384, 32768):
        fit("paper", X, n_clusters, 3, precision="bf16")


def many() -> None:
    """4M x 128 in float32 with 100,000 clusters, beside brute force, and peers where they are installed."""
    X = mixture(4_000_000, 128, 100_000, torch.float32)
    for precision in ("tf32", "fp32", "bf16"):
        model = fit("many", X, 100_000, 3 if precision == "tf32" else 1, precision=precision)
        report("many", precision=precision, error=error_of(X, model.means_))
    brute_force("many", X, 100_000, 25)
    peers("many", X, 100_000, 25)


def models() -> None:
    """Clusters with weights and variances of their own: 4M x 128 with 100,000 of them, and a real set."""
    X = mixture(4_000_000, 128, 100_000, torch.float32)
    kinds: tuple[dict[str, Any], ...] = (
        {"covariance_type": "isotropic", "mixing": "learned"},
        {"covariance_type": "spherical"},
        {"covariance_type": "tied_diag"},
        {"covariance_type": "diag"},
    )
    for kind in kinds:
        fit(f"models: {kind['covariance_type']}", X, 100_000, 1, **kind)
    fit("models: cosine", X, 100_000, 1, metric="cosine")
    del X
    torch.cuda.empty_cache()
    for name in ("covtype", "glove50"):
        try:
            rows = load_there(name)
        except SystemExit as missing:
            print(missing, flush=True)
            continue
        for kind in (*kinds[1:], {"metric": "cosine"}):
            there = fit(f"models: {name}, {kind}", rows, SETS[name], 3, **kind)
            VCGMM(SETS[name], max_iter=7, tol=0.0, random_state=0, **kind).fit(rows[: 1 << 16])
            took, here = seconds(
                lambda kind=kind, rows=rows, name=name: VCGMM(
                    SETS[name], coreset_size=None, random_state=0, **kind
                ).fit(rows)
            )
            report(
                f"models: {name}, {kind}", cpu_total_s=took, cpu_n_iter=here.n_iter_, cpu_bound=here.lower_bound_,
                gpu_bound=there.lower_bound_, cpu_score=here.score(rows), gpu_score=there.score(rows),
            )  # fmt: skip


def host() -> None:
    """Rows of the host: 40M x 64 in float32, 10 GB; passes, refinement and predictions, on GPU and CPU.

    All is done twice: what is done first also compiles, for shapes that a short fit does not meet.
    """
    made = mixture(40_000_000, 64, 100_000, torch.float32)
    X = made.cpu().numpy()
    del made
    torch.cuda.empty_cache()
    options = {"coreset_size": 4_000_000, "random_state": 0, "max_iter": 3, "tol": 0.0}
    some = X[: X.shape[0] // 4]
    for device in ("cuda", "cpu"):
        model = VCGMM(20_000, device=device, **options)
        for turn in ("first", "second"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                took, _ = seconds(lambda model=model: model.fit(X))
            making, _ = seconds(lambda model=model: model.predict(some[:1000], method="approximate"))
            labels, _ = seconds(lambda model=model: model.predict(some, method="approximate"))
            report(
                "host", device=device, turn=turn, gb=X.nbytes / 1e9, fit_s=took, making_s=making,
                predict_gb=some.nbytes / 1e9, predict_s=labels, **{f"{k}_s": v for k, v in model.timings_.items()},
            )  # fmt: skip
    for turn in ("first", "second"):
        model = VCGMM(20_000, device="cuda", refine=1, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X)
        error, _ = seconds(lambda model=model: model.quantization_error(X))
        report("host", device="cuda", turn=turn, error_s=error, **{f"{k}_s": v for k, v in model.timings_.items()})


def largest() -> None:
    """100M x 32 in float32 with a million clusters."""
    X = mixture(100_000_000, 32, 1_000_000, torch.float32)
    fit("largest", X, 1_000_000, 3)


def real() -> None:
    """The real sets: all points, on the GPU and on this machine's CPU; peers, and when we are at their error."""
    for name in ("covtype", "glove50", "kdd", "cifar10"):
        try:
            X = load_there(name)
        except SystemExit as missing:
            print(missing, flush=True)
            continue
        there = fit(f"real: {name}", X, SETS[name], 7)
        on_device = torch.from_numpy(X).to(DEVICE)
        fit(f"real: {name}, tensor", on_device, SETS[name], 7)
        report(f"real: {name}", gpu_error=error_of(on_device, there.means_), gpu_bound=there.lower_bound_)
        for n_threads in (None, 2):
            cpu = {"coreset_size": None, "random_state": 0, "n_threads": n_threads}
            VCGMM(SETS[name], max_iter=2, tol=1.0, **cpu).fit(X[: 1 << 16])
            runs = [
                seconds(lambda cpu=cpu, X=X, name=name: VCGMM(SETS[name], **cpu).fit(X))
                for _ in range(3 if n_threads is None else 1)
            ]
            here = runs[0][1]
            report(
                f"real: {name}", n_threads=n_threads or "all", cpu_total_s=statistics.median([r[0] for r in runs]),
                cpu_n_iter=here.n_iter_, cpu_bound=here.lower_bound_, cpu_error=error_of(on_device, here.means_),
            )  # fmt: skip
        error = brute_force(f"real: {name}", on_device, SETS[name], 25)
        to_error(f"real: {name}, tensor, brute force's", on_device, on_device, SETS[name], error)
        theirs = peers(f"real: {name}", on_device, SETS[name], 25, 9)
        if theirs is not None:
            to_error(f"real: {name}, array", X, on_device, SETS[name], theirs)
            quicker: tuple[dict[str, Any], ...] = (
                {},
                {"truncation": 3},
                {"truncation": 2},
                # Shorter rows are multiplied in tf32 even so.
                *({"truncation": k, "precision": "bf16"} for k in (3, 2) if X.shape[1] >= LEAST_IN_BF16),
                {"coreset_size": 64 * SETS[name]},
            )
            for others in quicker:
                to_error(f"real: {name}, tensor", on_device, on_device, SETS[name], theirs, **others)


def turns() -> None:
    """glove50 beside flash-kmeans, both held to one CPU after the other: much of the time is the host's.

    With the number of iterations after which most of some seeds are at its error.
    """
    X = torch.from_numpy(load_there("glove50")).to(DEVICE)
    n_clusters = SETS["glove50"]
    error = peers("turns", X, n_clusters, 25, RUNS)
    if error is None:
        print("flash-kmeans is not installed", flush=True)
        return
    from flash_kmeans import batch_kmeans_Euclid

    def fitted(max_iter: int, seed: int = 0) -> VCGMM:
        options = {"coreset_size": None, "device": "cuda", "tol": 0.0}
        return VCGMM(n_clusters, max_iter=max_iter, random_state=seed, **options).fit(X)

    def flash() -> Any:
        return batch_kmeans_Euclid(X[None], n_clusters, max_iters=25, tol=0.0)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for max_iter in range(4, 12):
            found = [error_of(X, fitted(max_iter, seed).means_) for seed in range(SEEDS)]
            n_there = sum(e <= error for e in found)
            report(
                "turns", max_iter=max_iter, seeds=SEEDS, at_its_error=n_there, mean_error=statistics.mean(found)
            )
            if 2 * n_there > SEEDS:
                break
        before, ratios = os.sched_getaffinity(0), []
        for cpu in sorted(before):
            os.sched_setaffinity(0, {cpu})
            fitted(max_iter)
            ours = statistics.median([seconds(lambda: fitted(max_iter))[0] for _ in range(FITS)])
            theirs = statistics.median([seconds(flash)[0] for _ in range(RUNS)])
            ratios.append(theirs / ours)
            report("turns", cpu=cpu, plain_loop_ms=plain_loop(), ours_ms=1e3 * ours, flash_ms=1e3 * theirs,
                   times_as_fast=theirs / ours)  # fmt: skip
        os.sched_setaffinity(0, before)
    report(
        "turns", cpus=len(ratios), times_as_fast_median=statistics.median(ratios), least=min(ratios),
        most=max(ratios), at_5_or_more=sum(ratio >= 5 for ratio in ratios),
    )  # fmt: skip


def plain_loop() -> float:
    """Milliseconds of 200,000 additions in plain Python: how fast this CPU is just now."""
    begun, total = time.perf_counter(), 0
    for number in range(200_000):
        total += number
    return 1e3 * (time.perf_counter() - begun)


def to_error(part: str, X: Any, on_device: torch.Tensor, n_clusters: int, error: float, **others: Any) -> None:
    """The time of the shortest of some fits that comes to an error."""
    options = {"coreset_size": None, "random_state": 0, "device": "cuda", "tol": 0.0, **others}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for max_iter in (*range(1, 17), 20, 24, 32):
            model = VCGMM(n_clusters, max_iter=max_iter, **options)
            found = error_of(on_device, model.fit(X).means_)
            if found <= error:
                times = [seconds(lambda model=model: model.fit(X))[0] for _ in range(9)]
                report(
                    part, to_error=error, max_iter=max_iter, total_s=statistics.median(times),
                    total_s_least=min(times), error=found, **others,
                )  # fmt: skip
                return
    report(part, to_error=error, max_iter="more than 32", **others)


def peers(part: str, X: torch.Tensor, n_clusters: int, n_iter: int, repeats: int = 1) -> float | None:
    """flash-kmeans, where it is installed: its error, from seeds of its own, as ours is measured."""
    if not find_spec("flash_kmeans"):
        return None
    from flash_kmeans import batch_kmeans_Euclid

    batch_kmeans_Euclid(X[None], n_clusters, max_iters=1)
    runs = []
    for _ in range(repeats):
        torch.manual_seed(0)
        runs.append(seconds(lambda: batch_kmeans_Euclid(X[None], n_clusters, max_iters=n_iter, tol=0.0)))
    error = error_of(X, _host(runs[0][1][1][0]))
    took = statistics.median([run[0] for run in runs])
    report(part, peer="flash-kmeans", n_iter=n_iter, total_s=took, error=error, repeats=repeats)
    return error


def fastkmeans() -> None:
    """fastkmeans, where it is installed; apart from the others, for where it fails the device is lost with it.

    Without its own kernel, in which centres that do not exist win where their number is no multiple of 128.
    """
    if not find_spec("fastkmeans"):
        print("fastkmeans is not installed", flush=True)
        return
    from fastkmeans import FastKMeans

    def run(name: str, X: torch.Tensor, n_clusters: int, n_iter: int = 25) -> None:
        host = X.cpu().numpy()
        options = {"tol": 0.0, "gpu": True, "seed": 0, "dtype": torch.float32, "use_triton": False}
        FastKMeans(X.shape[1], n_clusters, niter=1, **options).train(host[: 8 * n_clusters])
        model = FastKMeans(X.shape[1], n_clusters, niter=n_iter, **options)
        took, _ = seconds(lambda: model.train(host))
        centres = np.asarray(model.centroids, np.float64)
        report(name, peer="fastkmeans, float32", n_iter=n_iter, total_s=took, error=error_of(X, centres))

    glove = torch.from_numpy(load_there("glove50")).to(DEVICE)
    run("real: glove50", glove, SETS["glove50"])
    run("many", mixture(4_000_000, 128, 100_000, torch.float32), 100_000)


def _host(tensor: torch.Tensor) -> np.ndarray:
    return tensor.double().cpu().numpy()


PARTS: dict[str, Callable[[], None]] = {
    "many": many, "real": real, "turns": turns, "models": models, "host": host, "largest": largest, "paper": paper,
    "fastkmeans": fastkmeans,
}  # fmt: skip


def main() -> None:
    """Run the parts that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=list(PARTS))
    for part in parser.parse_args().parts:
        try:
            PARTS[part]()
        except MemoryError as error:
            print(f"{part}: {error}", flush=True)
        torch.cuda.empty_cache()


if __name__ == "__main__":
    if not torch.cuda.is_available():
        raise SystemExit("This benchmark needs a GPU.")
    main()
