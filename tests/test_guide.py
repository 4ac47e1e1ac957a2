"""What docs/guide.md tells to type works: its commands and its code, on smaller data of the same names."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from typer.testing import CliRunner

import vcgmm
from vcgmm.cli import app

GUIDE = (Path(__file__).parent.parent / "docs" / "guide.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ vcgmm (.+)$", GUIDE, flags=re.MULTILINE)
BLOCKS = re.findall(r"^```python\n(.+?)^```$", GUIDE, flags=re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rng = np.random.default_rng(0)
    np.save(tmp_path / "mnist.npy", rng.integers(0, 256, size=(300, 784), dtype=np.uint8))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_five_commands_from_a_file_to_labels(folder: Path) -> None:
    assert [command.split()[0] for command in COMMANDS] == ["info", "fit", "score", "plot", "predict"]
    runner = CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"})
    for command in COMMANDS:
        result = runner.invoke(app, shlex.split(command))
        assert result.exit_code == 0, result.output
    assert np.load("labels.npy").shape == (300,)
    assert {file.name for file in folder.iterdir()} == {"mnist.npy", "digits.vcgmm", "digits.png", "labels.npy"}


@pytest.mark.filterwarnings("ignore:The fit ended")
def test_the_code_runs(folder: Path) -> None:
    names: dict[str, Any] = {}
    with mpl.rc_context({"backend": "agg"}):
        for block in BLOCKS:
            exec(block, names)
    assert len(BLOCKS) == 14
    assert isinstance(names["model"], vcgmm.VCGMM)
    assert (folder / "two.png").exists()


def test_everything_that_is_linked_to_is_there() -> None:
    docs = Path(__file__).parent.parent / "docs"
    links = [link for link in re.findall(r"\]\(([^)#]+)", GUIDE) if not link.startswith("http")]
    assert len(links) > 6
    for link in links:
        assert (docs / link).exists(), link
    for anchor in re.findall(r"\]\(#([^)]+)", GUIDE):
        headings = {
            re.sub(r"[^\w -]", "", line.lstrip("# ").lower()).replace(" ", "-") for line in GUIDE.split("\n")
        }
        assert anchor in headings, anchor


def test_pictures_are_small() -> None:
    images = list((Path(__file__).parent.parent / "docs" / "images").glob("*"))
    new = [image for image in images if image.name != "demo.png"]
    assert len(new) > 4
    assert max(image.stat().st_size for image in new) < 150_000
