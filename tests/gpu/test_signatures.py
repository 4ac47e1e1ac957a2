"""What the algorithm asks of a GPU it asks as of the CPU: the same names, with the same parameters."""

from __future__ import annotations

import dis
import inspect
from typing import Any

import pytest

pytest.importorskip("torch", reason="tests of the GPU need torch")
pytest.importorskip("triton", reason="tests of the GPU need Triton")

from vcgmm.algorithm.attempts import Attempts
from vcgmm.algorithm.coreset.local_points import LocalPoints
from vcgmm.algorithm.estep import Search, Steps
from vcgmm.algorithm.models.own import JointSearches, JointSteps
from vcgmm.algorithm.models.row_search import JointRowSearch
from vcgmm.algorithm.models.search import JointSearch
from vcgmm.algorithm.mstep import LocalStatistics, Statistics, as_used, weighted_products
from vcgmm.algorithm.passes.row_search import RowSearch
from vcgmm.algorithm.row_searches import JointRowSteps, LocalRowSearches, RowSearches, RowSteps
from vcgmm.algorithm.search.blocked import BlockedSearch
from vcgmm.algorithm.seeding.relocation import Relocating
from vcgmm.algorithm.seeding.two_level import Cells, Divisible
from vcgmm.algorithm.starts.row_sample import RowSample, Sample
from vcgmm.backends import CPU, Backend
from vcgmm.evaluation import Evaluator
from vcgmm.gpu.attempts import DeviceAttempts
from vcgmm.gpu.backend import GPU
from vcgmm.gpu.coreset.passes import DevicePasses
from vcgmm.gpu.coreset.points import DevicePoints
from vcgmm.gpu.device.arrays import DeviceArray
from vcgmm.gpu.passes.row_search import DeviceJointRowSearch, DeviceRowSearch, DeviceRowSearches
from vcgmm.gpu.prediction.evaluation import DeviceEvaluator
from vcgmm.gpu.prediction.joint_evaluation import DeviceJointEvaluator
from vcgmm.gpu.search.blocked import DeviceSearch
from vcgmm.gpu.search.joints import DeviceJointSearch
from vcgmm.gpu.search.statistics import DeviceStatistics
from vcgmm.gpu.seeding.two_level import DeviceCells
from vcgmm.gpu.start import DeviceSample
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
    (Statistics, LocalStatistics, DeviceStatistics),
    (Backend, CPU, GPU),
    (Evaluator, Evaluator, DeviceEvaluator),  # no protocol: all that the CPU's offers
    (JointEvaluator, JointEvaluator, DeviceJointEvaluator),
]

#: Members that the algorithm asks for of classes that offer more.
SOME = [
    (LocalPoints, DevicePoints, ["put_back", "forget"]),
    (Attempts, DeviceAttempts, ["run", "row_searches", "_start", "_search", "_improve", "_restore", "_shared"]),
]


def parameters(function: Any) -> list[tuple[str, Any, Any]]:
    """Names, kinds and defaults."""
    return [(one.name, one.kind, one.default) for one in inspect.signature(function).parameters.values()]


def annotated(kind: type) -> set[str]:
    """Attributes that a class or one of its bases annotates."""
    return {name for base in kind.__mro__ for name in inspect.get_annotations(base)}


def offered(kind: type) -> set[str]:
    """All that objects of a class have: members of it, what it annotates, and what its methods set."""
    methods = [one for base in kind.__mro__ for one in vars(base).values() if inspect.isfunction(one)]
    code = [step for one in methods for step in dis.get_instructions(one)]
    return {*dir(kind), *annotated(kind), *(step.argval for step in code if step.opname == "STORE_ATTR")}


@pytest.mark.parametrize(("asked", "on_cpu", "on_gpu"), ASKED)
def test_a_gpu_is_asked_as_the_cpu_is(asked: type, on_cpu: type, on_gpu: type) -> None:
    asked_for = {*dir(asked), *annotated(asked)}
    names = sorted(name for name in asked_for if not name.startswith("_") or name == "__len__")
    assert names
    for name in names:
        assert name in offered(on_cpu), name
        assert name in offered(on_gpu), name
        member = getattr(asked, name, None)
        if inspect.isfunction(member):
            for answer in (on_cpu, on_gpu):
                assert parameters(getattr(answer, name)) == parameters(member), name
        elif isinstance(member, property):
            assert not inspect.isfunction(getattr(on_gpu, name, None)), name


@pytest.mark.parametrize(("on_cpu", "on_gpu", "names"), SOME)
def test_some_members_are_asked_for_alike(on_cpu: type, on_gpu: type, names: list[str]) -> None:
    for name in names:
        if not isinstance(getattr(on_cpu, name), property):
            assert parameters(getattr(on_gpu, name)) == parameters(getattr(on_cpu, name)), name


@pytest.mark.parametrize("function", [weighted_products, as_used])
def test_functions_of_arrays_are_asked_for_alike(function: Any) -> None:
    there = function.dispatch(DeviceArray)
    assert there is not function.dispatch(object)
    assert parameters(there) == parameters(function)


def test_passes_over_rows_give_what_the_algorithm_asks_for() -> None:
    assert [name for name, *_ in parameters(DevicePasses.moments)] == ["self", "rows", "weights"]
    assert [name for name, *_ in parameters(DevicePasses.deviations)] == ["self", "rows", "mean"]
