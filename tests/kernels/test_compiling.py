from __future__ import annotations

import gc
import subprocess
import sys

import numba
import numpy as np
import pytest
from numba.core.errors import TypingError

from vcgmm.kernels.compiling import PartLibrary, PartLowering
from vcgmm.kernels.jit import _PART_OPTIONS, FAST, _compiled

pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="is about compiled code")


def part_and_kernel():
    """Both afresh, and neither kept in a file."""

    def add_one(values: np.ndarray) -> None:
        for i in range(len(values)):
            values[i] += 1

    part = _compiled(add_one, **_PART_OPTIONS, fastmath=FAST)

    def add_two(values: np.ndarray) -> None:
        part(values)
        part(values)

    return part, _compiled(add_two, cache=False, fastmath=FAST)


def library_of(function) -> object:
    (overload,) = function.overloads.values()
    return overload.library


def test_a_part_is_no_machine_code_of_its_own() -> None:
    part, kernel = part_and_kernel()
    values = np.arange(3.0)
    kernel(values)
    assert values.tolist() == [2.0, 3.0, 4.0]
    assert isinstance(library_of(part), PartLibrary)
    assert not isinstance(library_of(kernel), PartLibrary)


def test_a_part_serves_several_kernels() -> None:
    part, first = part_and_kernel()

    def add_one_and_double(values: np.ndarray) -> None:
        part(values)
        for i in range(len(values)):
            values[i] *= 2

    second = _compiled(add_one_and_double, cache=False, fastmath=FAST)
    values = np.arange(3.0)
    first(values)
    second(values)
    assert values.tolist() == [6.0, 8.0, 10.0]


@pytest.mark.parametrize("error", [AttributeError, TypeError])
def test_in_a_numba_of_another_make_parts_are_compiled_as_all_else(
    monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def nothing_as_it_was(self: PartLowering, state: object) -> None:
        raise error

    monkeypatch.setattr(PartLowering, "_lower", nothing_as_it_was)
    part, kernel = part_and_kernel()
    values = np.arange(3.0)
    kernel(values)
    assert values.tolist() == [2.0, 3.0, 4.0]
    assert not isinstance(library_of(part), PartLibrary)


WITHOUT_INSIDES = """
import sys

sys.modules["vcgmm.kernels.compiling"] = None
import numpy as np

from vcgmm.kernels.jit import FAST, _PART_OPTIONS, _compiled

part = _compiled(lambda values: values[0] + values[1], **_PART_OPTIONS, fastmath=FAST)
kernel = _compiled(lambda values: 2 * part(values), cache=False, fastmath=FAST)
assert "pipeline_class" not in _PART_OPTIONS
print(kernel(np.arange(3.0)))
"""


def test_kernels_do_without_what_cannot_be_imported() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_INSIDES], capture_output=True, check=True, text=True)
    assert done.stdout.split() == ["2.0"]


@pytest.mark.parametrize("enabled", [True, False])
def test_the_search_for_garbage_goes_on_after_compiling_if_it_did_before(enabled: bool) -> None:
    def add_text(values: np.ndarray) -> None:
        values[0] += "one"

    _, kernel = part_and_kernel()
    broken = _compiled(add_text, cache=False, fastmath=FAST)
    before = gc.isenabled()
    try:
        gc.enable() if enabled else gc.disable()
        kernel(np.arange(3.0))
        assert gc.isenabled() == enabled
        with pytest.raises(TypingError):
            broken(np.arange(3.0))
        assert gc.isenabled() == enabled
    finally:
        gc.enable() if before else gc.disable()
