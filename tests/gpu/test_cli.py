"""Commands with --device: what they write is what the library makes of the same file there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

torch = pytest.importorskip("torch", reason="tests of the GPU need torch")
pytest.importorskip("triton", reason="tests of the GPU need Triton")

import vcgmm  # noqa: E402
from vcgmm import VCGMM  # noqa: E402
from vcgmm.cli import app  # noqa: E402
from vcgmm.datasets import make_grid  # noqa: E402


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    np.save(tmp_path / "rows.npy", make_grid(300, n_side=2, random_state=0)[0])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> Any:
    result = CliRunner(env={"COLUMNS": "200", "TERM": "dumb", "NO_COLOR": "1"}).invoke(app, list(arguments))
    assert result.exit_code == 0, result.output
    return result


@pytest.mark.parametrize("size", ["all", "150"])
def test_a_file_is_fitted_and_predicted_there(gpu: Any, folder: Path, size: str) -> None:
    there = ["--device", "cuda", "--precision", "fp32", "--coreset-size", size]
    told = run("fit", "rows.npy", "-k", "4", "--seed", "0", *there, "-o", "m", "--json")
    facts = json.loads(told.stdout)
    assert facts["device"] == str(gpu)
    model, source = VCGMM.load("m"), vcgmm.open("rows.npy")
    options: dict[str, Any] = {"device": "cuda", "precision": "fp32", "random_state": 0}
    expected = VCGMM(4, coreset_size=None if size == "all" else 150, **options).fit(source)
    assert model.means_.tobytes() == expected.means_.tobytes()
    assert model.variance_ == expected.variance_ == facts["variance"]
    run("predict", "m", "rows.npy", "-o", "labels.npy", "--device", "cuda", "-q")
    run("predict", "m", "rows.npy", "-o", "here.npy", "--device", "cpu", "-q")
    assert np.load("labels.npy").tolist() == np.load("here.npy").tolist() == expected.predict(source).tolist()
