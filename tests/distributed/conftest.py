"""Two clusters, each made once: two workers in this process, and two processes behind real TCP."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from distributed import Client, LocalCluster


def pytest_itemcollected(item: pytest.Item) -> None:
    """Fits over Dask are held to local ones on the CPU, to the last digits."""
    item.add_marker(pytest.mark.on_cpu)


@pytest.fixture(scope="session")
def client() -> Iterator[Client]:
    """Workers are threads of this process: quick, and coverage sees what they do."""
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=2,
            processes=False,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@contextmanager
def two_processes() -> Iterator[Client]:
    """Workers that share nothing with this process, nor with each other, but TCP."""
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            protocol="tcp://",
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(scope="session")
def tcp_client() -> Iterator[Client]:
    with two_processes() as client:
        yield client


@pytest.fixture
def mortal_client() -> Iterator[Client]:
    """For a test that kills workers: on a busy machine their nannies may fail to start new ones."""
    with two_processes() as client:
        yield client


@pytest.fixture(scope="session", name="X")
def rows() -> np.ndarray:
    """Clusters that overlap a little, far from the origin, of different sizes."""
    rng = np.random.default_rng(7)
    centres = 5 * rng.normal(size=(40, 5)) + 100
    points = centres[(40 * rng.random(6000) ** 1.5).astype(int)] + rng.normal(size=(6000, 5))
    points.setflags(write=False)
    return points


@pytest.fixture(scope="session")
def weights() -> np.ndarray:
    rng = np.random.default_rng(8)
    values = 1000 * rng.gamma(1.0, size=6000) * (rng.random(6000) > 0.1)
    values.setflags(write=False)
    return values
