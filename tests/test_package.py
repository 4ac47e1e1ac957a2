"""The package as it is imported and documented."""

from __future__ import annotations

import doctest
import importlib
import subprocess
import sys

import pytest

import vcgmm


def test_import_warns_of_nothing() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "import vcgmm"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_every_public_name_exists_and_is_documented() -> None:
    for name in vcgmm.__all__:
        assert getattr(vcgmm, name).__doc__, name


@pytest.mark.parametrize(
    "module",
    [
        "vcgmm.estimator",
        "vcgmm.building_blocks",
        "vcgmm.datasets.grid",
        "vcgmm.datasets.mixture",
        "vcgmm.data.opening",
        "vcgmm.coreset",
        "vcgmm.distributed.estimator",
    ],
)
def test_examples_in_docstrings(module: str) -> None:
    failed, attempted = doctest.testmod(importlib.import_module(module))
    assert attempted > 0
    assert failed == 0
