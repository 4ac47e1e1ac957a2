"""A fit says that its kernels are compiled where they are, and is silent where they were before."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="tests of the GPU need torch")
triton = pytest.importorskip("triton", reason="tests of the GPU need Triton")

from vcgmm.gpu.compiling import COMPILING, Listener, told_of_compiling  # noqa: E402

pytestmark = pytest.mark.skipif(not hasattr(triton, "knobs"), reason="this Triton does not tell what it compiles")

FIT = """
import numpy as np
from vcgmm import VCGMM
VCGMM(9, device="cuda", verbose=1, random_state=0).fit(np.random.default_rng(0).normal(size=(2000, 4)))
"""


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What another listener has heard."""
    heard: list[Any] = []
    monkeypatch.setattr(triton.knobs.compilation, "listener", lambda **facts: heard.append(facts))
    return heard


def compiled(*, found: bool) -> None:
    triton.knobs.compilation.listener(src="a kernel", cache_hit=found)


def test_the_first_kernel_that_is_compiled_is_told_of(told: list[Any]) -> None:
    notes: list[str] = []
    with told_of_compiling(notes.append):
        compiled(found=True)
        assert not notes
        compiled(found=False)
        assert notes == [COMPILING]
        compiled(found=False)
    assert notes == [COMPILING]
    assert [facts["cache_hit"] for facts in told] == [True, False, False]
    assert {facts["src"] for facts in told} == {"a kernel"}


def test_nobody_is_told_afterwards(told: list[Any]) -> None:
    notes: list[str] = []
    with pytest.raises(KeyError), told_of_compiling(notes.append):
        raise KeyError
    compiled(found=False)
    assert not notes
    assert len(told) == 1


def test_fits_side_by_side_are_each_told_once_by_one_listener(told: list[Any]) -> None:
    notes: list[list[str]] = [[], []]
    with told_of_compiling(notes[0].append):
        listener = triton.knobs.compilation.listener
        with told_of_compiling(notes[1].append):
            assert isinstance(listener, Listener)
            assert triton.knobs.compilation.listener is listener
            compiled(found=False)
        compiled(found=False)
    assert notes == [[COMPILING], [COMPILING]]
    assert len(told) == 2


def test_a_fit_says_so_where_nothing_was_compiled_before(device: Any, tmp_path: Path) -> None:
    if device.type == "cpu":
        pytest.skip("the interpreter compiles nothing")
    environment = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path)}
    for says_so in (True, False):
        ran = subprocess.run(
            [sys.executable, "-c", FIT], env=environment, check=True, capture_output=True, text=True
        )
        assert (" ".join(COMPILING.split()) in " ".join(ran.stderr.split())) == says_so, ran.stderr
