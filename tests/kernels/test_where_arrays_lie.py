"""Results do not depend on where in memory arrays happen to lie.

LLVM vectorises a loop that writes to one array and reads from another behind a check that they are not near each
other, and takes the numbers one by one where they are.  A sum of floats in such a loop would come out in another
order, and differ in its last bits, now and then.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

from vcgmm.kernels.cells.costs import natural_rows, statistics_rows
from vcgmm.kernels.cells.links import expected_statistics
from vcgmm.kernels.parts.distances import local_rows

#: Reports such sums in all that is compiled.
PROGRAM = Path(__file__).with_name("sums_in_code.py")

#: Rows, the last first: those are next to what is written first.
BACKWARDS = np.arange(20, dtype=np.int32)[::-1].copy()

WIDTHS = [1, 3, 7, 8, 9, 15, 16, 17, 20, 31, 33]


def side_by_side(first: np.ndarray, shape: tuple[int, ...], gap: int) -> tuple[np.ndarray, np.ndarray]:
    """A copy of an array, and after so many numbers an empty one of that shape."""
    room = np.zeros(first.size + gap + int(np.prod(shape)), first.dtype)
    copy = room[: first.size].reshape(first.shape)
    copy[:] = first
    return copy, room[first.size + gap :].reshape(shape)


@pytest.mark.parametrize("gap", [0, 1, 4, 16])
@pytest.mark.parametrize("D", WIDTHS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_about_an_origin(dtype: type, D: int, gap: int) -> None:
    rng = np.random.default_rng(D)
    n, ids = len(BACKWARDS), BACKWARDS
    rows, origin = rng.normal(size=(n, D)).astype(dtype), rng.normal(size=D).astype(dtype)

    def found(source: np.ndarray, out: np.ndarray) -> list[np.ndarray]:
        norms = [np.empty(n, dtype) for _ in range(4)]
        local_rows(source, ids, 0, n, origin, out, norms[0])
        statistics_rows(source, ids, 0, n, origin, 0, out, norms[1])
        expected_statistics(source, None, ids, 0, n, origin, out, norms[2])
        natural_rows(source, None, None, ids, origin, out, np.empty(n, dtype), norms[3])
        return [*norms, out]

    apart = found(rows, np.empty((n, D), dtype))
    together = found(*side_by_side(rows, (n, D), gap))
    for a, b in zip(apart, together, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="is about compiled code")
def test_no_sum_stands_in_a_loop_that_writes(tmp_path: Path) -> None:
    """Kernels of fits, predictions and coresets, compiled afresh for float32 and float64."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    answer = subprocess.run([sys.executable, str(PROGRAM)], env=environment, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    one, nested, *found = answer.stdout.splitlines()
    assert (one, nested) == ("sum_while_writing", "sums_while_writing"), "it finds no such sum where there is one"
    assert not found, f"sums in loops that write: {found}"
