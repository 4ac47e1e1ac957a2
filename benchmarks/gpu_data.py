"""What benchmarks on a GPU share: data made on the device, real sets, times, and how they are told."""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from sets import CIFAR10_TRAIN, load

DEVICE = torch.device("cuda")

#: Values that are made at a time.
VALUES = 1 << 28


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


def load_there(name: str) -> np.ndarray:
    """A set in float32; of cifar10 as many of the first images as $VCGMM_DATA has, if those are not all."""
    X = load(
        f"{os.environ['VCGMM_DATA']}/cifar10.npy" if name == "cifar10" and "VCGMM_DATA" in os.environ else name
    )
    if name == "cifar10" and X.dtype == np.uint8:
        X = X[:CIFAR10_TRAIN] + np.random.default_rng(0).random(X[:CIFAR10_TRAIN].shape, dtype=np.float32)
    return np.ascontiguousarray(X, dtype=np.float32)
