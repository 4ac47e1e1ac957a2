"""Compile kernels, and print in which functions a sum of floats stands in a loop that writes to an array.

LLVM has vectorised such a loop behind a check where arrays lie, next to the sum or, where it stays the same,
outside an outer loop.  The first two lines are of functions made for the purpose, to show that both are found.
"""

from __future__ import annotations

import re
import warnings
from typing import Any

import numba
import numpy as np
from numba.core import codegen

from vcgmm import VCGMM, afkmc2, kmeans_plus_plus, lightweight_coreset, quantization_error, two_level
from vcgmm.algorithm.passes import routing
from vcgmm.kernels.jit import FAST

#: Names that LLVM gives to the check, to the blocks between it and a sum's end, and to the loops among these.
CHECK, BETWEEN, LOOPS = (
    "vector.memcheck",
    ("vector.", "vec.epilog", "middle.block"),
    ("vector.body", "vec.epilog.v"),
)

found: list[str] = []


def words_of(name: str) -> str:
    """The last word of a function's name as numba writes it: each with its length before it."""
    word, rest = "", name.removeprefix("_ZN")
    while length := re.match(r"\d+", rest):
        rest = rest[length.end() :]
        word, rest = rest[: int(length[0])], rest[int(length[0]) :]
    return word or name


def blocks_of(text: str) -> dict[str, list[str]]:
    """The instructions of a function's blocks. (One by one, llvmlite would count through all of them for each.)"""
    blocks: dict[str, list[str]] = {}
    for line in text.splitlines():
        if label := re.match(r'"?([\w.$-]+)"?:', line):
            instructions = blocks.setdefault(label[1], [])
        elif line.startswith("  ") and line.strip():
            instructions.append(line.strip())
    return blocks


def look_at(module: Any) -> None:
    """Note the functions of a module that have such a sum."""
    for function in module.functions:
        leads_from: dict[str, set[str]] = {}
        ends, writing = [], set()
        for block, instructions in blocks_of(str(function)).items():
            for label in re.findall(r'label %"?([\w.$-]+)', " ".join(instructions)):
                leads_from.setdefault(label, set()).add(block)
            if any("vector.reduce.fadd" in instruction for instruction in instructions):
                ends.append(block)
            if block.startswith(LOOPS) and any(i.startswith("store") for i in instructions):
                writing.add(block)
        seen = set(ends)
        while ends:
            for before in leads_from.get(ends.pop(), set()) - seen:
                seen.add(before)
                if before.startswith(CHECK) or before in writing:
                    found.append(words_of(function.name))
                elif before.startswith(BETWEEN):
                    ends.append(before)


finalize = codegen.CPUCodeLibrary._finalize_final_module


def look_and_finalize(library: Any) -> None:
    """What numba does once a module has been optimised, and a look at it before."""
    look_at(library._final_module)
    finalize(library)


codegen.CPUCodeLibrary._finalize_final_module = look_and_finalize  # type: ignore[method-assign]


@numba.njit(fastmath=FAST, error_model="numpy")
def sum_while_writing(rows: np.ndarray, out: np.ndarray) -> float:
    """As no kernel should be."""
    total = np.float32(0)
    for i in range(rows.shape[0]):
        out[i] = rows[i] - 1
        total += rows[i] * rows[i]
    return total


@numba.njit(fastmath=FAST, error_model="numpy")
def sums_while_writing(rows: np.ndarray, out: np.ndarray) -> float:
    """Nor like this: the check is made once."""
    total = np.float32(0)
    for j in range(rows.shape[0]):
        for i in range(rows.shape[1]):
            value = rows[j, i] * rows[j, i]
            out[j, i] = value
            total += value
    return total


def use_all(dtype: type) -> None:
    """Fits, predictions and coresets of rows of this type."""
    routing.ALL_COMPARED = 8  # or approximate predictions would be exact
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3_000, 6)).astype(dtype)
    weights = rng.uniform(1, 2, size=len(X))
    settings: list[dict[str, Any]] = [
        {"coreset_size": 2_500, "refine": 1},
        {"search": "pointwise", "init": "afkmc2"},
        {"covariance_type": "diag", "mixing": "learned"},
        {"covariance_type": "spherical", "reassign": True, "n_explore": 1},
        {"metric": "cosine"},
    ]
    for setting in settings:
        model = VCGMM(1_100, max_iter=2, n_threads=1, random_state=0, **setting).fit(X, sample_weight=weights)
        model.predict(X)
        model.predict(X, method="approximate")
        model.predict_proba(X[:9])
        model.score_samples(X)
    VCGMM(20, n_threads=1, random_state=0).partial_fit(X).partial_fit(X)
    for hard in (False, True):
        two_level(X, 300, max_iter=2, hard=hard, n_init=2, random_state=0, n_threads=1)
    lightweight_coreset(X, 500, random_state=0)
    afkmc2(X, 30, random_state=0)
    kmeans_plus_plus(X, 30, random_state=0)
    quantization_error(X, X[:9])
    wide = (rng.normal(size=(1_000, 200)) * np.linspace(1, 0, 200) ** 4).astype(dtype)  # directions pay
    model = VCGMM(30, max_iter=2, refine=1, coreset_size=900, n_threads=1, random_state=0).fit(wide)
    model.predict(wide, method="approximate")  # by short integers
    two_level(wide, 30, max_iter=0, random_state=0, n_threads=1)


def main() -> None:
    """Use what there is."""
    sum_while_writing(np.ones(9, np.float32), np.ones(9, np.float32))
    sums_while_writing(np.ones((9, 9), np.float32), np.ones((9, 9), np.float32))
    warnings.simplefilter("ignore")
    for dtype in (np.float32, np.float64):
        use_all(dtype)
    print("\n".join(dict.fromkeys(found)))  # noqa: T201 - what it is for


if __name__ == "__main__":
    main()
