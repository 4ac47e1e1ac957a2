from __future__ import annotations

import importlib.util
import re
import runpy
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
from matplotlib.image import imread
from sklearn.cluster import MiniBatchKMeans
from typer.testing import CliRunner

import vcgmm
from vcgmm.cli import app, demo, main

if TYPE_CHECKING:
    from pathlib import Path


def test_demo_prints_a_table_and_writes_a_picture(runner: CliRunner, tmp_path: Path) -> None:
    picture = tmp_path / "picture.png"
    result = runner.invoke(app, ["demo", "--samples", "20000", "--seed", "1", "--output", str(picture)])
    assert result.exit_code == 0, result.output

    rows = {line.split()[0]: line.split() for line in result.stdout.splitlines() if line.strip()}
    assert {"vcgmm", "MiniBatchKMeans", "Picture:"} <= rows.keys()
    # The steps of vcgmm are timed; only the total is known of the other.
    assert "–" not in rows["vcgmm"]
    assert rows["MiniBatchKMeans"].count("–") == 3
    truth = float(re.search(r"error of ([\d.e+]+)\)", result.stdout)[1])  # type: ignore[index]
    errors = {name: float(rows[name][-1]) for name in ("vcgmm", "MiniBatchKMeans")}
    # Not far from the centres that made the data, which a few clusters merged or split can triple.
    assert 0.9 * truth < errors["vcgmm"] < 3 * truth
    assert errors["MiniBatchKMeans"] > 0.9 * truth

    image = imread(picture)
    assert min(image.shape[:2]) > 500
    assert image[..., :3].std() > 0.1


def test_the_same_seed_gives_the_same_errors(runner: CliRunner, tmp_path: Path) -> None:
    picture = tmp_path / "picture.png"
    command = ["demo", "--samples", "5000", "--threads", "1", "--force", "--output", str(picture)]
    results = [runner.invoke(app, command) for _ in range(2)]
    errors = [
        [line.split()[-1] for line in result.stdout.splitlines() if re.match(r" *(vcgmm|MiniBatch)", line)]
        for result in results
    ]
    assert len(errors[0]) == 2
    assert errors[0] == errors[1]


def test_an_existing_picture_is_kept(runner: CliRunner, tmp_path: Path) -> None:
    picture = tmp_path / "picture.png"
    picture.write_text("mine")
    result = runner.invoke(app, ["demo", "--output", str(picture)])
    assert result.exit_code == 2
    assert "--force" in result.stderr
    assert picture.read_text() == "mine"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--samples", "100"], "--samples"),
        (["--threads", "0"], "--threads"),
        (["--seed", "-1"], "--seed"),
        (["--output", "picture.nonsense"], "does not end in a known format"),
        (["--output", "picture"], "does not end in a known format"),
        (["--output", "no-such-folder/picture.png"], "does not exist"),
        (["--output", "."], "directory"),
    ],
)
def test_mistakes_are_named_without_a_traceback(runner: CliRunner, arguments: list[str], message: str) -> None:
    result = runner.invoke(app, ["demo", *arguments])
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output


def test_missing_matplotlib_is_one_line(runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "matplotlib" else find_spec(name)
    )
    result = runner.invoke(app, ["demo"])
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.strip().count("\n") == 0
    assert "pip install vcgmm[plot]" in result.stderr


def test_distances_of_minibatch_kmeans_are_counted_with_its_own_sample_size() -> None:
    model = MiniBatchKMeans(demo.N_CLUSTERS, batch_size=demo.BATCH_SIZE, max_iter=1)
    model.fit(np.random.default_rng(0).normal(size=(13_000, 2)))
    assert model._init_size == demo.INIT_SIZE
    # C = 625, 8 trials a centre: 12288·(1 + 624·8) for the seeds, 12288·625 for the validation set, one step.
    assert demo._minibatch_distances(20_000, 1) == 12288 * 4993 + 12288 * 625 + 4096 * 625


def test_version(runner: CliRunner) -> None:
    result = runner.invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.stdout == f"vcgmm {vcgmm.__version__}\n"


def test_no_command_shows_the_help(runner: CliRunner) -> None:
    result = runner.invoke(app, [])
    assert "demo" in result.output


def test_entry_points(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["vcgmm", "--version"])
    with pytest.raises(SystemExit, match="0"):
        main()
    with pytest.raises(SystemExit, match="0"):
        runpy.run_module("vcgmm", run_name="__main__")
    assert capsys.readouterr().out == f"vcgmm {vcgmm.__version__}\n" * 2
