"""Checkpoints of `vcgmm fit`, also under kill -9."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from vcgmm import VCGMM, Iteration
from vcgmm.cli import app
from vcgmm.cli import fit as fit_command
from vcgmm.cli.errors import INTERRUPTED
from vcgmm.cli.options import parse_seconds
from vcgmm.persistence import container

FIT = ["fit", "rows.npy", "-k", "9", "--seed", "0", "-o", "new.vcgmm", "--tol", "0", "--max-iter", "6"]
SAVED = [*FIT, "--checkpoint", "run.ckpt", "--checkpoint-every", "0s"]
RESUME = ["fit", "--resume", "run.ckpt", "-o", "resumed.vcgmm"]


def arrays(path: Path | str) -> dict[str, Any]:
    """All of a model file but the times of its fit."""
    content = container.read(path, "model")
    tensors = {name: (a.dtype.str, a.shape, a.tobytes()) for name, a in content.tensors.items()}
    del tensors["history_.seconds"], content.header["attributes"]["timings_"]
    return {**tensors, "parameters": content.header["parameters"], "attributes": content.header["attributes"]}


@pytest.fixture
def stopped(folder: Path, rows: np.ndarray) -> Path:
    """A checkpoint of the fit above, stopped by its third iteration."""

    def stop(facts: Iteration) -> bool:
        return facts.iteration == 3

    path = folder / "run.ckpt"
    VCGMM(9, random_state=0, tol=0.0, max_iter=6, callbacks=stop, checkpoint=path, checkpoint_every=0.0).fit(rows)
    return path


def test_a_checkpoint_is_gone_when_the_model_is_there(runner: CliRunner, folder: Path) -> None:
    assert runner.invoke(app, FIT).exit_code == 0
    expected = arrays("new.vcgmm")
    result = runner.invoke(app, [*SAVED, "--force"])
    assert result.exit_code == 0, result.output
    assert arrays("new.vcgmm") == expected  # of the checkpoint nothing is left, in the model neither
    assert {file.name for file in folder.iterdir()} == {"core.vcgmm", "model.vcgmm", "new.vcgmm", "rows.npy"}
    assert "checkpoint" not in result.stdout


def test_a_fit_goes_on_without_its_data(runner: CliRunner, folder: Path, stopped: Path) -> None:
    assert runner.invoke(app, FIT).exit_code == 0
    Path("rows.npy").unlink()
    result = runner.invoke(app, [*RESUME, "--json", "-v"])
    assert result.exit_code == 0, result.output
    assert arrays("resumed.vcgmm") == arrays("new.vcgmm")
    assert not stopped.exists()
    facts = json.loads(result.stdout)
    assert (facts["n_samples"], facts["n_features"], facts["n_iter"]) == (2000, 2, 6)
    assert facts["checkpoint"] is None
    numbered = [line.split()[0] for line in result.stderr.splitlines() if line.split()[0].isdigit()]
    assert numbered == ["4", "5", "6"]
    assert [line.split()[0] for line in result.stderr.splitlines() if line.startswith("em")] == ["em"]


def test_the_table_of_a_resumed_fit(runner: CliRunner, folder: Path, stopped: Path) -> None:
    result = runner.invoke(app, [*RESUME, "--save-coreset", "--threads", "1"])
    assert "2,000 rows of 2 features, float32" in result.stdout
    model = VCGMM.load("resumed.vcgmm")
    assert len(model.coreset_) == 2000
    assert (model.n_threads, model.checkpoint) == (1, None)


def test_labels_that_cannot_be_computed_are_told(runner: CliRunner, folder: Path, rows: np.ndarray) -> None:
    VCGMM(9, coreset_size=500, compute_labels=True, checkpoint="run.ckpt", callbacks=lambda _: True).fit(rows)
    result = runner.invoke(app, RESUME)
    assert result.exit_code == 0
    assert "Warning: compute_labels=True, but a checkpoint holds the coreset only" in result.stderr


def test_the_checkpoint_stays_until_the_model_is_written(
    runner: CliRunner, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError("new.vcgmm could not be written: No space left on device")

    monkeypatch.setattr(fit_command.VCGMM, "save", full)
    result = runner.invoke(app, SAVED)
    assert (result.exit_code, Path("run.ckpt").exists()) == (1, True)
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    assert runner.invoke(app, RESUME).exit_code == 0
    assert runner.invoke(app, FIT).exit_code == 0
    assert arrays("resumed.vcgmm") == arrays("new.vcgmm")


def test_info_of_a_checkpoint(runner: CliRunner, folder: Path, stopped: Path) -> None:
    result = runner.invoke(app, ["info", "run.ckpt"])
    assert result.exit_code == 0, result.output
    assert "3 of at most 6" in result.stdout
    facts = json.loads(runner.invoke(app, ["info", "run.ckpt", "--json"]).stdout)
    assert (facts["kind"], facts["iteration"], facts["n_components"]) == ("checkpoint", 3, 9)
    assert (facts["attempt"], facts["n_init"], facts["converged"]) == (1, 1, False)


# ------------------------------------------------------------------------------------------------------- mistakes

USAGE: dict[str, tuple[list[str], str]] = {
    "data": (["rows.npy", *RESUME[1:]], "Invalid value for DATA: the fit goes on with the data"),
    "clusters": ([*RESUME[1:], "-k", "9"], "--n-components"),
    "iterations": ([*RESUME[1:], "--max-iter", "99"], "--max-iter"),
    "a tolerance": ([*RESUME[1:], "--tol", "0.1"], "--tol"),
    "a seed": ([*RESUME[1:], "--seed", "0"], "--seed"),
    "weights": ([*RESUME[1:], "--weights", "w.npy"], "--weights"),
    "labels": ([*RESUME[1:], "--compute-labels"], "--compute-labels"),
    "another checkpoint": ([*RESUME[1:], "--checkpoint", "other.ckpt"], "--checkpoint"),
    "another interval": ([*RESUME[1:], "--checkpoint-every", "5m"], "--checkpoint-every"),
    "both in one": (["--resume", "run.ckpt", "-o", "run.ckpt", "--force"], "run.ckpt is also what is read"),
    "nothing": (["-o", "new.vcgmm", "-k", "9"], "give rows to fit to, or a checkpoint to --resume"),
    "an interval alone": ([*FIT[1:], "--checkpoint-every", "60s"], "give the file to write too: --checkpoint"),
    "no interval": ([*SAVED[1:-1], "soon"], "is no length of time"),
    "a checkpoint that exists": ([*SAVED[1:]], "run.ckpt exists; go on from it with --resume run.ckpt"),
    "a checkpoint for a model": ([*FIT[1:], "--checkpoint", "new.vcgmm"], "new.vcgmm is also the output"),
    "a checkpoint for the data": ([*FIT[1:], "--checkpoint", "rows.npy", "-f"], "is also what is read"),
    "a folder": ([*FIT[1:], "--checkpoint", "."], "is a directory"),
    "a folder that is not there": ([*FIT[1:], "--checkpoint", "no/run.ckpt"], "does not exist"),
}


@pytest.mark.parametrize("name", USAGE)
def test_mistakes_in_the_arguments_exit_with_two(
    runner: CliRunner, folder: Path, stopped: Path, name: str
) -> None:
    arguments, message = USAGE[name]
    before = stopped.read_bytes()
    result = runner.invoke(app, ["fit", *arguments])
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert stopped.read_bytes() == before
    assert not Path("resumed.vcgmm").exists()


FAILURES: dict[str, tuple[list[str], str]] = {
    "no checkpoint": (["--resume", "none.ckpt"], "none.ckpt: No such file"),
    "a model": (["--resume", "model.vcgmm"], "model.vcgmm holds a model, but a checkpoint is needed here"),
    "rows": (["--resume", "rows.npy"], "rows.npy is not a file of vcgmm"),
    "a checkpoint as rows": (["run.ckpt", "-k", "9"], "go on from it with vcgmm fit --resume run.ckpt"),
    "a coreset to write to": (
        ["rows.npy", "-k", "9", "-f", "--checkpoint", "core.vcgmm"],
        "checkpoint='core.vcgmm' exists and is no checkpoint",
    ),
}


@pytest.mark.parametrize("name", FAILURES)
def test_failures_are_one_line(runner: CliRunner, folder: Path, stopped: Path, name: str) -> None:
    arguments, message = FAILURES[name]
    result = runner.invoke(app, ["fit", "-q", "-o", "resumed.vcgmm", *arguments])
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    assert message in result.stderr
    assert not Path("resumed.vcgmm").exists()


def test_an_old_checkpoint_is_overwritten_with_force(runner: CliRunner, folder: Path, stopped: Path) -> None:
    assert runner.invoke(app, [*SAVED, "--force"]).exit_code == 0
    assert not stopped.exists()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0.0), ("90", 90.0), ("60s", 60.0), ("1.5 s", 1.5), ("5m", 300.0), ("2min", 120.0), (".5h", 1800.0),
     (60.0, 60.0)],
)  # fmt: skip
def test_lengths_of_time(text: str | float, seconds: float) -> None:
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "s", "1d", "-5", "1e3", "nan", "5m30s", "1.2.3"])
def test_what_is_no_length_of_time(text: str) -> None:
    with pytest.raises(Exception, match="is no length of time"):
        parse_seconds(text)


# -------------------------------------------------------------------------------------------------- a real process


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "vcgmm", "fit", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(process: subprocess.Popen[str], beginning: str) -> None:
    """Read the process's stderr up to a line that begins like this."""
    assert process.stderr is not None
    for line in process.stderr:
        if line.strip().startswith(beginning):
            return
    raise AssertionError(f"no line began with {beginning!r}")


