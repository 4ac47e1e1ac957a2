"""Commands over everything that can be opened."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from click.testing import Result
from pyarrow import parquet
from typer.testing import CliRunner

from vcgmm import VCGMM, lightweight_coreset, load_coreset, quantization_error
from vcgmm.cli import app


def run(runner: CliRunner, *arguments: Any, code: int = 0, **options: Any) -> Result:
    result = runner.invoke(app, [str(argument) for argument in arguments], **options)
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def files(folder: Path, rows: np.ndarray) -> Path:
    weights = np.arange(len(rows)) % 3
    table = pa.table({"x": rows[:, 0], "y": rows[:, 1], "w": weights})
    parquet.write_table(table, "table.parquet")
    np.savetxt("table.csv", np.column_stack([rows, weights]), delimiter=",", header="x,y,w", fmt="%.9g")
    Path("parts").mkdir()
    for i, part in enumerate(np.array_split(rows, 3)):
        np.save(f"parts/{i}.npy", part)
    return folder


@pytest.mark.parametrize("data", ["parts", "parts/*.npy", "table.parquet:x,y", "parts/[0-2].npy"])
def test_a_model_of_files(runner: CliRunner, files: Path, rows: np.ndarray, data: str) -> None:
    options = ("-k", "9", "--coreset-size", "500", "--seed", "0")
    result = run(runner, "fit", data, *options, "-o", "a.vcgmm")
    assert "2,000 rows of 2 features, float32" in result.stdout
    expected = VCGMM(9, coreset_size=500, random_state=0).fit(rows)
    np.testing.assert_array_equal(VCGMM.load("a.vcgmm").means_, expected.means_)
    run(runner, "predict", "a.vcgmm", data, "-o", "labels.parquet")
    np.testing.assert_array_equal(parquet.read_table("labels.parquet")["label"], expected.predict(rows))
    facts = json.loads(run(runner, "score", "a.vcgmm", data, "--json").stdout)
    assert facts["n_samples"] == 2000
    assert facts["quantization_error"] == expected.quantization_error(rows)
    run(runner, "plot", "a.vcgmm", data, "-o", "a.png", "--dpi", "30")


@pytest.mark.parametrize("data", ["table.parquet", "table.parquet:x,y", "table.csv"])
def test_weights_from_a_column(runner: CliRunner, files: Path, rows: np.ndarray, data: str) -> None:
    weights = np.arange(len(rows)) % 3.0
    run(runner, "coreset", data, "-n", "300", "--weights", "w", "--seed", "0", "-o", "c.vcgmm")
    coreset = load_coreset("c.vcgmm")
    X = rows if data != "table.csv" else rows.astype(np.float64)
    expected = lightweight_coreset(X, 300, sample_weight=weights, random_state=0)
    np.testing.assert_array_equal(coreset.indices, expected.indices)
    np.testing.assert_allclose(coreset.weights, expected.weights)
    run(runner, "fit", data, "-k", "9", "--weights", "w", "--coreset-size", "500", "--seed", "0", "-o", "a.vcgmm")
    model = VCGMM.load("a.vcgmm")
    assert model.feature_names_in_.tolist() == ["x", "y"]
    assert model.counts_.sum() == pytest.approx(weights.sum(), rel=0.2)
    facts = json.loads(run(runner, "score", "a.vcgmm", data, "--weights", "w", "--json").stdout)
    error = facts["quantization_error"]
    assert error == pytest.approx(quantization_error(X, model.means_, weights))
    assert facts["mean_squared_distance"] == pytest.approx(error / weights.sum())


def test_info_of_many_files_and_of_columns(runner: CliRunner, files: Path) -> None:
    facts = json.loads(run(runner, "info", "parts", "--json").stdout)
    assert facts["bytes"] == sum(file.stat().st_size for file in Path("parts").iterdir())
    assert (facts["n_samples"], facts["columns"]) == (2000, None)
    assert json.loads(run(runner, "info", "parts/*.npy", "--json").stdout)["bytes"] == facts["bytes"]
    text = run(runner, "info", "table.parquet:y,x").stdout
    assert "y, x" in text
    assert "read in blocks" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["table.parquet:z"], "table.parquet has no column 'z': it has the columns x, y, w"),
        (["table.csv", "--weights", "v"], "table.csv has no column 'v'"),
        (["parts", "--weights", "w"], "w does not exist"),
        (["nothing/*.npy"], "nothing/*.npy holds no files"),
    ],
)
def test_mistakes_are_one_line(runner: CliRunner, files: Path, arguments: list[str], message: str) -> None:
    result = run(runner, "fit", *arguments, "-k", "3", "-o", "a.vcgmm", "-q", code=1)
    assert result.stderr.startswith("Error: ")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert not Path("a.vcgmm").exists()


def test_a_full_disk_leaves_no_labels(runner: CliRunner, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device", ".labels.1234.npy")

    monkeypatch.setattr("vcgmm.data.appending.raw_bytes", full)
    result = run(runner, "predict", "model.vcgmm", "parts", "-o", "labels.npy", "-q", code=1)
    assert result.stderr.startswith(
        "Error: labels.npy could not be written: no space left on device. Nothing is left"
    )
    assert not [file for file in files.iterdir() if "labels" in file.name]
