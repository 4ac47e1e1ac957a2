"""Kernels run on plain Python threads and start none: fits may run side by side in one process."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from distributed import Client
from threadpoolctl import threadpool_info

from vcgmm import VCGMM

SETTINGS: list[dict[str, Any]] = [
    {"n_components": 30, "random_state": 0, "n_threads": 2},
    {"n_components": 21, "random_state": 1, "n_threads": 3, "init": "afkmc2"},
    {"n_components": 25, "random_state": 2, "n_threads": 1, "search": "pointwise", "max_iter": 1000},
]


def _fit(settings: dict[str, Any], X: np.ndarray) -> np.ndarray:
    return VCGMM(**settings).fit(X).means_


def _blas_threads() -> list[int]:
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_in_threads(X: np.ndarray) -> None:
    before = _blas_threads()
    alone = [_fit(settings, X) for settings in SETTINGS]
    with ThreadPoolExecutor(len(SETTINGS)) as pool:
        together = list(pool.map(lambda settings: _fit(settings, X), SETTINGS))
    assert all((one == other).all() for one, other in zip(alone, together, strict=True))
    assert _blas_threads() == before


def test_in_the_threads_of_a_dask_worker(client: Client, X: np.ndarray) -> None:
    """A worker of two threads runs two fits at once, each with threads of its own."""
    alone = [_fit(settings, X) for settings in SETTINGS]
    worker = min(client.nthreads())
    futures = [client.submit(_fit, settings, X, workers=[worker], pure=False) for settings in SETTINGS]
    together = client.gather(futures)
    assert all((one == other).all() for one, other in zip(alone, together, strict=True))
