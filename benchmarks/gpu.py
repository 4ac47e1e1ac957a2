"""Fits on one GPU: the paper's largest run, very many clusters, real sets, peers, and what limits each kernel.

    python benchmarks/gpu.py                     all parts that the device has room for
    python benchmarks/gpu.py paper many roofline

Each part prints one line of JSON for every measurement.  Data are mixtures made on the device, but for `real` and
parts of `models`, which take the sets of $VCGMM_DATA (see sets.py).  Times are taken warm: a short fit has
compiled the kernels.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from sets import CIFAR10_TRAIN, SETS, load

from vcgmm import VCGMM
from vcgmm.algorithm.frame import Frame
from vcgmm.gpu.arrays import DeviceArray
from vcgmm.gpu.cells import cut, sort_by_group
from vcgmm.gpu.nearest import Posterior, lists_of, prepare_search, unlisted_distances
from vcgmm.gpu.neighbourhoods import DeviceNeighbourhoods
from vcgmm.gpu.points import DevicePoints
from vcgmm.gpu.search import DeviceSearch
from vcgmm.gpu.seeding import assign
from vcgmm.gpu.sums import weighted_sums
from vcgmm.gpu.tiling import aligned, tiling

DEVICE = torch.device("cuda")

#: Values that are made, or compared by brute force, at a time.
VALUES = 1 << 28
PRODUCTS = 1 << 31


def mixture(n: int, n_features: int, n_clusters: int, dtype: torch.dtype) -> torch.Tensor:
    """Points of a mixture on the device, of unequal clusters that overlap, as machine.mixture makes them."""
    draws = torch.Generator(DEVICE).manual_seed(0)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=draws, device=DEVICE)

    n_latent = min(16, n_features)
    directions = torch.linalg.qr(normal(n_features, n_latent))[0].T
    centres = normal(n_clusters, n_latent) @ directions
    # On the host: on the device running sums of floats, and with them the data, would differ from run to run.
    shares = torch.cumsum(torch.exp(normal(n_clusters)).cpu(), 0).to(DEVICE)
    X = torch.empty((n, n_features), dtype=dtype, device=DEVICE)
    step = max(1, VALUES // n_features)
    for first in range(0, n, step):
        rows = min(step, n - first)
        uniforms = torch.rand(rows, generator=draws, device=DEVICE) * shares[-1]
        labels = torch.searchsorted(shares, uniforms).clamp(max=n_clusters - 1)
        X[first : first + rows] = (centres[labels] + 0.5 * normal(rows, n_features)).to(dtype)
    return X


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """Time of some work on the device, and what it gives."""
    torch.cuda.synchronize()
    begun = time.perf_counter()
    result = work()
    torch.cuda.synchronize()
    return time.perf_counter() - begun, result


def milliseconds(work: Callable[[], Any], repeats: int = 5) -> float:
    """Median time of a kernel by events, after one run to warm up."""
    work()
    times = []
    for _ in range(repeats):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


def report(part: str, **facts: Any) -> None:
    """One measurement as a line of JSON."""
    rounded = {k: float(f"{v:.5g}") if isinstance(v, float) else v for k, v in facts.items()}
    print(json.dumps({"part": part, **rounded}), flush=True)


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
        fit("paper", X, n_clusters, 1, precision="bf16")


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
    """Rows of the host: 40M x 64 in float32, 10 GB; passes, refinement and predictions, on GPU and CPU."""
    made = mixture(40_000_000, 64, 100_000, torch.float32)
    X = made.cpu().numpy()
    del made
    torch.cuda.empty_cache()
    options = {"coreset_size": 4_000_000, "random_state": 0, "max_iter": 3, "tol": 0.0}
    for device in ("cuda", "cpu"):
        model = VCGMM(20_000, device=device, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X[: 1 << 21])
            took, model = seconds(lambda model=model: model.fit(X))
        labels, _ = seconds(lambda model=model: model.predict(X[: X.shape[0] // 4], method="approximate"))
        report(
            "host", device=device, gb=X.nbytes / 1e9, fit_s=took, predict_gb=X.nbytes / 4e9, predict_s=labels,
            **{f"{k}_s": v for k, v in model.timings_.items()},
        )  # fmt: skip
        if device == "cuda":
            error, _ = seconds(lambda model=model: model.quantization_error(X))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                again = VCGMM(20_000, device=device, refine=1, **options).fit(X)
            report("host", device=device, error_s=error, **{f"{k}_s": v for k, v in again.timings_.items()})


def largest() -> None:
    """100M x 32 in float32 with a million clusters."""
    X = mixture(100_000_000, 32, 1_000_000, torch.float32)
    fit("largest", X, 1_000_000, 1)


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
                {"truncation": 3, "precision": "bf16"},
                {"truncation": 2, "precision": "bf16"},
                {"coreset_size": 64 * SETS[name]},
            )
            for others in quicker:
                to_error(f"real: {name}, tensor", on_device, on_device, SETS[name], theirs, **others)


def load_there(name: str) -> np.ndarray:
    """A set in float32; of cifar10 as many of the first images as $VCGMM_DATA has, if those are not all."""
    X = load(
        f"{os.environ['VCGMM_DATA']}/cifar10.npy" if name == "cifar10" and "VCGMM_DATA" in os.environ else name
    )
    if name == "cifar10" and X.dtype == np.uint8:
        X = X[:CIFAR10_TRAIN] + np.random.default_rng(0).random(X[:CIFAR10_TRAIN].shape, dtype=np.float32)
    return np.ascontiguousarray(X, dtype=np.float32)


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

    glove = torch.from_numpy(np.ascontiguousarray(load("glove50"), dtype=np.float32)).to(DEVICE)
    run("real: glove50", glove, SETS["glove50"])
    run("many", mixture(4_000_000, 128, 100_000, torch.float32), 100_000)


def _host(tensor: torch.Tensor) -> np.ndarray:
    return tensor.double().cpu().numpy()


def roofline() -> None:
    """Bytes and operations of each kernel of an E-step, over the ceilings that this device shows."""
    bandwidth = _copy_rate()
    rates = {}
    for mode, dtype in (("bf16", torch.bfloat16), ("tf32", torch.float32)):
        torch.backends.cuda.matmul.allow_tf32 = True
        A = torch.randn(8192, 8192, device=DEVICE).to(dtype)
        rates[mode] = 2 * 8192**3 / milliseconds(lambda A=A: A @ A) / 1e9
        torch.backends.cuda.matmul.allow_tf32 = False
    report("roofline", copy_tb_s=bandwidth, bf16_tflop_s=rates["bf16"], tf32_tflop_s=rates["tf32"])
    shapes = [(4_000_000, 128, 100_000, torch.float32, "tf32"), (2_000_000, 3072, 8192, torch.bfloat16, "bf16")]
    for n, n_features, n_clusters, dtype, mode in shapes:
        _roofline(mixture(n, n_features, n_clusters, dtype), n_clusters, mode, bandwidth, rates[mode])


def _copy_rate() -> float:
    """Terabytes a second, read and written, of a large copy on the device."""
    big = torch.empty(1 << 31, dtype=torch.uint8, device=DEVICE)
    other = torch.empty_like(big)
    return 2 * big.numel() / milliseconds(lambda: other.copy_(big)) / 1e9


def _roofline(X: torch.Tensor, n_clusters: int, mode: str, bandwidth: float, rate: float) -> None:
    n, n_features = X.shape
    frame = Frame(np.zeros(n_features), 1.0, np.dtype(np.float32))
    points = DevicePoints(X, 1.0, torch.ones(n, device=DEVICE), frame, mode)
    model = VCGMM(n_clusters, coreset_size=None, random_state=0, device="cuda", precision=mode, tol=1e-3).fit(X)
    means = torch.from_numpy(model.means_).to(DEVICE)
    start = assign(points, means)
    labels: Any = start.labels
    search = DeviceSearch(
        points, labels, DeviceNeighbourhoods(n_clusters, 5, 128, 0, 0, DEVICE), 5, start.error, 1e-12
    )
    array: Any = DeviceArray(means)
    for _ in range(2):
        search.e_step(array, model.variance_)
    used, table = aligned(means), search.neighbourhoods.candidates
    lists, groups = lists_of(table), sort_by_group(search.labels().contiguous(), n_clusters)
    tiles = tiling(n_features, n / n_clusters, lists.longest, mode)
    pieces = cut(groups.start, tiles.points, n)
    n_tiles = int((pieces.table[:, 1] < pieces.table[:, 2]).sum())
    extra = unlisted_distances(points, search.neighbourhoods.listed, used, search.winners)
    n_extra = int(torch.isfinite(extra).sum())
    posterior = Posterior.empty((n, 5), n_clusters, DEVICE).with_facts(len(pieces))
    winners = search.winners.clone()
    entries = search.entries()
    n_entries = int(entries.start[-1])
    row, mean = X.element_size() * n_features, 4 * n_features

    searching = prepare_search(
        points, groups.order, pieces, used, lists, used, tiles, mode, winners, old=search.winners, extra=extra,
        precision=0.5 / model.variance_, posterior=posterior,
    )  # fmt: skip
    kernels: dict[str, tuple[Callable[[], Any], float, float]] = {
        # Every point once, every list of means once for each tile; products of whole tiles.
        "search_tiles": (
            searching,
            n * (row + 80) + n_tiles * 129 * mean,
            2.0 * n_tiles * tiles.points * 128 * n_features,
        ),
        "unlisted (lookup and pairs)": (
            lambda: unlisted_distances(points, search.neighbourhoods.listed, used, search.winners),
            n * 5 * (4 + 28 + 4) + n_extra * (row + mean),
            3.0 * n_extra * n_features,
        ),
        "sum_runs and merge_runs": (
            lambda: weighted_sums(points, entries, used),
            n_entries * (row + 12) + n_clusters * n_features * 20,
            3.0 * n_entries * n_features,
        ),
        "entries (sort)": (search.entries, n * 5 * 100.0, 0.0),
    }
    for name, (work, n_bytes, n_operations) in kernels.items():
        took = milliseconds(work)
        report(
            "roofline", shape=[n, n_features, n_clusters], kernel=name, ms=took, gb=n_bytes / 1e9,
            tb_s=n_bytes / took / 1e9, of_bandwidth=n_bytes / took / 1e9 / bandwidth,
            tflop_s=n_operations / took / 1e9, of_rate=n_operations / took / 1e9 / rate,
        )  # fmt: skip
    linking = milliseconds(lambda: search.neighbourhoods._link(used), 3)
    joining = milliseconds(search.neighbourhoods._join, 3)
    shape = [n, n_features, n_clusters]
    report("roofline", shape=shape, kernel="linking, every fourth iteration", ms=linking + joining)


PARTS: dict[str, Callable[[], None]] = {
    "roofline": roofline, "many": many, "real": real, "models": models, "host": host, "largest": largest,
    "paper": paper, "fastkmeans": fastkmeans,
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
