"""The same rows give the same coreset, however they are cut into files and blocks."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import vcgmm
from vcgmm import Coreset, lightweight_coreset


def same(a: Coreset, b: Coreset) -> None:
    for name in ("indices", "points", "weights"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


@given(
    n=st.integers(1, 400),
    d=st.integers(1, 5),
    cuts=st.lists(st.integers(0, 400), max_size=5),
    offset=st.sampled_from([0.0, 1e6]),
    dtype=st.sampled_from(["f4", "f8", "u1"]),
    weighted=st.booleans(),
    n_threads=st.integers(1, 3),
    seed=st.integers(0, 1000),
)
def test_blocks_and_shards_of_any_length_give_the_coreset_of_the_array(
    n: int, d: int, cuts: list[int], offset: float, dtype: str, weighted: bool, n_threads: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    X = (rng.random((n, d)) * 200 + (0.0 if dtype == "u1" else offset)).astype(dtype)
    weights = rng.uniform(0.0, 3.0, n) * 2.0 ** rng.integers(-40, 40) if weighted else None
    pieces = np.split(X, sorted(min(cut, n) for cut in cuts))
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr("vcgmm.data.rows.BLOCK_VALUES", 64)
        patch.setattr("vcgmm.data.rows.LEAST_ROWS", 4)
        patch.setattr("vcgmm.data.streamed.PART_BLOCKS", int(rng.integers(1, 9)))
        expected = lightweight_coreset(X, 50, sample_weight=weights, random_state=seed, n_threads=1)
        for i, piece in enumerate(pieces):
            np.save(f"{folder}/{i}.npy", piece)
        for rows in (pieces, Path(folder)):
            source = vcgmm.open(rows, weights=weights)
            same(lightweight_coreset(source, 50, random_state=seed, n_threads=n_threads), expected)
        same(lightweight_coreset(X, 50, sample_weight=weights, random_state=seed, n_threads=n_threads), expected)
