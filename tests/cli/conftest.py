from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from vcgmm import VCGMM, lightweight_coreset, save_coreset
from vcgmm.datasets import make_grid


def pytest_itemcollected(item: pytest.Item) -> None:
    """Models that commands write are held to the last bit of fits on the CPU; tests/gpu has those of a GPU."""
    item.add_marker(pytest.mark.on_cpu)


@pytest.fixture
def runner() -> CliRunner:
    # Wide and plain, so that messages are found in one piece.
    return CliRunner(env={"COLUMNS": "200", "TERM": "dumb", "NO_COLOR": "1"})


@pytest.fixture(scope="session")
def rows() -> np.ndarray:
    return make_grid(2000, n_side=3, random_state=0)[0]


@pytest.fixture(scope="session")
def fitted(rows: np.ndarray) -> VCGMM:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return VCGMM(9, coreset_size=800, random_state=0).fit(rows)


@pytest.fixture
def folder(tmp_path: Path, rows: np.ndarray, fitted: VCGMM, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with rows, a model and a coreset."""
    np.save(tmp_path / "rows.npy", rows)
    fitted.save(tmp_path / "model.vcgmm", coreset=True)
    save_coreset(lightweight_coreset(rows, 300, random_state=0), tmp_path / "core.vcgmm")
    monkeypatch.chdir(tmp_path)
    return tmp_path
