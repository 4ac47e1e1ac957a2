"""What all tests share: how Hypothesis runs, and threads."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import numba
import pytest
from hypothesis import HealthCheck, settings

from vcgmm import parallel
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


@pytest.fixture(autouse=True)
def wake_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads share whatever there is, however little: else small problems would tell nothing about them."""
    monkeypatch.setattr(parallel, "WORTH_WAKING", 0)


@pytest.fixture
def workers() -> Iterator[Workers]:
    with Workers(2) as threads:
        yield threads


def pytest_configure() -> None:
    """Hear Ctrl-C, which tests send to themselves and others: what a shell runs in the background does not."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
