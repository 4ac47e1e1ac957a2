from __future__ import annotations

import os
from pathlib import Path

import pytest

from vcgmm.data.atomic import replacing


def test_a_new_file_appears_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "result.csv"
    with replacing(path) as temporary:
        temporary.write_text("new")
        assert not path.exists()
        assert temporary.suffix == ".csv"
    assert [file.name for file in tmp_path.iterdir()] == ["result.csv"]
    assert path.read_text() == "new"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_the_old_file_stays_when_writing_fails(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "result.csv"
    path.write_text("old")

    def fail() -> None:
        with replacing(path) as temporary:
            temporary.write_text("half")
            raise error

    with pytest.raises(error):
        fail()
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["result.csv"]


def test_what_was_left_under_a_name_of_its_own_is_replaced(tmp_path: Path) -> None:
    (tmp_path / ".result.writing.csv").write_text("left by a process that was killed")
    with replacing(tmp_path / "result.csv", "writing") as temporary:
        assert temporary.read_text() == ""
        temporary.write_text("new")
    assert [file.name for file in tmp_path.iterdir()] == ["result.csv"]
    assert (tmp_path / "result.csv").read_text() == "new"


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    path, link = tmp_path / "real.txt", tmp_path / "link.txt"
    path.write_text("old")
    link.symlink_to(path)
    with replacing(link) as temporary:
        temporary.write_text("new")
    assert link.is_symlink()
    assert path.read_text() == "new"


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_modes_are_those_of_the_old_file_or_of_any_new_one(tmp_path: Path) -> None:
    plain, path = tmp_path / "plain", tmp_path / "result"
    plain.touch()
    for expected in (plain.stat().st_mode, 0o100640):
        with replacing(path) as temporary:
            temporary.unlink()
            temporary.touch(mode=0o600)
        assert path.stat().st_mode == expected
        path.chmod(0o640)


@pytest.mark.parametrize("where", ["/dev/null", "."])
def test_only_files_are_replaced(where: str) -> None:
    with pytest.raises(OSError, match="not a regular file"), replacing(where):
        pass


def test_the_folder_must_be_there(tmp_path: Path) -> None:
    with (
        pytest.raises(FileNotFoundError, match=r"the folder .*nowhere does not exist"),
        replacing(tmp_path / "nowhere" / "file"),
    ):
        pass
