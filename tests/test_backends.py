"""Which backend a fit takes, and what is said where it cannot: without torch."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from vcgmm import VCGMM, backends
from vcgmm.backends import backend_of, like, predicting_backend_of

X = np.random.default_rng(0).normal(size=(40, 2))


@pytest.fixture
def no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if torch were not installed."""
    monkeypatch.setitem(sys.modules, "torch", None)
    for name in [name for name in sys.modules if name.startswith("vcgmm.gpu")]:
        monkeypatch.delitem(sys.modules, name)


@pytest.mark.parametrize("device", ["gpu", "cuda:", "cuda:x", 0, None, "CPU"])
def test_other_devices_are_refused(device: Any) -> None:
    with pytest.raises(ValueError, match=r"device=.* is not valid: choose 'cpu'"):
        VCGMM(2, device=device).fit(X)


def test_other_precisions_are_refused() -> None:
    with pytest.raises(ValueError, match=r"precision='fp8' is not known: choose from 'tf32'"):
        VCGMM(2, precision="fp8").fit(X)


def test_without_torch_a_gpu_is_an_error_that_says_what_to_install(no_torch: None) -> None:
    with pytest.raises(ImportError, match=r"device='cuda' needs torch .*pip install 'vcgmm\[gpu\]'.*device='cpu'"):
        VCGMM(2, device="cuda").fit(X)
    model = VCGMM(2, random_state=0).fit(X).set_params(device="cuda:1")
    with pytest.raises(ImportError, match="device='cuda:1' needs torch"):
        model.predict(X)


@pytest.mark.on_cpu  # it says of each fit where it runs
def test_auto_takes_the_cpu_where_there_is_nothing_else_and_says_so(
    no_torch: None, capsys: pytest.CaptureFixture[str]
) -> None:
    model = VCGMM(2, random_state=0, device="auto").fit(X)
    assert model.device_ == "cpu"
    assert capsys.readouterr().err == ""
    VCGMM(2, random_state=0, device="auto", verbose=1).fit(X)
    told = capsys.readouterr().err
    assert "device='auto' takes the CPU. device='cuda' needs torch and Triton, and torch is missing" in told
    VCGMM(2, random_state=0, verbose=1).fit(X)
    assert "device" not in capsys.readouterr().err
    expected = VCGMM(2, random_state=0).fit(X)
    assert model.means_.tobytes() == expected.means_.tobytes()
    assert model.predict(X).tolist() == expected.predict(X).tolist()


@pytest.mark.parametrize("changes", [{"search": "pointwise"}, {"dtype": "float64"}])
def test_auto_predicts_on_the_cpu_what_it_fitted_there(
    changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    there = SimpleNamespace(name="cuda:1", remark="")
    monkeypatch.setattr(backends, "make_gpu", lambda *_: there)
    assert predicting_backend_of(VCGMM(2, device="auto")) is there
    assert there.remark == "device='auto' takes cuda:1."
    taken = predicting_backend_of(VCGMM(2, device="auto", **changes))
    assert taken.name == "cpu"
    assert taken.remark.startswith("device='auto' takes the CPU: a GPU does not offer ")
    assert predicting_backend_of(VCGMM(2, device="cuda", **changes)) is there  # taken at its word


@pytest.mark.parametrize(
    "changes",
    [
        {"search": "pointwise"},
        {"dtype": "float64"},
    ],
)
def test_what_a_gpu_does_not_offer_is_said_and_auto_takes_the_cpu(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=rf"device='cuda' does not offer .*{next(iter(changes.values()))}.* yet"):
        VCGMM(2, device="cuda", **changes).fit(X)
    taken = backend_of(VCGMM(2, device="auto", **changes))
    assert taken.name == "cpu"
    assert taken.remark.startswith("device='auto' takes the CPU: a GPU does not offer ")


def test_auto_says_which_gpu_it_took(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "make_gpu", lambda *_: SimpleNamespace(name="cuda:1", remark=""))
    assert backend_of(VCGMM(2, device="auto")).remark == "device='auto' takes cuda:1."
    assert backend_of(VCGMM(2, device="cuda:1")).remark == ""


def test_streams_are_for_the_cpu() -> None:
    with pytest.raises(ValueError, match=r"device='cuda' does not offer partial_fit yet: use device='cpu'"):
        VCGMM(2, device="cuda").partial_fit(X)
    assert VCGMM(2, device="auto", random_state=0).partial_fit(X).device_ == "cpu"


def test_auto_says_what_it_took_in_predictions_and_streams_too(
    no_torch: None, capsys: pytest.CaptureFixture[str]
) -> None:
    model = VCGMM(2, random_state=0, device="auto").partial_fit(X)
    model.predict(X)
    assert capsys.readouterr().err == ""
    model.set_params(verbose=1)
    model.predict(X)
    assert capsys.readouterr().err.startswith("device='auto' takes the CPU. device='cuda' needs torch")
    model.partial_fit(X)
    told = capsys.readouterr().err
    assert told.startswith("device='auto' takes the CPU: a GPU does not offer partial_fit yet.\n")
    model.set_params(compute_labels=True).fit(X)
    assert capsys.readouterr().err.count("takes the CPU") == 1


def test_arrays_are_answered_by_arrays() -> None:
    labels = np.arange(3)
    assert like(X, labels) is labels


def test_libraries_that_torch_misses_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def find_spec(name: str, *_: Any) -> None:
        if name.startswith("vcgmm.gpu"):
            raise OSError("libcudart.so.13: cannot open shared object file")

    for name in [name for name in sys.modules if name.startswith("vcgmm.gpu")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [SimpleNamespace(find_spec=find_spec), *sys.meta_path])
    with pytest.raises(ImportError, match=r"needs torch, which cannot be loaded: libcudart.so.13: .*device='cpu'"):
        VCGMM(2, device="cuda").fit(X)
    assert "cannot be loaded" in backend_of(VCGMM(2, device="auto")).remark


@pytest.mark.parametrize("folder", ["algorithm", "kernels"])
def test_the_algorithm_knows_of_no_device(folder: str) -> None:
    files = sorted((Path(backends.__file__).parent / folder).rglob("*.py"))
    assert len(files) > 20
    known = re.compile(r"(?m)^\s*(import|from)\s+(torch|triton)\b|\bgpu\b|\bcuda\b|\bdevice\s*(==|!=|in\b|is\b|:)")
    assert [file.name for file in files if known.search(file.read_text())] == []
