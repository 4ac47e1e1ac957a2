"""What the algorithm asks of a GPU it asks as of the CPU: the same names, with the same parameters."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="tests of the GPU need torch")
pytest.importorskip("triton", reason="tests of the GPU need Triton")

import vcgmm
from vcgmm.algorithm.blocked import BlockedSearch
from vcgmm.algorithm.directions import RowSample, Sample
from vcgmm.algorithm.estep import Search, Steps
from vcgmm.algorithm.models.own import JointSearches, JointSteps
from vcgmm.algorithm.models.row_search import JointRowSearch
from vcgmm.algorithm.models.search import JointSearch
from vcgmm.algorithm.mstep import weighted_products
from vcgmm.algorithm.relocation import Relocating
from vcgmm.algorithm.row_search import RowSearch
from vcgmm.algorithm.row_searches import JointRowSteps, LocalRowSearches, RowSearches, RowSteps
from vcgmm.algorithm.two_level import Cells, Divisible
from vcgmm.backends import CPU, Backend
from vcgmm.evaluation import Evaluator
from vcgmm.gpu import functions
from vcgmm.gpu.backend import GPU
from vcgmm.gpu.evaluation import DeviceEvaluator
from vcgmm.gpu.joint_evaluation import DeviceJointEvaluator
from vcgmm.gpu.joint_search import DeviceJointSearch
from vcgmm.gpu.row_search import DeviceJointRowSearch, DeviceRowSearch, DeviceRowSearches
from vcgmm.gpu.search import DeviceSearch
from vcgmm.gpu.start import DeviceSample
from vcgmm.gpu.two_level import DeviceCells
from vcgmm.joint_evaluation import JointEvaluator

#: What is asked for, by whom it is answered on the CPU, and by whom on a GPU.
ASKED = [
    (Steps, BlockedSearch, DeviceSearch),
    (Search, BlockedSearch, DeviceSearch),
    (Relocating, BlockedSearch, DeviceSearch),
    (JointSteps, JointSearch, DeviceJointSearch),
    (JointSearches, JointSearch, DeviceJointSearch),
    (RowSearches, LocalRowSearches, DeviceRowSearches),
    (RowSteps, RowSearch, DeviceRowSearch),
    (JointRowSteps, JointRowSearch, DeviceJointRowSearch),
    (Divisible, Cells, DeviceCells),
    (Sample, RowSample, DeviceSample),
    (Backend, CPU, GPU),
    (Evaluator, Evaluator, DeviceEvaluator),  # no protocol: all that the CPU's offers
    (JointEvaluator, JointEvaluator, DeviceJointEvaluator),
]


def parameters(function: Any) -> list[tuple[str, Any, Any]]:
    """Names, kinds and defaults; an underscore says that one is not looked at."""
    found = inspect.signature(function).parameters.values()
    return [(one.name.lstrip("_"), one.kind, one.default) for one in found]


@pytest.mark.parametrize(("asked", "on_cpu", "on_gpu"), ASKED)
def test_a_gpu_is_asked_as_the_cpu_is(asked: type, on_cpu: type, on_gpu: type) -> None:
    names = [name for name in dir(asked) if not name.startswith("_") and callable(getattr(asked, name))]
    assert names or asked is Search
    for name in names:
        assert parameters(getattr(on_gpu, name)) == parameters(getattr(on_cpu, name)), name
        if asked is not on_cpu:
            assert parameters(getattr(on_gpu, name)) == parameters(getattr(asked, name)), name


def test_products_of_the_m_step_are_asked_for_alike() -> None:
    assert parameters(functions.weighted_products) == parameters(weighted_products)


@pytest.mark.parametrize("folder", ["algorithm", "kernels"])
def test_the_algorithm_knows_of_no_device(folder: str) -> None:
    files = sorted((Path(vcgmm.__file__).parent / folder).rglob("*.py"))
    assert len(files) > 20
    known = re.compile(r"(?m)^\s*(import|from)\s+(torch|triton)\b|\bgpu\b|\bcuda\b|\bdevice\s*(==|!=|in\b|is\b|:)")
    assert [file.name for file in files if known.search(file.read_text())] == []
