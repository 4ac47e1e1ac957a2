"""When checkpoints are written, and what a failure costs: nothing but the checkpoint."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from vcgmm import VCGMM, Iteration
from vcgmm.persistence import Checkpointing, checkpointing
from vcgmm.progress import History

X = np.random.default_rng(0).normal(size=(300, 2))
OPTIONS: dict[str, Any] = {"random_state": 0, "tol": 0.0, "max_iter": 6}


class Clock:
    """A clock and a writer that takes time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.takes = 0.0
        self.written: list[Any] = []
        self.fails = False
        monkeypatch.setattr(checkpointing.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(checkpointing, "save_checkpoint", self.save)

    def save(self, _path: Path, _origin: Any, _history: Any, snapshot: Any) -> None:
        self.now += self.takes
        if self.fails:
            raise OSError("No space left on device")
        self.written.append(snapshot)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def keeper(every: float) -> Any:
    return Checkpointing("run.ckpt", every, None, History())  # type: ignore[arg-type]


def test_snapshots_are_written_when_their_time_has_come(clock: Clock) -> None:
    keep = keeper(60.0)
    for now in range(0, 300, 25):
        clock.now = float(now)
        keep(now, False)
    assert clock.written == [75, 150, 225]


def test_some_are_written_at_once_and_begin_a_new_interval(clock: Clock) -> None:
    keep = keeper(60.0)
    for now, at_once in ((0, True), (50, False), (55, True), (100, False), (114, False), (116, False)):
        clock.now = float(now)
        keep(now, at_once)
    assert clock.written == [0, 55, 116]


def test_without_an_interval_all_are_written(clock: Clock) -> None:
    keep = keeper(0.0)
    clock.takes = 5.0
    for number in range(4):
        keep(number, False)
    assert clock.written == [0, 1, 2, 3]


def test_writing_takes_a_tenth_of_the_time_at_most(clock: Clock) -> None:
    keep = keeper(60.0)
    clock.takes = 30.0
    while clock.now < 10_000.0:
        clock.now += 10.0
        keep(clock.now, False)
    assert np.diff(clock.written).tolist() == [300.0] * 33


def test_a_run_of_failures_is_told_once(clock: Clock) -> None:
    keep = keeper(0.0)
    told: list[list[str]] = []
    for fails in (False, True, True, True, False, True, True):
        clock.fails = fails
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            keep(0, False)
        told.append([str(warning.message) for warning in caught])
    assert [len(messages) for messages in told] == [0, 1, 0, 0, 0, 1, 0]
    assert "run.ckpt could not be written (No space left on device). The fit goes on" in told[1][0]


def fit(**options: Any) -> VCGMM:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return VCGMM(6, **{**OPTIONS, **options}).fit(X)


def test_a_fit_whose_folder_goes_away_comes_to_its_end(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()

    def remove(facts: Iteration) -> None:
        if facts.iteration == 2:
            shutil.rmtree(folder)

    with pytest.warns(RuntimeWarning, match=r"run.ckpt could not be written .*does not exist.* The fit goes on"):
        model = fit(checkpoint=folder / "run.ckpt", checkpoint_every=0, callbacks=remove)
    np.testing.assert_array_equal(model.means_, fit().means_)


def test_a_full_disk_leaves_the_checkpoint_of_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from safetensors import SafetensorError

    from vcgmm.persistence import container

    path = tmp_path / "run.ckpt"

    def full(*_: Any) -> None:
        raise SafetensorError("No space left on device")

    def fill(facts: Iteration) -> None:
        if facts.iteration == 3:  # the second iteration's has been written
            monkeypatch.setattr(container, "save_file", full)

    with pytest.warns(RuntimeWarning, match="No space left on device"):
        model = fit(checkpoint=path, checkpoint_every=0, callbacks=fill)
    monkeypatch.undo()
    assert [file.name for file in tmp_path.iterdir()] == ["run.ckpt"]
    told: list[Iteration] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        again = VCGMM.resume(path, callbacks=told.append)
    assert [facts.iteration for facts in told] == [3, 4, 5, 6]
    np.testing.assert_array_equal(again.means_, model.means_)


def test_the_first_and_the_last_state_are_written_however_long_the_interval(tmp_path: Path) -> None:
    path = tmp_path / "run.ckpt"
    sizes = []

    def look(_facts: Iteration) -> None:
        sizes.append(path.stat().st_mtime_ns)

    fit(checkpoint=path, checkpoint_every=1e9, callbacks=look)
    assert len(set(sizes)) == 1
    assert path.stat().st_mtime_ns > sizes[-1]


def test_a_process_that_changes_its_folder_writes_where_it_was_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    fit(checkpoint="run.ckpt", callbacks=lambda _: monkeypatch.chdir(tmp_path / "elsewhere"))
    assert sorted(file.name for file in tmp_path.rglob("*.ckpt")) == ["run.ckpt"]
    with pytest.warns(ConvergenceWarning):
        assert VCGMM.resume(tmp_path / "run.ckpt").n_iter_ == 6


def test_what_a_killed_process_left_is_replaced(tmp_path: Path) -> None:
    (tmp_path / ".run.writing.ckpt").write_bytes(b"half a file")
    fit(checkpoint=tmp_path / "run.ckpt")
    assert [file.name for file in tmp_path.iterdir()] == ["run.ckpt"]
