"""What limits each kernel on a GPU: bytes and operations of every launch, over the time that a profile tells.

    python benchmarks/roofline.py                every case
    python benchmarks/roofline.py glove50 wide   some of them

A case runs twice: once under torch's profiler, and once more while `kernel_costs` counts what each launch has to
do.  Both runs make the same launches, so that they are summed up kernel by kernel.  Beside it stand ceilings that
the device shows in the same run: a large copy on it, one to the host, products of large matrices, and
multiplications and additions in registers.  Each case ends with a table in Markdown.
"""

from __future__ import annotations

import argparse
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import triton
import triton.language as tl
from gpu_data import DEVICE, load_there, milliseconds, mixture, report
from kernel_costs import COUNTS, Cost, Launch
from sets import SETS
from torch.profiler import ProfilerActivity, profile

from vcgmm import VCGMM
from vcgmm.gpu.kernels.launching import Launched
from vcgmm.gpu.spans import as_tensors

#: Side of the matrices whose product is a ceiling.
SIDE = 8192

#: Kernels of torch, by a part of their names.
KINDS = {
    "sort": ("Sort", "sort", "Radix"),
    "products": ("gemm", "cutlass", "nvjet", "xmma", "splitKreduce"),
    "copies": ("Memcpy", "Memset"),
}

Log = list[tuple[str, Any]]


# ------------------------------------------------------------------------------------------------------ ceilings


@triton.jit
def _multiply_and_add(values, STEPS: tl.constexpr, VALUES: tl.constexpr):
    place = tl.program_id(0) * VALUES + tl.arange(0, VALUES)
    x = tl.load(values + place)
    a, b, c, d = x, x + 1.0, x + 2.0, x + 3.0
    for _ in range(STEPS):
        a = a * x + b
        b = b * x + c
        c = c * x + d
        d = d * x + a
    tl.store(values + place, a + b + c + d)


