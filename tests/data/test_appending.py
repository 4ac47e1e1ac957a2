from __future__ import annotations

import errno
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vcgmm.data import appending as module
from vcgmm.data.appending import VECTOR_SUFFIXES, appending
from vcgmm.data.opening import open_vector
from vcgmm.data.writing import write_array


@pytest.mark.parametrize("suffix", VECTOR_SUFFIXES)
@pytest.mark.parametrize("dtype", [np.int32, np.float64])
def test_pieces_make_the_same_file_as_the_whole(tmp_path: Path, suffix: str, dtype: type) -> None:
    values = (np.random.default_rng(0).normal(size=1000) * 100).astype(dtype)
    with appending(tmp_path / f"pieces{suffix}", 1000, np.dtype(dtype), "label") as append:
        for piece in np.split(values, [0, 1, 500, 900]):
            append(piece)
        assert not (tmp_path / f"pieces{suffix}").exists()
    np.testing.assert_array_equal(np.asarray(open_vector(tmp_path / f"pieces{suffix}")).ravel(), values)
    if suffix != ".parquet":
        write_array(tmp_path / f"whole{suffix}", values, ["label"])
        assert (tmp_path / f"pieces{suffix}").read_bytes() == (tmp_path / f"whole{suffix}").read_bytes()


def test_groups_of_rows_in_a_parquet_file_are_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyarrow import parquet

    monkeypatch.setattr(module, "GROUP", 100)
    with appending(tmp_path / "a.parquet", 250, np.dtype(np.int32), "label") as append:
        for first in range(0, 250, 10):
            append(np.arange(first, first + 10, dtype=np.int32))
    file = parquet.ParquetFile(tmp_path / "a.parquet")
    assert [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)] == [100, 100, 50]
    assert file.schema_arrow.names == ["label"]


class FullDisk(io.FileIO):
    """A file on a disk with room for a thousand bytes."""

    left = 1000

    def write(self, data: Any) -> int:
        if len(memoryview(data).cast("B")) > self.left:
            raise OSError(errno.ENOSPC, "No space left on device", self.name)
        self.left -= len(memoryview(data).cast("B"))
        return super().write(data)


@pytest.mark.parametrize("suffix", VECTOR_SUFFIXES)
@pytest.mark.parametrize("old", [False, True])
def test_a_full_disk_leaves_nothing_under_the_final_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, old: bool
) -> None:
    path = tmp_path / f"labels{suffix}"
    if old:
        path.write_bytes(b"old")
    monkeypatch.setattr(Path, "open", lambda self, *_, **__: FullDisk(self, "w"))

    def write() -> None:
        with appending(path, 10**6, np.dtype(np.int32), "label") as append:
            for first in range(0, 10**6, 1000):
                append(np.random.default_rng(first).integers(0, 2**30, 1000, dtype=np.int32))

    with pytest.raises(
        OSError, match=rf"labels{suffix} could not be written: no space left on device\. Nothing is"
    ):
        write()
    monkeypatch.undo()
    assert [file.name for file in tmp_path.iterdir()] == ([path.name] if old else [])
    if old:
        assert path.read_bytes() == b"old"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no such device here")
def test_the_systems_own_full_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # What is buffered fails as late as at the end.
    monkeypatch.setattr(Path, "open", lambda *_, **__: io.open("/dev/full", "wb"))  # noqa: UP020, SIM115
    with (
        pytest.raises(OSError, match="could not be written: no space left on device"),
        appending(tmp_path / "labels.npy", 3, np.dtype(np.int32), "label") as append,
    ):
        append(np.arange(3, dtype=np.int32))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_whatever_stops_it_leaves_what_was_there(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "labels.parquet"
    path.write_text("old")

    def write() -> None:
        with appending(path, 10, np.dtype(np.int32), "label") as append:
            append(np.arange(5, dtype=np.int32))
            raise error

    with pytest.raises(error):
        write()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_other_errors_of_the_system_pass_through(tmp_path: Path) -> None:
    with (
        pytest.raises(FileNotFoundError, match=r"the folder .* does not exist"),
        appending(tmp_path / "nowhere" / "a.npy", 1, np.dtype(np.int32), "label"),
    ):
        pass


def test_formats_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        pytest.raises(ValueError, match=r"a.fvecs is of an unknown kind: its name should end in .npy, .csv"),
        appending(tmp_path / "a.fvecs", 1, np.dtype(np.int32), "label"),
    ):
        pass
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with (
        pytest.raises(ImportError, match=r"pip install vcgmm\[io\]"),
        appending(tmp_path / "a.parquet", 1, np.dtype(np.int32), "label"),
    ):
        pass
    assert list(tmp_path.iterdir()) == []
