"""What all tests share: how Hypothesis runs, threads, and where fits run."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from typing import Any

import numba
import pytest
from hypothesis import HealthCheck, settings

from vcgmm import VCGMM, parallel
from vcgmm.algorithm.search import beside
from vcgmm.parallel import Workers

# The same examples every time; fewer of them where the kernels run as plain Python.
settings.register_profile(
    "steady",
    derandomize=True,
    deadline=None,
    max_examples=20 if numba.config.DISABLE_JIT else 40,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("steady")

# What has yet to be compiled is compiled by the tests themselves, and nobody remarks on it.
beside._asked.update(("float32", "float64"))


@pytest.fixture(autouse=True)
def wake_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads share whatever there is, however little: else small problems would tell nothing about them."""
    monkeypatch.setattr(parallel, "WORTH_WAKING", 0)


@pytest.fixture(scope="session")
def device() -> Any:
    """A GPU, or the CPU where kernels are interpreted (make test-gpu-interpreted)."""
    torch = pytest.importorskip("torch", reason="tests of the GPU need torch")
    if os.environ.get("TRITON_INTERPRET") == "1":
        return torch.device("cpu")
    if not torch.cuda.is_available():
        pytest.skip("no GPU here: make test-gpu-interpreted runs the kernels without one")
    return torch.device("cuda", torch.cuda.current_device())


@pytest.fixture
def workers() -> Iterator[Workers]:
    with Workers(2) as threads:
        yield threads


def defaults() -> dict[str, Any]:
    """What parameters of a VCGMM are where nothing is said."""
    kept: Any = VCGMM.__init__
    found: dict[str, Any] = kept.__kwdefaults__
    return found


#: What they are for users.
OF_USERS = dict(defaults())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """What is marked `on_cpu` is said of the CPU alone, wherever other fits run."""
    found = defaults()
    before = dict(found)
    if item.get_closest_marker("on_cpu"):
        found.update(OF_USERS)
    try:
        return (yield)
    finally:
        found.update(before)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Fits of which no test says where they run: --device=auto makes them on a GPU, as far as it offers them."""
    parser.addoption("--device", default="cpu", help="where fits run that are told nothing")


def pytest_configure(config: pytest.Config) -> None:
    """Where fits run; and hear Ctrl-C, which tests send to themselves and others.

    What a shell runs in the background does not hear it.
    """
    device = config.getoption("--device")
    if device != "cpu":
        for name in ("cli", "distributed"):  # which take over the defaults when they are imported: those of users
            with suppress(ImportError):
                import_module(f"vcgmm.{name}")
        defaults().update(device=device, precision="fp32")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