def ceilings() -> dict[str, float]:
    """Bytes a second on the device and to the host, and operations a second of each unit."""
    big = torch.empty(1 << 31, dtype=torch.uint8, device=DEVICE)
    other, host = torch.empty_like(big), torch.empty(1 << 28, dtype=torch.uint8, pin_memory=True)
    found = {
        "memory": 2e3 * big.numel() / milliseconds(lambda: other.copy_(big)),
        "link": 1e3 * host.numel() / milliseconds(lambda: host.copy_(big[: 1 << 28], non_blocking=True)),
    }
    torch.backends.cuda.matmul.allow_tf32 = True
    for unit, dtype in (("bf16", torch.bfloat16), ("tf32", torch.float32)):
        A = torch.randn(SIDE, SIDE, device=DEVICE).to(dtype)
        found[unit] = 2e3 * SIDE**3 / milliseconds(lambda A=A: A @ A)
    torch.backends.cuda.matmul.allow_tf32 = False
    values = torch.zeros(1 << 24, device=DEVICE)
    took = milliseconds(
        lambda: _multiply_and_add[(values.numel() // 1024,)](values, STEPS=256, VALUES=1024, num_warps=4)
    )
    found["plain"] = 1e3 * values.numel() * 256 * 8 / took
    report("ceilings", **{name: value / 1e12 for name, value in found.items()}, unit="T/s")
    return found


# ------------------------------------------------------------------------------------------------------ counting


@contextmanager
def watched(counting: bool) -> Iterator[Log]:
    """Within it every launch of our kernels is written down, and with `counting` what it costs."""
    launch, bound = Launched._launch, Launched.bound
    log: Log = []

    def note(kernel: Launched, grid: tuple[int, ...], arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        name = kernel._kernel.__name__
        cost = None
        if counting:
            given = {**dict(zip(kernel._names, as_tensors(arguments), strict=False)), **options}
            cost = COUNTS[name](Launch(grid, given))
        log.append((name, cost))

    def launched(self: Launched, grid: tuple[int, ...], *arguments: Any, **options: Any) -> None:
        launch(self, grid, *arguments, **options)
        note(self, grid, arguments, options)

    def bound_and_noted(self: Launched, grid: tuple[int, ...], *arguments: Any, **options: Any) -> Any:
        again = bound(self, grid, *arguments, **options)
        if not hasattr(again, "kept"):  # it goes by way of `launched`
            return again

        def run() -> None:
            again()
            note(self, grid, arguments, options)

        return run

    Launched._launch, Launched.bound = launched, bound_and_noted  # type: ignore[method-assign]
    try:
        yield log
    finally:
        Launched._launch, Launched.bound = launch, bound  # type: ignore[method-assign]


def profiled(work: Callable[[], Any]) -> dict[str, list[float]]:
    """Milliseconds of each kernel that runs, by name, in the order of launches."""
    with profile(activities=[ProfilerActivity.CUDA]) as found:
        work()
        torch.cuda.synchronize()
    times: dict[str, list[float]] = defaultdict(list)
    for event in sorted(found.events(), key=lambda event: event.time_range.start):
        if event.device_type == torch.autograd.DeviceType.CUDA:
            times[event.name].append(event.time_range.elapsed_us() / 1e3)
    return times


def roofline(part: str, work: Callable[[], Any], limits: dict[str, float]) -> None:
    """Report what each kernel does in some work, and print it as a table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        work()  # compiles
        with watched(counting=False) as launches:
            times = profiled(work)
        with watched(counting=True) as log:
            work()
    if [name for name, _ in launches] != [name for name, _ in log]:
        raise SystemExit(f"{part}: two runs made different launches")
    costs: dict[str, list[Cost]] = defaultdict(list)
    for name, cost in log:
        costs[name].append(cost)
    whole = sum(map(sum, times.values()))
    print(f"\n**{part}**: {whole:.4g} ms of kernels\n")
    print(
        "| kernel | launches | ms | of all | TB/s, of the copy | TOp/s, of the unit |\n|---|---|---|---|---|---|"
    )
    found: dict[tuple[str, str], list[tuple[float, Cost]]] = defaultdict(list)
    for name in costs:
        for took, cost in zip(times[name], costs[name], strict=True):
            found[name, cost.unit].append((took, cost))
    for (name, _), pairs in sorted(found.items(), key=lambda item: -sum(took for took, _ in item[1])):
        _line(part, name, sum(took for took, _ in pairs), whole, [cost for _, cost in pairs], limits)
    others: dict[str, list[float]] = defaultdict(list)
    for name in times.keys() - costs.keys():
        kind = next((kind for kind, parts in KINDS.items() if any(p in name for p in parts)), "others")
        others[kind] += times[name]
    for kind, ms in sorted(others.items(), key=lambda item: -sum(item[1])):
        print(f"| torch: {kind} | {len(ms)} | {sum(ms):.3g} | {100 * sum(ms) / whole:.2g} % | | |")
    print(flush=True)


def _line(part: str, name: str, ms: float, whole: float, costs: list[Cost], limits: dict[str, float]) -> None:
    n_bytes, n_operations = sum(c.n_bytes for c in costs), sum(c.n_operations for c in costs)
    memory, unit = "link" if costs[0].link else "memory", costs[0].unit
    moved, done = 1e3 * n_bytes / ms, 1e3 * n_operations / ms
    report(
        part, kernel=name, launches=len(costs), ms=ms, share=ms / whole, gb=n_bytes / 1e9, tb_s=moved / 1e12,
        of_memory=moved / limits[memory], memory=memory, tera_operations=n_operations / 1e12, tops_s=done / 1e12,
        of_unit=done / limits[unit], unit=unit, us_each=1e3 * ms / len(costs),
    )  # fmt: skip
    where = " (to the host)" if memory == "link" else ""
    limit = f"{100 * done / limits[unit]:.2g} % {unit}"
    print(
        f"| `{name}` | {len(costs)} | {ms:.3g} | {100 * ms / whole:.2g} % | {moved / 1e12:.2g}, "
        f"{100 * moved / limits[memory]:.2g} %{where} | {done / 1e12:.2g}, {limit} |"
    )


# --------------------------------------------------------------------------------------------------------- cases


def fitting(X: Any, n_clusters: int, **options: Any) -> Callable[[], Any]:
    """A whole fit to all points."""
    given = {"coreset_size": None, "random_state": 0, "device": "cuda", **options}
    return lambda: VCGMM(n_clusters, **given).fit(X)


def glove50(limits: dict[str, float]) -> None:
    """A small set, where kernels of the start count."""
    X = torch.from_numpy(load_there("glove50")).to(DEVICE)
    roofline("glove50, C = 4,000", fitting(X, SETS["glove50"]), limits)


def many(limits: dict[str, float]) -> None:
    """Very many clusters."""
    X = mixture(4_000_000, 128, 100_000, torch.float32)
    roofline("4M × 128, C = 100,000, tf32", fitting(X, 100_000), limits)


def wide(limits: dict[str, float]) -> None:
    """Rows of the paper's largest run."""
    X = mixture(2_000_000, 3072, 100_000, torch.bfloat16)
    roofline("2M × 3,072 in bf16, C = 8,192", fitting(X, 8192, precision="bf16"), limits)


def others(limits: dict[str, float]) -> None:
    """A drawn coreset, AFK-MC², variances of the clusters' own, and predictions."""
    X = mixture(4_000_000, 64, 100_000, torch.float32)
    part = "4M × 64, C = 8,192"
    roofline(f"{part}: a coreset of 1M", fitting(X, 8192, coreset_size=1_000_000, max_iter=3), limits)
    roofline(f"{part}: AFK-MC²", fitting(X, 8192, init="afkmc2", max_iter=1), limits)
    roofline(f"{part}: variances of their own", fitting(X, 8192, covariance_type="diag", max_iter=8), limits)
    model = fitting(X, 8192, max_iter=3)()
    predictions: dict[str, Callable[[], Any]] = {
        "predict": lambda: model.predict(X),
        "predict, approximate": lambda: model.predict(X, method="approximate"),
        "nearest 5": lambda: model.nearest(X, 5),
        "quantization_error": lambda: model.quantization_error(X),
        "score_samples of a quarter": lambda: model.score_samples(X[::4].contiguous()),
    }
    for name, work in predictions.items():
        roofline(f"{part}: {name}", work, limits)


CASES: dict[str, Callable[[dict[str, float]], None]] = {
    "glove50": glove50, "many": many, "wide": wide, "others": others,
}  # fmt: skip


def main() -> None:
    """Run the cases that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("cases", nargs="*", choices=[*CASES, []], default=list(CASES))
    cases = parser.parse_args().cases
    limits = ceilings()
    for case in cases:
        CASES[case](limits)
        torch.cuda.empty_cache()


if __name__ == "__main__":
    if not torch.cuda.is_available():
        raise SystemExit("This benchmark needs a GPU.")
    main()
