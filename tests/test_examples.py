"""The examples run, and do what they say."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread

from vcgmm import VCGMM

EXAMPLES = Path(__file__).parent.parent / "examples"


def load(name: str) -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))


def test_every_example_is_tested() -> None:
    assert {file.stem for file in EXAMPLES.glob("*.py")} == {"colour_quantisation", "vector_index"}


def test_colour_quantisation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example = load("colour_quantisation")
    output = tmp_path / "colours.png"
    example["main"](["--colours", "4", "16", "--shrink", "8", "--output", str(output)])
    lines = capsys.readouterr().out.splitlines()
    few, many = (float(line.split(":")[1].split()[0]) for line in lines[1:3])
    assert 15 < few < many < 40
    assert imread(output)[..., :3].std() > 0.1


def test_a_palette_finds_the_colours_that_are_there() -> None:
    quantise = load("colour_quantisation")["quantise"]
    colours = np.array([[255, 0, 0], [0, 200, 0], [20, 20, 250]], np.uint8)
    image = colours[np.random.default_rng(0).integers(3, size=(30, 40))]
    palette, places = quantise(image, 3)
    np.testing.assert_array_equal(palette[places], image)


@pytest.mark.parametrize("library", ["faiss", "numpy", "no faiss"])
def test_vector_index(library: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    if library == "faiss":
        pytest.importorskip("faiss")
    elif library == "no faiss":
        monkeypatch.setitem(sys.modules, "faiss", None)
    options = ["--samples", "3000", "--clusters", "16", "--queries", "50"]
    results = load("vector_index")["main"]([*options, *(["--numpy"] if library == "numpy" else [])])
    assert ("faiss" if library == "faiss" else "NumPy") in capsys.readouterr().out
    recalls = [result["recall"] for result in results]
    assert [result["probes"] for result in results] == [1, 2, 4, 8, 16]
    assert recalls == sorted(recalls)
    assert recalls[0] > 0.3
    # All clusters probed is every vector compared.
    assert recalls[-1] == pytest.approx(1.0, abs=0.005)


def test_vector_index_of_a_file(tmp_path: Path) -> None:
    np.save(tmp_path / "vectors.npy", np.random.default_rng(0).normal(size=(500, 4)).astype(np.float16))
    options = ["--data", str(tmp_path / "vectors.npy"), "--clusters", "4", "--queries", "20", "--numpy"]
    assert load("vector_index")["main"](options)[-1] == {"probes": 4, "recall": pytest.approx(1.0)}


def test_both_searches_find_the_same() -> None:
    pytest.importorskip("faiss")
    example = load("vector_index")
    vectors = example["make_vectors"](2000)
    model = VCGMM(20, random_state=0).fit(vectors)
    found = [example[name](model, vectors)(vectors[:50] + 0.1, 5, 3) for name in ("faiss_search", "numpy_search")]
    assert (found[0] == found[1]).mean() > 0.99