BIG = ["rows.npy", "-k", "60", "--seed", "1", "--coreset-size", "3000", "--tol", "0", "--max-iter", "150"]
BIG_SAVED = [*BIG, "--checkpoint", "run.ckpt", "--checkpoint-every", "0", "-v", "-o", "model.vcgmm"]


@pytest.fixture
def big(tmp_path: Path) -> Path:
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).normal(size=(5000, 8)).astype(np.float32))
    return tmp_path


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_killed_fit_ends_with_the_same_bits(big: Path) -> None:
    process = start(big, *BIG_SAVED, "--threads", "1")
    try:
        wait_for(process, "5 ")
        process.kill()
        process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode == -signal.SIGKILL
    assert not (big / "model.vcgmm").exists()
    (big / "rows.npy").rename(big / "moved.npy")

    again = start(big, "--resume", "run.ckpt", "-o", "model.vcgmm", "--threads", "2", "-v", "--json")
    out, err = again.communicate(timeout=300)
    assert again.returncode == 0, err
    assert json.loads(out)["n_iter"] == 150
    assert not any(line.split()[:1] == ["3"] for line in err.splitlines())  # it did not begin anew
    assert {file.name for file in big.iterdir()} == {"moved.npy", "model.vcgmm"}

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options: dict[str, Any] = {"coreset_size": 3000, "tol": 0.0, "max_iter": 150, "n_threads": 2}
        VCGMM(60, random_state=1, **options).fit(np.load(big / "moved.npy")).save(big / "alone.vcgmm")
    assert arrays(big / "model.vcgmm") == arrays(big / "alone.vcgmm")


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_ctrl_c_leaves_a_checkpoint_of_the_same_state(big: Path) -> None:
    process = start(
        big, *BIG_SAVED[:-2], "--max-iter", "100000000", "-o", "model.vcgmm", "--threads", "1", "--json"
    )
    try:
        wait_for(process, "3 ")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode == 0, err
    facts = json.loads(out)
    assert (facts["stopped"], facts["checkpoint"]) == (True, "run.ckpt")
    model = VCGMM.load(big / "model.vcgmm")
    # Stopped at once again, by the first iteration after it.
    again = VCGMM.resume(big / "run.ckpt", callbacks=lambda _: True)
    assert again.n_iter_ == model.n_iter_ + 1
    np.testing.assert_array_equal(again.lower_bounds_[:-1], model.lower_bounds_)


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_ctrl_c_twice_tells_how_to_go_on(big: Path) -> None:
    process = start(big, *BIG_SAVED, "--n-warmup", "100000000")
    try:
        wait_for(process, "seeding")
        while not (big / "run.ckpt").exists():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        wait_for(process, "Stopping after this iteration")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode == INTERRUPTED, err
    assert "no model was written. Go on with: vcgmm fit --resume run.ckpt" in err
    assert "Traceback" not in err
