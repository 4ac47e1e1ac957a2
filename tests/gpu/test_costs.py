"""What the roofline counts of each kernel: there is a count for all, and it fits their arguments."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="tests of the GPU need torch")
pytest.importorskip("triton", reason="tests of the GPU need Triton")

from vcgmm import VCGMM  # noqa: E402
from vcgmm.gpu import kernels  # noqa: E402
from vcgmm.gpu.kernels.launching import Launched  # noqa: E402

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(name="costs")
def kernel_costs(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("kernel_costs")


def test_every_kernel_is_counted(costs: ModuleType) -> None:
    modules = [
        importlib.import_module(f"{kernels.__name__}.{m.name}") for m in pkgutil.iter_modules(kernels.__path__)
    ]
    names = {name for module in modules for name, value in vars(module).items() if isinstance(value, Launched)}
    assert set(costs.COUNTS) == names
    assert len(names) > 40


def test_the_launches_of_a_fit_are_counted_by_their_arguments(costs: ModuleType, gpu: Any) -> None:
    roofline = importlib.import_module("roofline")
    X = torch.from_numpy(np.random.default_rng(0).normal(size=(300, 5)).astype(np.float32)).to(gpu)
    with roofline.watched(counting=True) as log:
        model = VCGMM(12, random_state=0, device="cuda", max_iter=2, tol=0.0).fit(X)
        model.predict(X)
    with roofline.watched(counting=False) as again:
        VCGMM(12, random_state=0, device="cuda", max_iter=2, tol=0.0).fit(X).predict(X)
    assert [name for name, _ in log] == [name for name, _ in again]  # what costs and times are matched by
    assert all(cost.n_bytes > 0 for _, cost in log)
    searches = [cost for name, cost in log if name == "search_tiles"]
    assert all(cost.n_operations > 0 and cost.unit == "tf32" for cost in searches)
    assert Launched.bound.__module__ == Launched.__module__  # nothing is left behind


def test_a_count_is_that_of_the_formula(costs: ModuleType) -> None:
    points = torch.zeros((10, 4), dtype=torch.bfloat16)
    launch = costs.Launch((1,), {"points": points, "n_features": 4, "n_pairs": 7})
    cost = costs.COUNTS["pair_distances"](launch)
    assert (cost.n_bytes, cost.n_operations) == (7 * (8 + 16 + 16), 3 * 7 * 4)
    tiles = torch.tensor([[0, 0, 5], [1, 5, 5], [1, 5, 10]])
    arguments = {
        "points": points, "n_features": 4, "tiles": tiles, "list_start": torch.tensor([0, 3, 23]), "POINTS": 16,
        "CENTRES": 16, "FEATURES": 16, "MODE": "fp32",
    }  # fmt: skip
    cost = costs.COUNTS["nearest_of_tiles"](costs.Launch((3,), arguments))
    # Whole tiles, in three parts; the empty one does nothing.
    assert cost.n_operations == 3 * 2 * 16 * 16 * (16 + 32)
    assert cost.n_bytes == 10 * (8 + 16) + 23 * (16 + 4) + 2 * 16
