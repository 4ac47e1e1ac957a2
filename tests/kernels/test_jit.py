from __future__ import annotations

import numba
import numpy as np
import pytest

from vcgmm.kernels import jit
from vcgmm.kernels.coreset.moments import weighted_sum
from vcgmm.kernels.jit import Part, kernel, part
from vcgmm.kernels.nearest.all_centres import squared_norms
from vcgmm.kernels.parts.exact_sums import add_moments, add_point, rounding_constant

pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="is about compiled code")

MAGIC, ROW = rounding_constant(np.full((1, 4), 1e3)), np.zeros(1, np.int32)
MASS_MAGIC = float(rounding_constant(np.array(1e3)))


def compiled_like(kernel, function):
    """Compile `function` afresh, with the options of an existing kernel and without its cache."""
    compiled = kernel.outer if isinstance(kernel, Part) else kernel
    options = {name: value for name, value in compiled.targetoptions.items() if name != "nopython"}
    return numba.njit(**options)(function)


def assert_multiples_of_the_quantum(*sums: np.ndarray) -> None:
    for values in sums:
        assert (values != 0).any()
        assert (values * 2.0**40 % 1 == 0).all()


def test_points_are_added_strictly_inside_a_fast_kernel() -> None:
    add_strictly = compiled_like(add_point, add_point.py_func)

    def add_all(totals, masses, points, means, magic, row, mass_magic):
        for i in range(points.shape[0]):
            add_strictly(totals, masses, 0, points, i, means, 0.3, magic, row, mass_magic)

    totals, masses = np.zeros((1, 4)), np.zeros(1)
    points, means = np.random.default_rng(0).random((50, 4)), np.zeros((1, 4))
    compiled_like(weighted_sum, add_all)(totals, masses, points, means, MAGIC, ROW, MASS_MAGIC)
    assert_multiples_of_the_quantum(totals, masses)


def test_local_sums_are_added_strictly_inside_a_fast_kernel() -> None:
    add_strictly = compiled_like(add_moments, add_moments.py_func)

    def add_all(totals, masses, sums, means, magic, row, mass_magic):
        clusters, sum_masses = np.zeros(sums.shape[0], np.int32), np.full(sums.shape[0], 0.3)
        add_strictly(totals, masses, clusters, sums, sum_masses, means, 7, magic, row, mass_magic)

    totals, masses = np.zeros((1, 4)), np.zeros(1)
    sums, means = np.random.default_rng(1).random((2, 50, 4))
    compiled_like(weighted_sum, add_all)(totals, masses, sums, means, MAGIC, ROW, MASS_MAGIC)
    assert_multiples_of_the_quantum(totals, masses)


@part
def doubled(values: np.ndarray) -> None:
    """Twice as much."""
    for i in range(len(values)):
        values[i] *= 2


@kernel
def quadrupled(values: np.ndarray) -> None:
    doubled(values)
    doubled(values)


def test_a_part_is_called_by_kernels_and_from_python() -> None:
    values = np.arange(3.0)
    quadrupled(values)
    assert values.tolist() == [0.0, 4.0, 8.0]
    doubled(values)
    assert values.tolist() == [0.0, 8.0, 16.0]
    assert (doubled.__name__, doubled.__doc__) == ("doubled", "Twice as much.")


def test_only_the_version_for_python_has_a_way_in_from_there() -> None:
    assert isinstance(doubled, Part)
    assert doubled.inner.targetoptions["no_cpython_wrapper"]
    assert "no_cpython_wrapper" not in doubled.outer.targetoptions
    assert doubled.inner.py_func.__qualname__ != doubled.outer.py_func.__qualname__  # the cache goes by the name


def test_a_kernel_is_compiled_anew_where_a_part_of_it_may_have_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    squared_norms(np.ones((2, 3)), np.empty(2))
    assert jit._compiled(squared_norms.py_func)._cache._cache_file._load_index()  # what was compiled is kept
    files = jit._state_of_all_files()
    assert {"jit.py", "nearest/all_centres.py", "parts/vectors.py"} <= {name for name, _, _ in files}
    name, time, size = files[-1]
    monkeypatch.setattr(jit, "_state_of_all_files", lambda: (*files[:-1], (name, time + 1, size)))
    assert not jit._compiled(squared_norms.py_func)._cache._cache_file._load_index()
